"""What it costs to have it at all: import, start, memory."""

from __future__ import annotations

import json
import statistics
from contextlib import AbstractContextManager

from aios_nb.bench import contestants
from aios_nb.bench.contestants import Contestant
from aios_nb.bench.ratios import order
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.bench.spec import Load, Work

IMPORT_MAX_MS = 300
LOAD_S = 0.5
CONCURRENCY = 10
_TIMED = """
import json, sys, time
wall, cpu = time.perf_counter(), time.process_time()
import {module}
print(json.dumps([(time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3]))
"""
_MODULES = ("aios_nb", "aiohttp")


def _startup(bench: Bench) -> Result:
    imports: dict[str, list[list[float]]] = {module: [] for module in _MODULES}
    for turn in range(bench.rounds):
        for place in order(turn, len(_MODULES)):
            imports[_MODULES[place]].append(_import(_MODULES[place]))
    rows = []
    for module, times in imports.items():
        cpu_ms = statistics.median(cpu for _, cpu in times)
        row = Row(
            line=f"import {module}",
            figures={
                "wall ms": figure(statistics.median(wall for wall, _ in times)),
                "CPU ms": figure(cpu_ms),
            },
        )
        if module == "aios_nb":
            row.target = f"≤ {IMPORT_MAX_MS} ms CPU"
            row.met = cpu_ms <= IMPORT_MAX_MS
        rows.append(row)
    starts = [_start(bench) for _ in range(1 if bench.quick else 3)]
    rows.extend(
        Row(
            line=f"{line}: spawn to ready line",
            figures={
                "wall ms": figure(statistics.median(start[line][0] for start in starts)),
                "RSS MB ready": _mb([start[line][1] for start in starts]),
                "RSS MB after load": _mb([start[line][2] for start in starts]),
            },
        )
        for line in starts[0]
    )
    return Result(rows=rows, raw={"imports": imports, "starts": starts})


def _mb(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return figure(statistics.median(known) if known else None, 1)


def _import(module: str) -> list[float]:
    printed = contestants.printed(["-c", _TIMED.format(module=module)])
    times: list[float] = json.loads(printed)
    return times


def _start(bench: Bench) -> dict[str, tuple[float, float | None, float | None]]:
    """Start-up in ms, and memory when ready and after half a second of load."""
    found: dict[str, tuple[float, float | None, float | None]] = {}
    contest: tuple[tuple[str, AbstractContextManager[Contestant], Work], ...] = (
        ("aios-nb up", contestants.command(), "send"),
        ("raw aiohttp", contestants.baseline("echo"), "echo"),
    )
    for line, made, work in contest:
        with made as server:
            fresh = server.rss_mb
            with bench.generator.open(server.target(work, CONCURRENCY)) as session:
                session.drive(Load(seconds=LOAD_S))
            found[line] = (server.start_s * 1e3, fresh, server.rss_mb)
    return found


STARTUP = Scenario(
    name="startup",
    title="Start-up and memory",
    target=f"import aios_nb ≤ {IMPORT_MAX_MS} ms CPU",
    why="`%load_ext aios_nb` must not be felt, and a node should be as light as its server.",
    run=_startup,
)
