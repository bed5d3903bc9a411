"""Calls per second and CPU per call, in units of a bare aiohttp echo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack

from aios_nb.bench import contestants
from aios_nb.bench.contestants import Contestant
from aios_nb.bench.ratios import WARM_UP_S, WINDOW_S, alternate, cpu, median, rate, ratio
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.bench.spec import Load, Target, Window

CONCURRENCIES = (10, 50)
UNIT = "raw aiohttp echo"
STATELESS_MIN = 0.85
DURABLE_MIN = 0.6

_UNIT_NOTE = (
    "The unit is `web.Application` with one handler that returns the body. The node uses aiohttp's"
    " parser but neither its router nor its response object, so a light call can be cheaper."
)

Lines = Callable[[Contestant, Contestant, int], Mapping[str, tuple[Target, float | None]]]
"""Raw server, node, concurrency -> the lines to compare, each with its least ratio."""


def _stateless(
    raw: Contestant, node: Contestant, concurrency: int
) -> dict[str, tuple[Target, float | None]]:
    return {
        UNIT: (raw.target("echo", concurrency), None),
        "RPC, HTTP": (node.target("rpc", concurrency), STATELESS_MIN),
        "RPC, WebSocket": (node.target("rpc", concurrency, wire="ws"), None),
    }


def _durable(
    raw: Contestant, node: Contestant, concurrency: int
) -> dict[str, tuple[Target, float | None]]:
    def send(**more: object) -> Target:
        return node.target("send", concurrency, **more)

    return {
        UNIT: (raw.target("echo", concurrency), None),
        "chat.send, HTTP, new conversation each": (send(), DURABLE_MIN),
        "chat.send, HTTP, one per connection": (send(keep_conversation=True), DURABLE_MIN),
        "chat.send, HTTP, agent in a thread": (send(agent="bench_thread"), None),
        "chat.send, WebSocket, new conversation each": (send(wire="ws"), None),
        "chat.send, WebSocket, one per slot": (send(wire="ws", keep_conversation=True), None),
    }


def compare(bench: Bench, lines: Lines) -> Result:
    """A row for each line and concurrency, in units of ``UNIT``."""
    rows: list[Row] = []
    raw_windows: dict[str, list[Window]] = {}
    with contestants.baseline("echo") as raw, contestants.node() as node:
        for concurrency in CONCURRENCIES:
            chosen = lines(raw, node, concurrency)
            taken = windows(bench, {name: target for name, (target, _) in chosen.items()})
            for name, (_, least) in chosen.items():
                rows.append(_row(name, concurrency, taken[name], taken[UNIT], least))
                raw_windows[f"{name}, c={concurrency}"] = taken[name]
    return Result(rows=rows, raw=raw_windows, notes=[_UNIT_NOTE])


def windows(bench: Bench, targets: Mapping[str, Target]) -> dict[str, list[Window]]:
    """Warmed-up windows of all targets, taken in turns."""
    with ExitStack() as stack:
        lines: dict[str, Callable[[], Window]] = {}
        for name, target in targets.items():
            session = stack.enter_context(bench.generator.open(target))
            session.drive(Load(seconds=WARM_UP_S))
            lines[name] = lambda session=session: session.drive(Load(seconds=WINDOW_S))  # type: ignore[misc]
        return alternate(lines, bench.rounds)


def _row(
    name: str, concurrency: int, ours: list[Window], unit: list[Window], least: float | None
) -> Row:
    throughput = ratio(ours, unit, rate)
    work = ratio(ours, unit, cpu)
    row = Row(
        line=f"{name}, c={concurrency}",
        figures={
            "req/s": figure(median(ours, rate)),
            "x raw": str(throughput),
            "CPU µs": figure(median(ours, cpu)),
            "CPU x raw": str(work) if work else "-",
            "p50 ms": figure(median(ours, lambda window: window.p50), 2),
            "p99 ms": figure(median(ours, lambda window: window.p99), 2),
        },
    )
    if least is not None and throughput is not None:
        row.target = f"≥ {least} x raw"
        row.met = throughput.median >= least
    return row


RPC = Scenario(
    name="rpc",
    title="Stateless JSON-RPC",
    target=f"≥ {STATELESS_MIN} x raw aiohttp over HTTP",
    why="What guard, dispatch and JSON cost: 200 bytes in and out, nothing looked up or logged.",
    run=lambda bench: compare(bench, _stateless),
)
CHAT = Scenario(
    name="chat",
    title="Durable chat.send",
    target=f"≥ {DURABLE_MIN} x raw aiohttp over HTTP",
    why="The real call: request committed, agent run, reply committed, then answered.",
    run=lambda bench: compare(bench, _durable),
)
