"""What a crowd of fresh keys at the door costs the owner."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack

from aios_nb.bench import contestants
from aios_nb.bench.contestants import Contestant, asked, child_env
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


def _crowd(bench: Bench) -> Result:
    taken: dict[str, list[Window]] = {QUIET: [], ELSEWHERE: [], CROWD: []}
    knocked = answered = 0
    with ExitStack() as stack:
        node, other = (stack.enter_context(contestants.node()) for _ in range(2))
        crowds = {
            CROWD: stack.enter_context(_at_the_door_of(node)),
            ELSEWHERE: stack.enter_context(_at_the_door_of(other)),
        }
        session = stack.enter_context(
            bench.generator.open(node.target("send", CONNECTIONS, wire="ws"))
        )
        session.drive(Load(count=WARM_UP_CALLS))
        for turn in range(bench.rounds):
            load = Load(seconds=WINDOW_S, rate=RATE, keep=True)
            taken[QUIET].append(session.drive(load))
            for name in (ELSEWHERE, CROWD) if turn % 2 else (CROWD, ELSEWHERE):
                _tell(crowds[name], "go")
                time.sleep(SETTLE_S)
                taken[name].append(session.drive(load))
                counts = _tell(crowds[name], "rest")
                if name == CROWD:
                    knocked, answered = counts
                time.sleep(SETTLE_S)
    per_s = knocked / (bench.rounds * (WINDOW_S + SETTLE_S))
    return Result(
        rows=[_row(name, windows, taken) for name, windows in taken.items()],
        raw=taken,
        notes=[
            (
                f"{knocked:,} new nodes knocked, {per_s:,.0f} a second; {answered:,} were let in"
                " and answered, the rest turned away. Percentiles over all rounds together,"
                " latency from the due time. A crowd takes a core of this machine whoever it"
                " knocks at: what it costs the node is the difference to the same crowd elsewhere."
            ),
        ],
    )


def _at_the_door_of(node: Contestant) -> AbstractContextManager[Contestant]:
    place = [node.ready["url"], node.ready["node_id"]]
    return contestants.running("strangers", ["-m", "aios_nb.bench.strangers", *place], child_env())


def _tell(crowd: Contestant, command: str) -> tuple[int, int]:
    line = asked(crowd.process, command.encode())
    if not line:
        raise Broken("the crowd has gone")
    counts = json.loads(line)
    return counts["knocked"], counts["answered"]


def _row(name: str, ours: list[Window], taken: Mapping[str, list[Window]]) -> Row:
    p99 = _pooled(ours, 0.99)
    elsewhere = p99 / _pooled(taken[ELSEWHERE], 0.99)
    row = Row(
        line=f"chat.send of the owner, {name}",
        figures={
            "p50 ms": figure(_pooled(ours, 0.5), 2),
            "p99 ms": figure(p99, 2),
            "p99 x quiet": f"{p99 / _pooled(taken[QUIET], 0.99):.2f}",
            "p99 x elsewhere": f"{elsewhere:.2f}",
        },
    )
    if name == CROWD:
        row.target = f"p99 ≤ {P99_MAX:g} x elsewhere"
        row.met = elsewhere <= P99_MAX
    return row


def _pooled(windows: list[Window], share: float) -> float:
    return percentile(sorted(sample for window in windows for sample in window.samples), share)


CROWDS = Scenario(
    name="crowd",
    title="A crowd at the door",
    target=f"the owner's p99 ≤ {P99_MAX:g} x that beside the same crowd elsewhere",
    why="A key costs nothing: anyone can come as a thousand strangers.",
    run=_crowd,
)
