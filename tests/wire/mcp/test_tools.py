"""What an MCP client can do here, in both eras, by the SDK's own client."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest

from tests.wire.mcp.conftest import text_of

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
FOR_ALL = (
    "agents_search",
    "agents_list",
    "agent_card",
    "agent_send",
    "conversation_history",
    "node_status",
)


def answering(*answers: str, asked: list[str], action: str = "accept") -> Any:
    """What the client does when a person is asked."""
    left = list(answers)

    async def answer(_: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        content = {"answer": left.pop(0)} if action == "accept" else None
        return types.ElicitResult(action=action, content=content)

    return answer


@ERAS
def test_the_owner_has_eight_tools_and_others_six(shared, era):
    async def names(token: str) -> list[str]:
        async with shared.client(era, token) as client:
            listed = (await client.list_tools()).tools
            assert all(tool.description and len(tool.description) < 100 for tool in listed)
            assert all(tool.output_schema and tool.annotations for tool in listed)
            return [tool.name for tool in listed]

    assert asyncio.run(names(shared.owner)) == [*FOR_ALL, "peers_list", "hub_add"]
    assert asyncio.run(names(shared.token("x:")["token"])) == list(FOR_ALL)
    assert asyncio.run(names("")) == list(FOR_ALL)


@ERAS
def test_asking_an_agent_and_going_on_in_the_conversation(shared, era):
    async def main():
        async with shared.client(era) as client:
            first = await client.call_tool("agent_send", {"agent": "adder", "text": "2 and 2"})
            told = first.structured_content
            second = await client.call_tool(
                "agent_send", {"agent": "adder", "text": "3", "conversation": told["conversation"]}
            )
            assert second.structured_content["conversation"] == told["conversation"]
            history = await client.call_tool(
                "conversation_history", {"conversation": told["conversation"]}
            )
            return text_of(first), told, history.structured_content

    text, told, history = asyncio.run(main())
    assert text == told["text"] == "4"
    assert told["status"] == "done"
    said = [row["text"] for row in history["messages"] if row["kind"] == "message"]
    assert said == ["2 and 2", "4", "3", "3"]


@ERAS
def test_looking_around(shared, era):
    async def main():
        async with shared.client(era) as client:
            listed = await client.call_tool("agents_list", {})
            found = await client.call_tool("agents_search", {"query": "add numbers", "limit": 3})
            card = await client.call_tool("agent_card", {"agent": "adder"})
            status = await client.call_tool("node_status", {})
            peers = await client.call_tool("peers_list", {})
            return [x.structured_content for x in (listed, found, card, status, peers)]

    listed, found, card, status, peers = asyncio.run(main())
    node = shared.site.node.node_id
    rows = {row["agent"]: row for row in listed["agents"]}
    assert rows[f"adder@{node}"]["about"] == "Adds the numbers in a sentence."
    assert rows[f"adder@{node}"]["live"] is True
    assert "\u202e" not in rows[f"painter@{node}"]["about"]
    assert found["agents"][0]["agent"] == f"adder@{node}"
    assert card["agent"] == f"adder@{node}"
    assert status["node_id"] == node
    assert peers == {"peers": []}


@ERAS
def test_a_tool_that_fails_says_so_in_one_line(shared, era):
    async def main():
        async with shared.client(era) as client:
            return [
                await client.call_tool("agent_send", {"agent": "nobody", "text": "x"}),
                await client.call_tool("agent_send", {"agent": "adder"}),
                await client.call_tool("agent_send", {"agent": "adder", "text": "1", "and": 2}),
                await client.call_tool("conversation_history", {"conversation": "c-guessed"}),
                await client.call_tool("nope", {}),
            ]

    results = asyncio.run(main())
    assert all(result.is_error for result in results)
    assert all("\n" not in text_of(result) for result in results)
    assert "no such agent: nobody" in text_of(results[0])
    assert "missing required field `text`" in text_of(results[1])
    assert "agent_send(agent, text, conversation?)" in text_of(results[2])
    assert "conversation" in text_of(results[3])
    assert "Unknown tool: nope" in text_of(results[4])


@ERAS
def test_what_an_agent_writes_is_data(shared, era):
    async def main():
        async with shared.client(era) as client:
            return await client.call_tool("agent_send", {"agent": "painter", "text": "x\ny"})

    assert text_of(asyncio.run(main())) == "red x\ny"


@ERAS
def test_progress_while_an_agent_streams(shared, era):
    async def main():
        pieces: list[tuple[float, str]] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            assert total is None
            pieces.append((done, message or ""))

        async with shared.client(era) as client:
            result = await client.call_tool(
                "agent_send", {"agent": "talker", "text": "one two three"},
                progress_callback=progress,
            )  # fmt: skip
            return pieces, text_of(result)

    pieces, text = asyncio.run(main())
    assert "".join(piece for _, piece in pieces).strip() == text.strip() == "one two three"
    numbers = [number for number, _ in pieces]
    assert len(numbers) > 1
    assert numbers == sorted(set(numbers))


@ERAS
@pytest.mark.parametrize("with_progress", [False, True])
def test_an_agent_that_asks_back_reaches_the_person(shared, era, with_progress):
    async def progress(*_: Any) -> None:
        pass

    async def main():
        asked: list[str] = []
        answer = answering("Ada", "green", asked=asked)
        async with shared.client(era, elicitation_callback=answer) as client:
            result = await client.call_tool(
                "agent_send",
                {"agent": "asker", "text": "twice"},
                progress_callback=progress if with_progress else None,
            )
            return asked, text_of(result)

    asked, text = asyncio.run(main())
    assert asked == ["What is your name?", "And your colour?"]
    assert text == "Hello, Ada! green"


@ERAS
def test_who_does_not_answer_stops_the_agent(shared, era):
    async def main():
        asked: list[str] = []
        answer = answering(asked=asked, action="decline")
        async with shared.client(era, elicitation_callback=answer) as client:
            return asked, await client.call_tool("agent_send", {"agent": "asker", "text": "x"})

    asked, result = asyncio.run(main())
    assert asked == ["What is your name?"]
    assert result.is_error
    assert "not answered" in text_of(result)
    assert shared.status(shared.conversations()[0]) == "cancelled"


@ERAS
def test_a_client_that_cannot_ask_gives_the_question_and_then_the_answer(shared, era):
    async def main():
        async with shared.client(era) as client:
            asked = await client.call_tool("agent_send", {"agent": "asker", "text": "x"})
            told = asked.structured_content
            done = await client.call_tool(
                "agent_send",
                {"agent": "asker", "text": "Bob", "conversation": told["conversation"]},
            )
            return told, text_of(asked), done.structured_content

    told, text, done = asyncio.run(main())
    assert told["status"] == "input_required"
    assert text == "What is your name?"
    assert told["conversation"] in told["note"]
    assert done["message_id"] == told["message_id"]
    assert done["text"] == "Hello, Bob!"
