"""Resources, templates, completion and prompts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


async def read(client: Any, uri: str) -> Any:
    contents = (await client.read_resource(uri)).contents[0]
    assert contents.mime_type == "application/json"
    return json.loads(contents.text)


@ERAS
def test_resources_say_what_the_tools_say(shared, era):
    node = shared.site.node.node_id

    async def main():
        async with shared.client(era) as client:
            listed = [str(r.uri) for r in (await client.list_resources()).resources]
            templates = [
                t.uri_template for t in (await client.list_resource_templates()).resource_templates
            ]
            sent = await client.call_tool("agent_send", {"agent": "adder", "text": "7"})
            conversation = sent.structured_content["conversation"]
            return (
                listed,
                templates,
                [
                    await read(client, "node://status"),
                    await read(client, "hub://catalog"),
                    await read(client, f"agent://adder@{node}/card"),
                    await read(client, "agent://adder/skills"),
                    await read(client, f"conversation://{conversation}"),
                ],
            )

    listed, templates, (status, catalog, card, skills, conversation) = asyncio.run(main())
    assert listed[:2] == ["node://status", "hub://catalog"]
    assert f"agent://adder@{node}/card" in listed
    assert templates == ["agent://{id}/card", "agent://{id}/skills", "conversation://{id}"]
    assert status["node_id"] == node
    assert f"adder@{node}" in {row["agent"] for row in catalog["agents"]}
    assert card["agent"] == f"adder@{node}"
    assert set(skills) == {"agent", "about", "tags", "examples"}
    said = [row["text"] for row in conversation["messages"] if row["kind"] == "message"]
    assert said == ["7", "7"]


@ERAS
@pytest.mark.parametrize(
    "uri", ["agent://nobody/card", "conversation://c-guessed", "file:///etc/passwd", "node://else"]
)
def test_what_is_not_there_is_an_error_that_names_it(shared, era, uri):
    async def main():
        async with shared.client(era) as client:
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            return caught.value.error

    error = asyncio.run(main())
    assert error.code == -32602
    assert error.data == {"uri": uri}


@ERAS
def test_ids_are_completed_from_what_the_caller_may_see(shared, era):
    agent = types.ResourceTemplateReference(type="ref/resource", uri="agent://{id}/card")
    talk = types.ResourceTemplateReference(type="ref/resource", uri="conversation://{id}")
    prompt = types.PromptReference(type="ref/prompt", name="ask_agent")

    async def main(token: str | None):
        async with shared.client(era, token) as client:
            sent = await client.call_tool("agent_send", {"agent": "adder", "text": "7"})
            opened = sent.structured_content["conversation"]
            return opened, [
                (await client.complete(ref, {"name": name, "value": value})).completion.values
                for ref, name, value in (
                    (agent, "id", "ad"),
                    (agent, "id", "diary"),
                    (agent, "id", node[3:8]),
                    (prompt, "agent", "TALK"),
                    (prompt, "question", "x"),
                    (talk, "id", opened[:20]),
                )
            ]

    node = shared.site.node.node_id
    opened, values = asyncio.run(main(None))
    assert values == [[f"adder@{node}"], [f"diary@{node}"], [], [f"talker@{node}"], [], [opened]]
    _, values = asyncio.run(main(""))
    assert values == [[f"adder@{node}"], [], [], [f"talker@{node}"], [], []]


@ERAS
def test_prompts_mark_what_others_wrote_as_data(shared, era):
    async def main():
        async with shared.client(era) as client:
            names = [prompt.name for prompt in (await client.list_prompts()).prompts]
            sent = await client.call_tool("agent_send", {"agent": "painter", "text": "hi"})
            conversation = sent.structured_content["conversation"]
            ask = await client.get_prompt("ask_agent", {"agent": "adder", "question": "1 and 1?"})
            find = await client.get_prompt("find_agent_for", {"task": "add numbers"})
            asked = {"conversation": conversation}
            summary = await client.get_prompt("summarise_conversation", asked)
            with pytest.raises(MCPError) as caught:
                await client.get_prompt("ask_agent", {"agent": "adder"})
            return names, ask, find, summary, caught.value.error

    names, ask, find, summary, error = asyncio.run(main())
    assert names == ["ask_agent", "find_agent_for", "summarise_conversation"]
    assert "1 and 1?" in ask.messages[0].content.text
    assert "agents_search" in find.messages[0].content.text
    assert "not instructions" in summary.messages[0].content.text
    quoted = summary.messages[1].content
    assert isinstance(quoted, types.EmbeddedResource)
    texts = [row["text"] for row in json.loads(quoted.resource.text)["messages"]]
    assert "red hi" in texts
    assert error.code == -32602
    assert "question" in error.message
