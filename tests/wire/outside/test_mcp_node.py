"""A node with an MCP server of others in its hub: asked from the chat, and by an agent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aios_nb.errors import AgentFailed
from tests.sites import TestSite
from tests.wire.outside.servers import Calculator, serving


def test_a_server_is_brought_in_asked_blocked_when_it_changes_and_approved(
    make_site: Callable[..., TestSite],
) -> None:
    async def bookkeeper(text: str, ctx: Any) -> str:
        """Adds with somebody else's tool."""
        reply = await ctx.call("calculator", "add", data={"a": 1, "b": 2})
        return f"{text} {reply.data['result']}"

    site = make_site(bookkeeper)
    calculator = Calculator()
    with serving(calculator.app()) as origin:
        row = site.call("hub.add", address=origin, name="calculator", local=True)
        assert row["kind"] == "mcp"
        again = site.call("hub.add", address=origin, name="calculator", local=True)
        assert (again["agent"], again["live"]) == (row["agent"], True)
        reply = site.call("chat.send", agent="calculator", text="add a=20 b=22")
        assert (reply["text"], reply["data"]) == ("42", {"result": 42})
        assert site.call("chat.send", agent="bookkeeper", text="it is")["text"] == "it is 3"

        calculator.server.remove_tool("wait")
        with pytest.raises(AgentFailed) as refused:
            site.call("chat.send", agent="calculator", text="add a=1 b=1")
        assert "hub approve calculator" in str(refused.value)
        assert calculator.called == [("add", 20, 22), ("add", 1, 2)]

        site.call("hub.approve", name="calculator")
        assert site.call("chat.send", agent="calculator", text="add a=1 b=1")["text"] == "2"
        site.stop()


def test_what_is_missing_is_asked_in_the_conversation(make_site: Callable[..., TestSite]) -> None:
    site = make_site()
    with serving(Calculator().app()) as origin:
        site.call("hub.add", address=f"{origin}/mcp", name="calculator", local=True)
        asked = site.call("chat.send", agent="calculator", text="add a=20")
        assert asked["status"] == "input_required"
        site.call("chat.answer", message_id=asked["message_id"], text="22")
        _, result = site.stream(agent="calculator", text="add a=20", message_id=asked["message_id"])
        assert result["text"] == "42"
        site.stop()


def test_nothing_of_it_is_loaded_before_it_is_used(tmp_path: Path) -> None:
    program = (
        "import sys; from aios_nb.wire.outside.mcp import McpServer\n"
        "print([name for name in ('mcp', 'httpx2', 'anyio', 'pydantic') if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert found.stdout.strip() == "[]"
