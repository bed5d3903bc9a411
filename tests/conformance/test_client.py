"""The client that the suite starts uses a server as a person would, through a node of its own."""

from __future__ import annotations

import json

import pytest
from mcp.server.mcpserver import Context, MCPServer

from aios_nb import conformance_client
from aios_nb.wire.fixtures.mcp.questions import DEFAULTS
from tests.wire.outside.servers import old, serving


@pytest.fixture
def heard():
    """What was called, with what."""
    return []


@pytest.fixture
def server(heard):
    server = MCPServer("suite", log_level="CRITICAL")

    @server.tool()
    def add_numbers(a: int, b: int) -> int:
        heard.append(("add_numbers", a, b))
        return a + b

    @server.tool()
    def broken() -> str:
        heard.append(("broken",))
        raise ValueError

    @server.tool()
    async def form(ctx: Context) -> str:
        said = await ctx.session.elicit_form(
            "Who are you?", DEFAULTS, related_request_id=ctx.request_context.request_id
        )
        heard.append((said.action, said.content))
        return "thanks"

    return server


def test_each_tool_is_called_with_what_it_asks_for(server, heard, capsys):
    with serving(old(server.streamable_http_app())) as origin:
        conformance_client.main(f"{origin}/mcp")
    defaults = {name: field["default"] for name, field in DEFAULTS["properties"].items()}
    assert sorted(heard, key=str) == [
        ("accept", defaults),
        ("add_numbers", 5, 5),
        ("broken",),
    ]
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("broken: ")


def test_the_calls_that_the_suite_wants_are_made_and_no_others(server, heard, monkeypatch):
    calls = {"toolCalls": [{"name": "add_numbers", "arguments": {"a": 7, "b": 8}}]}
    monkeypatch.setenv(conformance_client.CONTEXT, json.dumps(calls))
    with serving(server.streamable_http_app()) as origin:
        conformance_client.main(f"{origin}/mcp")
    assert heard == [("add_numbers", 7, 8)]
