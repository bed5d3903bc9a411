"""News from node to node: how soon it is everywhere, what it costs, who is missed or wronged."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from aios_nb.bench import contestants
from aios_nb.bench.news import Plan, Seen
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.hub.gossip import LAN

ON_SOCKETS = (30, 100)
IMAGINED = (100, 300, 1000)
QUICK_ON_SOCKETS = (12,)
QUICK_IMAGINED = (30, 60)
LOSSES = (0.0, 0.1, 0.25)
RECORDS = 7
QUICK_RECORDS = 3
SECONDS = 10.0
QUICK_SECONDS = 4.0
KILLED = 10
LOOPBACK_DELAY_S = (0.0002, 0.002)
"""Of the imagined network beside the real one, whose nodes share a process."""
AT_ONCE = 2
ROUNDS_MAX = {0.0: 0.9, 0.1: 1.2, 0.25: 1.2}
"""By loss, in units of log2 n."""
BYTES_MAX = 5000.0
GROWTH_MAX = 1.5
WRONGED_MAX = 1e-4
WRONGED_LOSS, WRONGED_NODES = 0.1, 300
"""Whom who called dead is counted everywhere, and judged here."""
DETECTED_AT = 100
DETECTED_MORE_S = 3.0


def _gossip(bench: Bench) -> Result:
    records = QUICK_RECORDS if bench.quick else RECORDS
    seconds = QUICK_SECONDS if bench.quick else SECONDS
    real = [
        Plan(nodes=nodes, records=records, seconds=seconds, delay_s=LOOPBACK_DELAY_S)
        for nodes in (QUICK_ON_SOCKETS if bench.quick else ON_SOCKETS)
    ]
    sizes = QUICK_IMAGINED if bench.quick else IMAGINED
    imagined = [
        Plan(
            nodes=nodes,
            records=records,
            seconds=seconds,
            loss=loss,
            killed=min(KILLED, nodes // 10),
        )
        for nodes in reversed(sizes)
        for loss in LOSSES
        if loss != WRONGED_LOSS or nodes <= WRONGED_NODES
    ]
    on_sockets = [_seen("aios_nb.bench.gossipers", plan) for plan in real]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda plan: _seen("aios_nb.bench.imagined", plan), [*imagined, *real])
        seen = dict(zip([*imagined, *real], found, strict=True))
    rows: list[Row] = []
    for plan, socket in zip(real, on_sockets, strict=True):
        rows += _calibrated(plan, socket, seen[plan])
    ordered = sorted(imagined, key=lambda plan: (plan.loss, plan.nodes))
    rows += [_imagined(plan, seen[plan]) for plan in ordered]
    rows += _growth([(plan, seen[plan]) for plan in ordered])
    raw = {f"{plan.nodes} nodes, {plan.loss:.0%} lost, imagined": seen[plan] for plan in seen}
    raw |= {
        f"{plan.nodes} nodes, on sockets": socket
        for plan, socket in zip(real, on_sockets, strict=True)
    }
    return Result(rows=rows, raw=raw, notes=_notes())


def _notes() -> list[str]:
    return [
        (
            "All nodes of a line in one process and known to each other before. On sockets: with"
            " UDP, keys and the shell of a running node, all greeted; imagined: the same machines"
            " on a virtual clock, 10-50 ms from node to node (beside sockets 0.2-2 ms)."
        ),
        (
            "Rounds: gossip intervals of 0.2 s from publishing until 99 % of the nodes have it, the"
            " median of several records, in units of log2 n. Bytes: what one node sends in a second"
            " with the heads of UDP and IP, idle, and with one new record per second in all."
        ),
        (
            "Missed: seconds until all living nodes took note of a death, the median of ten deaths"
            " at once and the slowest; by half of them: the median. Wronged: pairs of living nodes"
            " of which one ever called the other dead."
        ),
    ]


def _seen(module: str, plan: Plan) -> Seen:
    told = contestants.printed(["-m", module, msgspec.json.encode(plan).decode()])
    return msgspec.json.decode(told, type=Seen)


def _rounds(plan: Plan, seen: Seen) -> float:
    """To nearly everyone, in units of log2 n."""
    return statistics.median(seen.spread_s) / LAN.gossip_s / math.log2(plan.nodes)


def _spread_figures(plan: Plan, seen: Seen) -> dict[str, str]:
    rounds = _rounds(plan, seen)
    return {
        "rounds": figure(rounds * math.log2(plan.nodes), 1),
        "rounds / log2 n": figure(rounds, 2),
        "idle B/s": figure(seen.idle_bytes),
        "1 record/s B/s": figure(seen.busy_bytes),
    }


def _calibrated(plan: Plan, socket: Seen, virtual: Seen) -> list[Row]:
    most = ROUNDS_MAX[plan.loss]
    rounds, wronged = _rounds(plan, socket), socket.wronged
    ratio = {
        "rounds": figure(rounds / _rounds(plan, virtual), 2),
        "idle B/s": figure(socket.idle_bytes / virtual.idle_bytes, 2),
        "1 record/s B/s": figure(socket.busy_bytes / virtual.busy_bytes, 2),
    }
    return [
        Row(
            line=f"{plan.nodes} nodes, on sockets",
            figures=_spread_figures(plan, socket) | {"wronged": str(wronged)},
            target=f"≤ {most:g} log2 n, ≤ {BYTES_MAX:,.0f} B/s",
            met=rounds <= most and socket.busy_bytes <= BYTES_MAX,
        ),
        Row(
            line=f"{plan.nodes} nodes, imagined beside them",
            figures=_spread_figures(plan, virtual) | {"wronged": str(virtual.wronged)},
        ),
        Row(line=f"{plan.nodes} nodes, on sockets / imagined", figures=ratio),
    ]


def _imagined(plan: Plan, seen: Seen) -> Row:
    most = ROUNDS_MAX[plan.loss]
    rounds = _rounds(plan, seen)
    target = [f"≤ {most:g} log2 n, ≤ {BYTES_MAX:,.0f} B/s"]
    met = rounds <= most and seen.busy_bytes <= BYTES_MAX
    missed = statistics.median(seen.dead_s)
    if plan.nodes == DETECTED_AT and not plan.loss:
        within = LAN.doubt(plan.nodes) + DETECTED_MORE_S
        target.append(f"missed ≤ {within:.1f} s")
        met = met and missed <= within
    if plan.loss == WRONGED_LOSS:
        target.append(f"wronged ≤ {WRONGED_MAX:g} of pairs")
        met = met and seen.wronged <= WRONGED_MAX * seen.pairs
    return Row(
        line=f"{plan.nodes:,} nodes, {plan.loss:.0%} lost",
        figures=_spread_figures(plan, seen)
        | {
            "missed s": figure(missed, 1),
            "by half s": figure(statistics.median(seen.dead_middle_s), 1),
            "slowest s": figure(max(seen.dead_s), 1),
            "wronged": f"{seen.wronged} of {seen.pairs:,}",
        },
        target="; ".join(target),
        met=met,
    )


def _growth(found: Sequence[tuple[Plan, Seen]]) -> list[Row]:
    """What the largest network costs a node, in units of what the smallest does."""
    rows: list[Row] = []
    for loss in LOSSES:
        alike = [(plan.nodes, seen) for plan, seen in found if plan.loss == loss]
        (few, small), (many, large) = alike[0], alike[-1]
        idle = large.idle_bytes / small.idle_bytes
        busy = large.busy_bytes / small.busy_bytes
        rows.append(
            Row(
                line=f"{many:,} / {few:,} nodes, {loss:.0%} lost",
                figures={"idle B/s": figure(idle, 2), "1 record/s B/s": figure(busy, 2)},
                target=f"≤ {GROWTH_MAX:g}",
                met=max(idle, busy) <= GROWTH_MAX,
            )
        )
    return rows


GOSSIP = Scenario(
    name="gossip",
    title="News from node to node",
    target=(
        "99 % of nodes within 0.9 log2 n intervals, 1.2 with a quarter of all packets lost;"
        f" ≤ {BYTES_MAX / 1000:g} KB/s per node, flat as the network grows"
    ),
    why="Everyone must hear of everything soon, and nobody may pay more for a larger network.",
    run=_gossip,
)
