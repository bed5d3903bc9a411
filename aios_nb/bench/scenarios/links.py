"""What links cost that ask for nothing, and what one that does not read costs the others."""

from __future__ import annotations

import time
from contextlib import ExitStack

from aios_nb.bench import contestants, usage
from aios_nb.bench.contestants import Contestant, allow
from aios_nb.bench.keys import identity
from aios_nb.bench.ratios import median, rate, ratio, spread
from aios_nb.bench.results import INFORMATION, Bench, Result, Row, Scenario, figure
from aios_nb.bench.scenarios.peer import peer_target
from aios_nb.bench.spec import Broken, Load, Target, Window

IDLE_LINKS = 1000
SETTLE_S = 1.0
"""After the last of them, before memory is read."""
ECHOES = 10
WARM_UP_CALLS = 100
WINDOW_S = 0.5
STALL_ROUNDS_MAX = 3
STREAMS = ((1, 40_000), (100, 1000))
"""Streams on each of two links, and tokens of 25 bytes in each: one long reply, and many."""
QUIET_SHARE = 0.1
QUIET_LOOK_S = 0.2
QUIET_WAIT_S = 60.0

ALONE = "echo on one link, alone"
READ = "beside links whose streams are read"
STALLED = "beside links that stopped reading, while their agents write"
AFTER = "beside links that stopped reading, afterwards"


def _links(bench: Bench) -> Result:
    idle, idle_raw = _idle(bench)
    stalled, stalled_raw = _stall(bench)
    return Result(
        rows=[*idle, *stalled],
        raw={**idle_raw, **stalled_raw},
        notes=[
            (
                "Stopped reading: the client leaves its socket alone after asking for one reply of"
                " 1 MB on one link and a hundred of 25 KB on another. The agents run to their end"
                " either way. node MB = resident memory against before."
            ),
        ],
    )


# Idle ----------------------------------------------------------------------------------


def _idle(bench: Bench) -> tuple[list[Row], dict[str, list[float | None]]]:
    with contestants.baseline("echo") as raw, contestants.node() as node:
        unit_kb = _kb_each(bench, raw, raw.target("echo", IDLE_LINKS), calls=IDLE_LINKS)
        with bench.generator.open(peer_target(node, "rpc", ECHOES, "warm")) as session:
            session.drive(Load(count=WARM_UP_CALLS))
        allow(node, [identity("idle", number).node_id for number in range(IDLE_LINKS)])
        target = node.target("rpc", IDLE_LINKS, wire="peer", seed="idle", side="idle")
        ours_kb = _kb_each(bench, node, target, calls=0)
    known = unit_kb and ours_kb
    rows = [
        Row(
            line=f"raw aiohttp, {IDLE_LINKS:,} idle connections",
            figures={"KB each": figure(unit_kb, 1)},
        ),
        Row(
            line=f"{IDLE_LINKS:,} idle links",
            figures={
                "KB each": figure(ours_kb, 1),
                "x raw": f"{ours_kb / unit_kb:.1f}" if known else "-",  # type: ignore[operator]
            },
        ),
    ]
    return rows, {"idle raw, KB each": [unit_kb], "idle links, KB each": [ours_kb]}


def _kb_each(bench: Bench, server: Contestant, target: Target, *, calls: int) -> float | None:
    """What a server's memory grows by for each connection of this target."""
    before = server.rss_mb
    with bench.generator.open(target) as session:
        if calls:
            session.drive(Load(count=calls))
        time.sleep(SETTLE_S)
        after = server.rss_mb
    if before is None or after is None:
        return None
    return (after - before) * 1024 / target.concurrency


# Stalled -------------------------------------------------------------------------------


def _stall(bench: Bench) -> tuple[list[Row], dict[str, list[Window]]]:
    taken: dict[str, list[Window]] = {ALONE: [], READ: [], STALLED: [], AFTER: []}
    grown: dict[str, list[float]] = {name: [] for name in taken}
    with contestants.node() as node:
        target = peer_target(node, "rpc", ECHOES, "echo")
        with bench.generator.open(target) as echo:
            echo.drive(Load(count=WARM_UP_CALLS))
            for turn in range(min(bench.rounds, STALL_ROUNDS_MAX)):
                taken[ALONE].append(echo.drive(Load(seconds=WINDOW_S)))
                for name in (READ, STALLED) if turn % 2 else (STALLED, READ):
                    before = node.rss_mb or 0.0
                    with ExitStack() as beside:
                        for each in _asides(node, "stalled" if name == STALLED else "read"):
                            beside.enter_context(bench.generator.open(each))
                        taken[name].append(echo.drive(Load(seconds=WINDOW_S)))
                        _wait_until_quiet(node)
                        if name == STALLED:
                            taken[AFTER].append(echo.drive(Load(seconds=WINDOW_S)))
                        grown[name].append((node.rss_mb or 0.0) - before)
    grown[AFTER] = grown[STALLED]
    rows = [_stall_row(name, these, taken[ALONE], grown[name]) for name, these in taken.items()]
    return rows, taken


def _asides(node: Contestant, side: str) -> list[Target]:
    return [
        peer_target(
            node,
            "message-stream",
            streams,
            f"{side} {streams}",
            agent="bench_stream",
            chunks=chunks,
            side=side,
        )
        for streams, chunks in STREAMS
    ]


def _wait_until_quiet(node: Contestant) -> None:
    """Until the node has nearly nothing to do."""
    until = time.perf_counter() + QUIET_WAIT_S
    while time.perf_counter() < until:
        before, begun = usage.process_ns(node.pid), time.perf_counter()
        time.sleep(QUIET_LOOK_S)
        used = usage.used_ns(before, usage.process_ns(node.pid))
        if used is None or used / 1e9 < QUIET_SHARE * (time.perf_counter() - begun):
            return
    raise Broken(f"the node was still busy after {QUIET_WAIT_S:.0f} s")


def _stall_row(name: str, ours: list[Window], alone: list[Window], grown: list[float]) -> Row:
    return Row(
        line=f"{name}, c={ECHOES}",
        figures={
            "req/s": figure(median(ours, rate)),
            "x alone": str(ratio(ours, alone, rate)),
            "p50 ms": figure(median(ours, lambda window: window.p50), 2),
            "p99 ms": figure(median(ours, lambda window: window.p99), 2),
            "p99 x alone": str(ratio(ours, alone, lambda window: window.p99)),
            "node MB": figure(spread(grown).median, 1) if grown else "",
        },
    )


LINKS = Scenario(
    name="links",
    title="Links that are idle, and links that do not read",
    target=INFORMATION,
    why="A node keeps many links; none of them may cost the others much.",
    run=_links,
)
