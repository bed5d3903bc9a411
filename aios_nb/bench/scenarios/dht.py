"""Finding nodes by the DHT alone: how surely, how fast, and when many have just died."""

from __future__ import annotations

import msgspec

from aios_nb.bench import contestants
from aios_nb.bench.lookups import Plan, Seen, Timed
from aios_nb.bench.ratios import Spread, spread
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.bench.spec import percentile

SIZES = (20, 100, 200, 400)
QUICK_SIZES = (20, 100)
GETS = 1200
"""Of each size: enough to tell 99.9 % from less."""
QUICK_GETS = 300
ROUNDS_MAX = 5
STOCK_SETS = 100
STOCK_AFTER_KILL = 10
FOUND_MIN = 0.999
FOUND_AFTER_MIN = 0.99
P95_AFTER_MAX_MS = 500.0
P99_AFTER_MAX_MS = 250.0
JUDGED_FROM = 200
"""Nodes, for what is found in the quiet: below, a single miss says little."""


def _dht(bench: Bench) -> Result:
    rows: list[Row] = []
    raw: dict[str, Seen] = {}
    rounds = min(bench.rounds, ROUNDS_MAX)
    gets = (QUICK_GETS if bench.quick else GETS) // rounds
    for nodes in QUICK_SIZES if bench.quick else SIZES:
        plan = Plan(
            nodes=nodes,
            rounds=rounds,
            gets=gets,
            sets=min(nodes, STOCK_SETS),
            stock_after_kill=STOCK_AFTER_KILL,
        )
        told = contestants.printed(
            ["-m", "aios_nb.bench.swarm", msgspec.json.encode(plan).decode()]
        )
        seen = raw[f"{nodes} nodes"] = msgspec.json.decode(told, type=Seen)
        rows += _rows(nodes, seen)
    return Result(
        rows=rows,
        raw=raw,
        notes=[
            (
                "All nodes in one process, a socket each, no gossip; calls one after the other."
                " x raw: against one UDP round trip in the same round; x stock: against the"
                " kademlia package as it is, with as many nodes in the same process; it asks nobody"
                " where a node keeps the record itself, as most of 20 nodes do. Killed at"
                " once, and asked at once, by nodes that have not asked since. Questions: per"
                " call, of all kinds, also those nobody answered."
            ),
        ],
    )


def _rows(nodes: int, seen: Seen) -> list[Row]:
    count = len(seen.set.rounds)
    first, last = seen.raw.rounds[:count], seen.raw.rounds[count:]
    quiet_ms = _p50(_pooled(seen.get))
    rows = [
        _line(f"set, {nodes} nodes", seen.set, first, seen.stock_set, seen.set_questions),
        _line(f"get, {nodes} nodes", seen.get, last, seen.stock_get, seen.get_questions),
    ]
    if nodes >= JUDGED_FROM:
        rows[-1].target = f"found ≥ {FOUND_MIN:.1%}"
        rows[-1].met = _found(seen.get) >= FOUND_MIN
    for share, timed in seen.after.items():
        rows.append(_after(f"get, {nodes} nodes, {share} killed", share, timed, seen, quiet_ms))
    stock = sorted(seen.stock_after_ms)
    rows.append(
        Row(
            line=f"stock get, {nodes} nodes, 30% killed",
            figures={"p50 ms": figure(_p50(stock), 2), "p99 ms": figure(percentile(stock, 0.99))},
        )
    )
    return rows


def _line(name: str, ours: Timed, raw: list[list[float]], stock: Timed, questions: float) -> Row:
    pooled = _pooled(ours)
    return Row(
        line=name,
        figures={
            "found %": f"{_found(ours):.2%}".rstrip("%"),
            "p50 ms": figure(_p50(pooled), 2),
            "p99 ms": figure(percentile(pooled, 0.99), 1),
            "p50 x raw": str(_against(ours.rounds, raw)),
            "p50 x stock": str(_against(ours.rounds, stock.rounds)),
            "questions": figure(questions, 1),
        },
    )


def _after(name: str, share: str, timed: Timed, seen: Seen, quiet_ms: float) -> Row:
    pooled = _pooled(timed)
    p50, p95, p99 = (percentile(pooled, each) for each in (0.5, 0.95, 0.99))
    row = Row(
        line=name,
        figures={
            "found %": f"{_found(timed):.2%}".rstrip("%"),
            "p50 ms": figure(p50, 2),
            "p95 ms": figure(p95, 1),
            "p99 ms": figure(p99, 1),
            "questions": figure(seen.questions_after[share], 1),
        },
    )
    if share == "20%":
        row.target = f"found ≥ {FOUND_AFTER_MIN:.0%}, p95 < {P95_AFTER_MAX_MS:.0f} ms"
        row.met = _found(timed) >= FOUND_AFTER_MIN and p95 < P95_AFTER_MAX_MS
    else:
        row.target = f"p50 ≤ quiet + {seen.hedge_ms:.0f} ms, p99 ≤ {P99_AFTER_MAX_MS:.0f} ms"
        row.met = p50 <= quiet_ms + seen.hedge_ms and p99 <= P99_AFTER_MAX_MS
    return row


def _found(timed: Timed) -> float:
    return timed.found / timed.tried if timed.tried else 0.0


def _pooled(timed: Timed) -> list[float]:
    return sorted(took for each in timed.rounds for took in each)


def _p50(ordered: list[float]) -> float:
    return percentile(ordered, 0.5)


def _against(ours: list[list[float]], unit: list[list[float]]) -> Spread:
    """The median of each round in units of the same round's."""
    return spread(
        [
            _p50(sorted(mine)) / _p50(sorted(other))
            for mine, other in zip(ours, unit, strict=True)
            if mine and other
        ]
    )


DHT = Scenario(
    name="dht",
    title="Finding nodes without gossip",
    target=(
        f"found ≥ {FOUND_MIN:.1%} from {JUDGED_FROM} nodes on; 20 % killed: found"
        f" ≥ {FOUND_AFTER_MIN:.0%}, p95 < 0.5 s; 30 % killed: p50 ≤ quiet p50 + one hedge delay,"
        " p99 ≤ 0.25 s"
    ),
    why="Where a node is must be found by anyone, also just after many have gone.",
    run=_dht,
)
