"""An agent on another node, asked through one's own: what the way there and back adds."""

from __future__ import annotations

from aios_nb.bench import contestants
from aios_nb.bench.contestants import Contestant
from aios_nb.bench.ratios import first, median, rate, ratio
from aios_nb.bench.results import INFORMATION, Bench, Result, Row, Scenario, figure
from aios_nb.bench.scenarios import rpc, streams
from aios_nb.bench.scenarios.rpc import windows
from aios_nb.bench.spec import Window

HERE = "agent on the same node"
THERE = "agent on another node"
KEPT = "agent on another node, one conversation per slot"


def _far(bench: Bench) -> Result:
    rows: list[Row] = []
    raw_windows: dict[str, list[Window]] = {}
    with (
        contestants.two_nodes() as (near, far),
        contestants.baseline("events") as events,
        contestants.baseline("echo") as echo,
    ):
        for concurrency, chunks in streams.SHAPES:
            taken = _streamed(bench, near, far, events, concurrency, chunks)
            for name, these in taken.items():
                line = f"chat.stream, {name}, {concurrency} x {chunks}"
                rows.append(_stream_row(line, chunks, these, taken[streams.UNIT], taken[HERE]))
                raw_windows[line] = these
        for concurrency in rpc.CONCURRENCIES:
            taken = _sent(bench, near, far, echo, concurrency)
            for name, these in taken.items():
                line = f"chat.send, {name}, c={concurrency}"
                rows.append(_send_row(line, these, taken[rpc.UNIT], taken[HERE]))
                raw_windows[line] = these
    return Result(
        rows=rows,
        raw=raw_windows,
        notes=[
            (
                "Both nodes, the client and the unit share the cores of this machine; two nodes"
                " would have their own. The client's side is /ws of the near node. CPU is of both"
                " nodes together, per chunk or per call."
            ),
        ],
    )


def _streamed(
    bench: Bench,
    near: Contestant,
    far: Contestant,
    events: Contestant,
    concurrency: int,
    chunks: int,
) -> dict[str, list[Window]]:
    agent = "bench_stream"
    there = f"{agent}@{far.ready['node_id']}"
    return windows(
        bench,
        {
            streams.UNIT: events.target("events", concurrency, chunks=chunks),
            HERE: near.target("stream", concurrency, wire="ws", agent=agent, chunks=chunks),
            THERE: near.target(
                "stream", concurrency, wire="ws", agent=there, chunks=chunks, other_pid=far.pid
            ),
        },
    )


def _sent(
    bench: Bench, near: Contestant, far: Contestant, echo: Contestant, concurrency: int
) -> dict[str, list[Window]]:
    there = {"agent": f"bench_echo@{far.ready['node_id']}", "other_pid": far.pid}
    return windows(
        bench,
        {
            rpc.UNIT: echo.target("echo", concurrency),
            HERE: near.target("send", concurrency, wire="ws"),
            THERE: near.target("send", concurrency, wire="ws", **there),
            KEPT: near.target("send", concurrency, wire="ws", keep_conversation=True, **there),
        },
    )


def both(window: Window) -> float | None:
    """The CPU of all nodes that had a part in a call."""
    return None if window.cpu_us is None else window.cpu_us + (window.other_us or 0.0)


def _stream_row(
    line: str, chunks: int, ours: list[Window], unit: list[Window], here: list[Window]
) -> Row:
    cpu_us = median(ours, both)
    return Row(
        line=line,
        figures={
            "per s": figure(median(ours, lambda window: window.rate * chunks)),
            "CPU µs": figure(cpu_us / chunks if cpu_us is not None else None, 1),
            "CPU x raw": str(ratio(ours, unit, both) or "-"),
            "CPU x here": str(ratio(ours, here, both) or "-"),
            "first ms": figure(median(ours, first), 2),
            "first x raw": str(ratio(ours, unit, first) or "-"),
            "first x here": str(ratio(ours, here, first) or "-"),
        },
    )


def _send_row(line: str, ours: list[Window], unit: list[Window], here: list[Window]) -> Row:
    return Row(
        line=line,
        figures={
            "per s": figure(median(ours, rate)),
            "CPU µs": figure(median(ours, both), 1),
            "CPU x raw": str(ratio(ours, unit, both) or "-"),
            "CPU x here": str(ratio(ours, here, both) or "-"),
            "rate x raw": str(ratio(ours, unit, rate)),
            "rate x here": str(ratio(ours, here, rate)),
            "p50 ms": figure(median(ours, lambda window: window.p50), 2),
            "p99 ms": figure(median(ours, lambda window: window.p99), 2),
        },
    )


FAR = Scenario(
    name="far",
    title="An agent on another node",
    target=INFORMATION,
    why="A person asks through their own node: both nodes commit, and tokens cross the link.",
    run=_far,
)
