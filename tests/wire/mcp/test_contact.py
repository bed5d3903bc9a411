"""The first message to somebody else's agent: who asks is asked whether it should go there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from tests.sites import TestSite
from tests.wire.mcp.conftest import Door, start_door, text_of


async def greeter(text: str) -> str:
    """Greets, over there."""
    return f"hello {text}"


@pytest.fixture
def far(tmp_path: Path) -> Iterator[tuple[Door, str]]:
    """Our node, and the id of an agent of another one."""
    there = TestSite(tmp_path / "there", [greeter], name="there")
    address = f"{there.node.url}#{there.node.node_id}"
    door = start_door(tmp_path / "here", join=(address,))
    yield door, f"greeter@{there.node.node_id}"
    door.site.stop()
    there.stop()


def confirming(*answers: bool, asked: list[str]) -> Any:
    left = list(answers)

    async def answer(_: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"ok": left.pop(0)})

    return answer


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_first_use_is_confirmed_once(far, era):
    door, agent = far

    async def main():
        asked: list[str] = []
        answer = confirming(False, True, asked=asked)
        async with door.client(era, elicitation_callback=answer) as client:
            results = [
                await client.call_tool("agent_send", {"agent": agent, "text": "you"})
                for _ in range(3)
            ]
            return asked, results

    asked, (refused, sent, again) = asyncio.run(main())
    assert len(asked) == 2
    assert all(agent in question and "another node" in question for question in asked)
    assert refused.is_error
    assert "nothing was sent" in text_of(refused)
    assert text_of(sent) == text_of(again) == "hello you"


def test_a_client_that_cannot_ask_is_told(far):
    door, agent = far

    async def main():
        async with door.client() as client:
            asked = {"agent": agent, "text": "you"}
            return [await client.call_tool("agent_send", asked) for _ in range(2)]

    first, second = asyncio.run(main())
    assert "First use of" in first.structured_content["note"]
    assert "note" not in second.structured_content


def test_anyone_reaches_no_other_node(far):
    door, agent = far

    async def main():
        async with door.client(token="") as client:
            return await client.call_tool("agent_send", {"agent": agent, "text": "you"})

    result = asyncio.run(main())
    assert result.is_error
    assert "no such agent" in text_of(result)
