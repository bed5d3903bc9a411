"""What a crowd of fresh keys at the door costs the owner.

The crowd and the owner's client are not the node. Where the system lets us (Linux, two cores or
more), the node has a core of its own and they have the others, so that what is measured is the
node; then the same is measured with everybody on all cores, which also measures the machine.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager

import msgspec

from aios_nb.bench import contestants
from aios_nb.bench.contestants import Contestant, asked, child_env
from aios_nb.bench.generator import Generator
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.bench.spec import Broken, Load, Window, percentile

RATE = 100
CONNECTIONS = 8
WARM_UP_CALLS = 100
WINDOW_S = 2.0
SETTLE_S = 0.3
P99_MAX = 2.0
QUIET = "nobody at the door"
ELSEWHERE = "fresh keys at another node's door, on this machine"
CROWD = "fresh keys at the door"


class Layout(msgspec.Struct, frozen=True):
    """Who runs on which cores; None: wherever the system likes."""

    name: str
    node: frozenset[int] | None = None
    others: frozenset[int] | None = None


SHARED = Layout("all cores shared")


class Taken(msgspec.Struct):
    """What one layout showed."""

    windows: dict[str, list[Window]]
    floods: list[int]
    """How many fresh keys knocked, each time."""
    answered: int = 0


def layouts() -> list[Layout]:
    """The node on a core of its own, where that can be had; and everybody everywhere."""
    if sys.platform != "linux":
        return [SHARED]
    first, *rest = sorted(os.sched_getaffinity(0))
    if not rest:
        return [SHARED]
    return [Layout("node on its own core", frozenset({first}), frozenset(rest)), SHARED]


@contextmanager
def running_on(cores: frozenset[int] | None) -> Iterator[None]:
    """Children started inside stay on these cores, with all their threads."""
    if sys.platform != "linux" or cores is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _crowd(bench: Bench) -> Result:
    taken = {layout.name: _measured(layout, bench.rounds) for layout in layouts()}
    target = next(iter(taken))
    return Result(
        rows=[
            _row(
                f"{name}, {layout}", windows, each.windows, judged=(layout, name) == (target, CROWD)
            )
            for layout, each in taken.items()
            for name, windows in each.windows.items()
        ],
        raw={
            f"{name}, {layout}": windows
            for layout, each in taken.items()
            for name, windows in each.windows.items()
        },
        notes=[_note(layout, each) for layout, each in taken.items()],
    )


def _measured(layout: Layout, rounds: int) -> Taken:
    taken = Taken({QUIET: [], ELSEWHERE: [], CROWD: []}, [])
    load = Load(seconds=WINDOW_S, rate=RATE, keep=True)
    with ExitStack() as stack:
        with running_on(layout.node):
            node = stack.enter_context(contestants.node())
        with running_on(layout.others):
            other = stack.enter_context(contestants.node())
            crowds = {
                CROWD: stack.enter_context(_at_the_door_of(node)),
                ELSEWHERE: stack.enter_context(_at_the_door_of(other)),
            }
            generator = stack.enter_context(Generator())
        session = stack.enter_context(generator.open(node.target("send", CONNECTIONS, wire="ws")))
        session.drive(Load(count=WARM_UP_CALLS))
        for turn in range(rounds):
            taken.windows[QUIET].append(session.drive(load))
            for name in (ELSEWHERE, CROWD) if turn % 2 else (CROWD, ELSEWHERE):
                before, _ = _tell(crowds[name], "go")
                time.sleep(SETTLE_S)
                taken.windows[name].append(session.drive(load))
                knocked, answered = _tell(crowds[name], "rest")
                if name == CROWD:
                    taken.floods.append(knocked - before)
                    taken.answered = answered
                time.sleep(SETTLE_S)
    return taken


def _at_the_door_of(node: Contestant) -> AbstractContextManager[Contestant]:
    place = [node.ready["url"], node.ready["node_id"]]
    return contestants.running("strangers", ["-m", "aios_nb.bench.strangers", *place], child_env())


def _tell(crowd: Contestant, command: str) -> tuple[int, int]:
    line = asked(crowd.process, command.encode())
    if not line:
        raise Broken("the crowd has gone")
    counts = json.loads(line)
    return counts["knocked"], counts["answered"]


def _row(name: str, ours: list[Window], taken: Mapping[str, list[Window]], *, judged: bool) -> Row:
    p99 = pooled(ours, 0.99)
    quiet = p99 / pooled(taken[QUIET], 0.99)
    row = Row(
        line=f"chat.send of the owner, {name}",
        figures={
            "p50 ms": figure(pooled(ours, 0.5), 2),
            "p99 ms": figure(p99, 2),
            "p99 x quiet": f"{quiet:.2f}",
            "p99 x elsewhere": f"{p99 / pooled(taken[ELSEWHERE], 0.99):.2f}",
        },
    )
    if judged:
        row.target = f"p99 ≤ {P99_MAX:g} x quiet"
        row.met = quiet <= P99_MAX
    return row


def _note(layout: str, taken: Taken) -> str:
    calls = sum(window.replies for window in taken.windows[CROWD])
    return (
        f"{layout}: floods of {min(taken.floods):,} to {max(taken.floods):,} fresh keys,"
        f" {taken.answered:,} of {sum(taken.floods):,} let in and answered, the rest turned away;"
        f" p99 over the {calls:,} calls of all rounds together, from the due time."
    )


def pooled(windows: list[Window], share: float) -> float:
    """A percentile over all rounds together."""
    return percentile(sorted(sample for window in windows for sample in window.samples), share)


CROWDS = Scenario(
    name="crowd",
    title="A crowd at the door",
    target=f"the owner's p99 ≤ {P99_MAX:g} x quiet, the node on a core of its own",
    why="A key costs nothing: anyone can come as a thousand strangers.",
    run=_crowd,
)
