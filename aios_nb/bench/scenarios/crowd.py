"""What a crowd of fresh keys at the door costs the owner."""

from __future__ import annotations

import json
import time

from aios_nb.bench import contestants
from aios_nb.bench.contestants import Contestant, asked, child_env
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.bench.spec import Broken, Load, Window, percentile

RATE = 100
CONNECTIONS = 8
WARM_UP_CALLS = 100
WINDOW_S = 2.0
SETTLE_S = 0.3
P99_MAX_QUIET = 2.0
QUIET, CROWD = "nobody at the door", "fresh keys at the door"


def _crowd(bench: Bench) -> Result:
    taken: dict[str, list[Window]] = {QUIET: [], CROWD: []}
    knocked = answered = 0
    with contestants.node() as node:
        place = [node.ready["url"], node.ready["node_id"]]
        arguments = ["-m", "aios_nb.bench.strangers", *place]
        with contestants.running("strangers", arguments, child_env()) as crowd:
            target = node.target("send", CONNECTIONS, wire="ws")
            with bench.generator.open(target) as session:
                session.drive(Load(count=WARM_UP_CALLS))
                for _ in range(bench.rounds):
                    load = Load(seconds=WINDOW_S, rate=RATE, keep=True)
                    taken[QUIET].append(session.drive(load))
                    _tell(crowd, "go")
                    time.sleep(SETTLE_S)
                    taken[CROWD].append(session.drive(load))
                    knocked, answered = _tell(crowd, "rest")
                    time.sleep(SETTLE_S)
    rows = [_row(name, windows, taken[QUIET]) for name, windows in taken.items()]
    per_s = knocked / (bench.rounds * (WINDOW_S + SETTLE_S))
    return Result(
        rows=rows,
        raw=taken,
        notes=[
            (
                f"{knocked:,} new nodes knocked, {per_s:,.0f} a second; {answered:,} were let in"
                " and answered, the rest turned away. Percentiles over all rounds together,"
                " latency from the due time. The crowd runs with the lowest priority."
            ),
        ],
    )


def _tell(crowd: Contestant, command: str) -> tuple[int, int]:
    line = asked(crowd.process, command.encode())
    if not line:
        raise Broken("the crowd has gone")
    counts = json.loads(line)
    return counts["knocked"], counts["answered"]


def _row(name: str, ours: list[Window], quiet: list[Window]) -> Row:
    p50, p99 = (_pooled(ours, share) for share in (0.5, 0.99))
    against = p99 / _pooled(quiet, 0.99)
    row = Row(
        line=f"chat.send of the owner, {name}",
        figures={
            "p50 ms": figure(p50, 2),
            "p99 ms": figure(p99, 2),
            "p99 x quiet": f"{against:.2f}",
        },
    )
    if name == CROWD:
        row.target = f"p99 ≤ {P99_MAX_QUIET:g} x quiet"
        row.met = against <= P99_MAX_QUIET
    return row


def _pooled(windows: list[Window], share: float) -> float:
    return percentile(sorted(sample for window in windows for sample in window.samples), share)


CROWDS = Scenario(
    name="crowd",
    title="A crowd at the door",
    target=f"the owner's p99 ≤ {P99_MAX_QUIET:g} x quiet",
    why="A key costs nothing: anyone can come as a thousand strangers.",
    run=_crowd,
)
