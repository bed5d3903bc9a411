"""MCP and A2A clients at our node, against the usual servers for these protocols."""

from __future__ import annotations

import json
import urllib.request
from contextlib import ExitStack
from typing import Any

import msgspec

from aios_nb.bench import a2acalls, contestants, mcpcalls
from aios_nb.bench.contestants import Contestant
from aios_nb.bench.ratios import cpu, median, rate, ratio
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.bench.scenarios import rpc
from aios_nb.bench.spec import Broken, Target, Window
from aios_nb.bench.tokens import AGENT_PATH

CONCURRENCY = 10
LIST_MIN = 2.5
SEND_MIN = 0.5
A2A_MIN = 10.0
ASK_S = 60.0

_NOTE = (
    "The others are on uvicorn, with uvloop and httptools where these are installed. fastmcp gives"
    " the same list from memory, the A2A SDK the same task with its artifact; without a task is the"
    " shortest way it has. Ours looks at the token, and writes request and answer to disk first."
)
_ERAS = (("modern", True), ("legacy", False))


class Line(msgspec.Struct, frozen=True):
    """What to measure, and in units of which other line."""

    target: Target
    unit: str | None = None
    least: float | None = None


def tool_call(server: Contestant, tool: str, *, modern: bool, wanted: str = "") -> Target:
    """Calls of a tool; older clients hold a session on each connection."""
    return server.target(
        "mcp-list" if tool == mcpcalls.LIST else "mcp-send",
        CONCURRENCY,
        wire="http" if modern else "mcp-session",
        path="/mcp",
        headers=mcpcalls.headers(tool, modern=modern),
        wanted=wanted,
    )


def a2a_call(server: Contestant) -> Target:
    return server.target("a2a-send", CONCURRENCY, path=AGENT_PATH, headers=a2acalls.HEADERS)


def _lines(
    node: Contestant,
    fastmcp: Contestant,
    a2a: Contestant,
    message: Contestant,
    wanted: str,
) -> dict[str, Line]:
    lines: dict[str, Line] = {}
    for era, modern in _ERAS:
        name = f"MCP {mcpcalls.LIST}, {era}"
        unit = f"{name}: fastmcp"
        lines[unit] = Line(tool_call(fastmcp, mcpcalls.LIST, modern=modern, wanted=wanted))
        ours = tool_call(node, mcpcalls.LIST, modern=modern, wanted=wanted)
        lines[name] = Line(ours, unit, LIST_MIN)
    lines["chat.send, HTTP"] = Line(node.target("send", CONCURRENCY))
    for era, modern in _ERAS:
        ours = tool_call(node, mcpcalls.SEND, modern=modern)
        # Older clients are always answered by a stream of the SDK, which alone costs more.
        least = SEND_MIN if modern else None
        lines[f"MCP {mcpcalls.SEND}, {era}"] = Line(ours, "chat.send, HTTP", least)
    unit = "A2A SendMessage: a2a-sdk"
    lines[unit] = Line(a2a_call(a2a))
    lines[f"{unit}, without a task"] = Line(a2a_call(message), unit)
    lines["A2A SendMessage"] = Line(a2a_call(node), unit, A2A_MIN)
    return lines


def listed(node: Contestant) -> str:
    """What ``agents_list`` of our node gives: the other server is to give the same."""
    call: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "tools/call",
        "params": {"name": mcpcalls.LIST, "arguments": {}, "_meta": mcpcalls.ABOUT_ITSELF},
    }
    request = urllib.request.Request(  # noqa: S310 (our own child's address)
        f"{node.ready['url']}/mcp",
        json.dumps(call).encode(),
        {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {node.ready['token']}",
            **dict(mcpcalls.headers(mcpcalls.LIST, modern=True)),
        },
    )
    with urllib.request.urlopen(request, timeout=ASK_S) as reply:  # noqa: S310
        result = msgspec.json.decode(reply.read())["result"]
    if result.get("isError") or not result["structuredContent"]["agents"]:
        raise Broken(f"{mcpcalls.LIST} gave nothing to compare with: {result}")
    return msgspec.json.encode(result["structuredContent"]).decode()


def run(bench: Bench) -> Result:
    with ExitStack() as stack:
        a2a, message = (
            stack.enter_context(contestants.other(kind)) for kind in ("a2a", "a2a-message")
        )
        node = stack.enter_context(contestants.node())
        wanted = listed(node)
        fastmcp = stack.enter_context(contestants.other("fastmcp", wanted))
        lines = _lines(node, fastmcp, a2a, message, wanted)
        taken = rpc.windows(bench, {name: line.target for name, line in lines.items()})
    rows = [_row(name, line, taken) for name, line in lines.items()]
    return Result(rows=rows, raw=taken, notes=[_NOTE])


def _row(name: str, line: Line, taken: dict[str, list[Window]]) -> Row:
    ours, unit = taken[name], taken[line.unit or name]
    throughput, work = ratio(ours, unit, rate), ratio(ours, unit, cpu)
    row = Row(
        line=name,
        figures={
            "req/s": figure(median(ours, rate)),
            "x unit": str(throughput) if line.unit else "1",
            "CPU µs": figure(median(ours, cpu)),
            "CPU x unit": str(work) if line.unit and work else "-",
            "p50 ms": figure(median(ours, lambda window: window.p50), 2),
            "p99 ms": figure(median(ours, lambda window: window.p99), 2),
        },
    )
    if line.unit and line.least is not None and throughput is not None:
        row.target = f"≥ {line.least:g} x {line.unit.rpartition(': ')[2]}"
        row.met = throughput.median >= line.least
    return row


INTEROP = Scenario(
    name="interop",
    title="Other protocols",
    target=(
        f"agents_list ≥ {LIST_MIN:g} x fastmcp; agent_send ≥ {SEND_MIN:g} x chat.send;"
        f" A2A send ≥ {A2A_MIN:g} x a2a-sdk"
    ),
    why="What programs of others pay at our door: MCP in both eras, and A2A.",
    run=run,
)
