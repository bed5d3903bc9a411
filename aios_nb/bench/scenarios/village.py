"""Thirty nodes in thirty processes: how soon they know each other, miss each other, meet again."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence

from aios_nb.bench.results import Bench, Result, Row, Scenario
from aios_nb.bench.spec import Broken
from aios_nb.bench.village import Village, Villager, knows_all, sees_gone, village

NODES = 30
QUICK_NODES = 8
KILLED_SHARE = 0.2
STOPPED_S = 12.0
KNOWN_S = 3.0
GONE_S = 15.0
BACK_S = 2.0
PATIENCE_S = 60.0


def _village(bench: Bench) -> Result:
    count = QUICK_NODES if bench.quick else NODES
    with village() as here:
        rows = [
            _settle(here, count),
            _kill(here, here.all[1 : 1 + int(count * KILLED_SHARE)]),
            _freeze(here, here.all[-1], here.all[:1] + here.all[1 + int(count * KILLED_SHARE) :]),
            _return(here, here.all[1 : 1 + int(count * KILLED_SHARE)]),
        ]
    return Result(
        rows=rows,
        raw={row.line: dict(row.figures) for row in rows},
        notes=[
            (
                f"{count} processes on this machine, each looked at over HTTP by one other process"
                " until the last has seen it: the times include the looking."
            )
        ],
    )


def _settle(here: Village, count: int) -> Row:
    ready = here.settle(count)
    seen = here.until(knows_all(here.all), here.all, PATIENCE_S)
    return _row(f"{count} nodes joined through one: all know all", seen - ready, KNOWN_S)


def _kill(here: Village, victims: Sequence[Villager]) -> Row:
    others = [villager for villager in here.all if villager not in victims]
    for villager in victims:
        villager.signal(signal.SIGKILL)
    killed = time.monotonic()
    seen = here.until(sees_gone(victims), others, PATIENCE_S)
    alive = {villager.node_id for villager in others}
    for view in here.views(others):
        wronged = [node for node in alive & view.states.keys() if view.states[node] == "dead"]
        if wronged:
            raise Broken(f"live nodes are called dead: {wronged}")
    return _row(f"{len(victims)} killed: gone everywhere", seen - killed, GONE_S)


def _freeze(here: Village, one: Villager, others: Sequence[Villager]) -> Row:
    rest = [villager for villager in others if villager is not one]
    one.signal(signal.SIGSTOP)
    thaws = time.monotonic() + STOPPED_S
    while time.monotonic() < thaws:
        for view in here.views(rest[:3]):
            if view.states.get(one.node_id) == "dead":
                raise Broken(f"stopped for {STOPPED_S - (thaws - time.monotonic()):.0f} s: dead")
        time.sleep(0.5)
    one.signal(signal.SIGCONT)
    thawed = time.monotonic()
    seen = here.until(knows_all(others), others, PATIENCE_S)
    return _row(f"one stopped for {STOPPED_S:.0f} s: all know all again", seen - thawed, BACK_S)


def _return(here: Village, victims: Sequence[Villager]) -> Row:
    ready = here.restart(victims)
    seen = here.until(knows_all(here.all), here.all, PATIENCE_S)
    return _row(f"{len(victims)} started again: all know all", seen - ready, KNOWN_S)


def _row(line: str, taken_s: float, most_s: float) -> Row:
    return Row(
        line=line,
        figures={"seconds": f"{taken_s:.2f}"},
        target=f"≤ {most_s:g} s",
        met=taken_s <= most_s,
    )


VILLAGE = Scenario(
    name="village",
    title="Thirty nodes find each other",
    target=f"{KNOWN_S:g} s to know all, {GONE_S:g} s to miss the dead, {BACK_S:g} s to forgive",
    why="A network is what its members know of each other, and how soon.",
    run=_village,
)
