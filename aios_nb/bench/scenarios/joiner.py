"""One who comes late to a network that knows much: how soon it knows the same."""

from __future__ import annotations

import contextlib
import statistics
import tempfile
from collections.abc import Callable, Sequence

import msgspec

from aios_nb.bench import contestants
from aios_nb.bench.news import Told
from aios_nb.bench.ratios import spread
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.bench.spec import percentile

COUNT = 2000
QUICK_COUNT = 2000
LEARNED_S = 1.0
ROUNDS_MAX = 5


def _joiner(bench: Bench) -> Result:
    count = QUICK_COUNT if bench.quick else COUNT
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(_home())
        seed = stack.enter_context(
            contestants.running(
                "seed",
                ["-m", "aios_nb.bench.late", "seed", str(count)],
                contestants.child_env(AIOS_HOME=home),
            )
        )
        address = f"{seed.ready['url']}#{seed.ready['node_id']}"
        told = [_join(address, count) for _ in range(min(bench.rounds, ROUNDS_MAX))]
    return Result(
        rows=[_row(f"{count:,} records, joined by URL", told)],
        raw={"rounds": told},
        notes=[
            (
                "Two processes on loopback, the one that joins each time in an empty home. From its"
                " ready line, the median and the fastest and slowest round; x checks: against"
                " checking the same signatures alone, right after. Lag: how late a beat of a"
                " millisecond came on its loop meanwhile."
            )
        ],
    )


def _home() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="aios-bench-", ignore_cleanup_errors=True)


def _join(address: str, count: int) -> Told:
    with _home() as home:
        printed = contestants.printed(
            ["-m", "aios_nb.bench.late", "join", address, str(count)], AIOS_HOME=home
        )
    return msgspec.json.decode(printed, type=Told)


def _row(line: str, told: Sequence[Told]) -> Row:
    def each(value: Callable[[Told], float]) -> str:
        return str(spread([value(one) for one in told]))

    learned = statistics.median(one.learned_s for one in told)
    gaps = sorted(gap * 1e3 for one in told for gap in one.gaps_s)
    return Row(
        line=line,
        figures={
            "seconds": each(lambda one: one.learned_s),
            "from the link": each(lambda one: one.learned_s - one.linked_s),
            "x checks": each(lambda one: one.learned_s / one.verify_s),
            "CPU s": each(lambda one: one.cpu_s),
            "CPU x checks": each(lambda one: one.cpu_s / one.verify_cpu_s),
            "lag p99 ms": figure(percentile(gaps, 0.99), 1),
            "lag max ms": figure(gaps[-1] if gaps else None, 1),
        },
        target=f"≤ {LEARNED_S:g} s",
        met=learned <= LEARNED_S,
    )


JOINER = Scenario(
    name="joiner",
    title="One who comes late",
    target=f"{COUNT:,} records within {LEARNED_S:g} s of being ready",
    why="Whoever opens a notebook should find what there is, at once.",
    run=_joiner,
)
