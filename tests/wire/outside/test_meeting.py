"""What somebody is told when nothing that we know answers at a URL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aios_nb.errors import Unreachable, UsageError
from tests.wire.outside.a2apeers import House, in_house
from tests.wire.outside.servers import plain_app, reply, serving


def told(tmp_path: Path, status: dict[str, int], **how: Any) -> Any:
    """The error of a meeting with a server that answers so by path, else with 404."""

    async def answer(scope: Any, _body: bytes, send: Any) -> None:
        await reply(send, status.get(scope["path"], 404))

    async def work(house: House) -> Any:
        with pytest.raises((Unreachable, UsageError)) as refused:
            await house.meet(origin, **how)
        return refused.value

    with serving(plain_app(answer)) as origin:
        return in_house(tmp_path, work)


@pytest.mark.parametrize("kind", [None, "mcp"])
def test_a_server_that_wants_a_token_says_so_whatever_else_was_tried(tmp_path, kind):
    error = told(tmp_path, {"/mcp": 401}, kind=kind)
    assert "wants a token" in error.message
    assert "--token-env" in error.hint


def test_only_what_was_tried_is_told(tmp_path):
    both = told(tmp_path, {})
    assert both.message.startswith("no A2A agent and no MCP server answers at")
    assert "agent-card.json answered with HTTP 404; the server answered with" in both.hint
    one = told(tmp_path, {}, kind="mcp")
    assert one.message.startswith("no MCP server answers at")
    assert "card" not in one.hint
