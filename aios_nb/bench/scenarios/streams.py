"""Streamed replies: CPU per chunk and the first token, beside a bare event stream."""

from __future__ import annotations

from aios_nb.bench import contestants
from aios_nb.bench.ratios import cpu, first, median, ratio
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.bench.scenarios.rpc import windows
from aios_nb.bench.spec import Window

SHAPES = ((1, 1000), (50, 100))
"""Streams at once, chunks in each."""
UNIT = "raw aiohttp SSE"
OURS = "chat.stream, SSE"
MOST = 1.2


def _stream(bench: Bench) -> Result:
    rows: list[Row] = []
    raw_windows: dict[str, list[Window]] = {}
    with contestants.baseline("events") as raw, contestants.node() as node:
        for concurrency, chunks in SHAPES:
            ours = {"agent": "bench_stream", "chunks": chunks}
            taken = windows(
                bench,
                {
                    UNIT: raw.target("events", concurrency, chunks=chunks),
                    OURS: node.target("stream", concurrency, **ours),
                    "chat.stream, WebSocket": node.target("stream", concurrency, wire="ws", **ours),
                },
            )
            for name, these in taken.items():
                rows.append(_row(name, concurrency, chunks, these, taken[UNIT]))
                raw_windows[f"{name}, {concurrency} x {chunks}"] = these
    return Result(
        rows=rows,
        raw=raw_windows,
        notes=["CPU is per chunk the agent gave, however the node gathers them on the wire."],
    )


def _row(name: str, concurrency: int, chunks: int, ours: list[Window], unit: list[Window]) -> Row:
    work = ratio(ours, unit, cpu)
    wait = ratio(ours, unit, first)
    cpu_us = median(ours, cpu)
    row = Row(
        line=f"{name}, {concurrency} x {chunks} chunks",
        figures={
            "chunks/s": figure(median(ours, lambda window: window.rate * chunks)),
            "CPU µs/chunk": figure(cpu_us / chunks if cpu_us is not None else None, 1),
            "CPU x raw": str(work) if work else "-",
            "first token ms": figure(median(ours, first), 2),
            "first x raw": str(wait) if wait else "-",
        },
    )
    if name == OURS:
        row.target = f"≤ {MOST} x raw, CPU and first token"
        known = [spread.median for spread in (work, wait) if spread is not None]
        row.met = all(value <= MOST for value in known)
    return row


STREAM = Scenario(
    name="stream",
    title="Streaming",
    target=f"≤ {MOST} x raw SSE, CPU per chunk and first token",
    why="Tokens of 25 bytes with a loop turn between them: what a chat box under a cell sees.",
    run=_stream,
)
