"""The fixtures of the MCP suite on a real node, both eras; the suite itself comes by npm."""

from __future__ import annotations

import base64

import pytest
from mcp import MCPError
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

from aios_nb.errors import UsageError
from tests.conformance.conftest import Door

MODES = ("legacy", "auto")


INPUT = "test_input_required_result"
FIXTURES = {
    *("test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource"),
    *("test_multiple_content_types", "test_tool_with_logging", "test_logging_tool"),
    *("test_tool_with_progress", "test_error_handling", "test_sampling", "test_elicitation"),
    *("test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums", "test_x_mcp_header"),
    *("test_missing_capability", "json_schema_2020_12_tool", "test_reconnection"),
    *("test_trigger_tool_change", "test_trigger_prompt_change", "test_streaming_elicitation"),
    *(f"{INPUT}_elicitation", f"{INPUT}_sampling", f"{INPUT}_list_roots", f"{INPUT}_capabilities"),
    *(f"{INPUT}_request_state", f"{INPUT}_tampered_state", f"{INPUT}_multiple_inputs"),
    f"{INPUT}_multi_round",
}
"""A scenario may pass when its tool is missing: these must be there."""


def words(result):
    return [part.text for part in result.content]


@pytest.mark.parametrize("mode", MODES)
def test_every_fixture_is_listed_after_the_node_s_own_tools(door, mode):
    async def look(client):
        return [tool.name for tool in (await client.list_tools()).tools]

    listed = door.visit(look, mode=mode)
    own = len(listed) - len(FIXTURES)
    assert set(listed[own:]) == FIXTURES
    assert "agents_search" in listed[:own]


def test_an_ordinary_node_has_none_of_them(make_site):
    async def look(client):
        tools = [tool.name for tool in (await client.list_tools()).tools]
        resources = [str(resource.uri) for resource in (await client.list_resources()).resources]
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        called = await client.call_tool("test_simple_text", {})
        return [*tools, *resources, *prompts], called.is_error

    found, refused = Door(make_site()).visit(look)
    assert refused
    assert "agents_search" in found
    assert not [name for name in found if name.startswith(("test_", "test://", "json_schema"))]


def test_conformance_is_refused_where_others_could_come(make_site):
    with pytest.raises(UsageError, match="loopback only"):
        make_site(conformance=True, host="0.0.0.0", allow_hosts=("box.example",))


@pytest.mark.parametrize("mode", MODES)
def test_each_kind_of_content_comes_through(door, mode):
    async def look(client):
        return (
            await client.call_tool("test_simple_text", {}),
            await client.call_tool("test_multiple_content_types", {}),
            await client.call_tool("test_audio_content", {}),
            await client.call_tool("test_error_handling", {}),
        )

    plain, mixed, sound, failed = door.visit(look, mode=mode)
    assert words(plain) == ["This is a simple text response for testing."]
    assert [part.type for part in mixed.content] == ["text", "image", "resource"]
    assert base64.b64decode(mixed.content[1].data).startswith(b"\x89PNG")
    assert base64.b64decode(sound.content[0].data).startswith(b"RIFF")
    assert failed.is_error
    assert "intentionally" in words(failed)[0]


@pytest.mark.parametrize("mode", MODES)
def test_progress_comes_while_a_tool_runs(door, mode):
    async def look(client):
        seen = []

        async def told(progress, total, message):
            seen.append((progress, total))

        await client.call_tool("test_tool_with_progress", {}, progress_callback=told)
        return seen

    assert door.visit(look, mode=mode) == [(0, 100), (50, 100), (100, 100)]


def test_a_schema_is_listed_as_it_was_written(door):
    async def look(client):
        return {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}

    schemas = door.visit(look)
    kept = schemas["json_schema_2020_12_tool"]
    assert kept["$defs"]["address"]["$anchor"] == "addressDef"
    assert kept["if"]["required"] == ["contactMethod"]
    assert kept["additionalProperties"] is False
    assert schemas["test_x_mcp_header"]["properties"]["region"]["x-mcp-header"] == "Region"


@pytest.mark.parametrize("mode", MODES)
def test_resources_and_prompts_of_the_suite_are_there(door, mode):
    async def look(client):
        text = await client.read_resource("test://static-text")
        made = await client.read_resource("test://template/7/data")
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        with pytest.raises(MCPError):
            await client.read_resource("test://nowhere")
        return text.contents[0].text, made.contents[0].text, prompt.messages[0].content.text

    text, made, prompt = door.visit(look, mode=mode)
    assert text == "This is the content of the static text resource."
    assert made == '{"id":"7","templateTest":true,"data":"Data for ID: 7"}'
    assert prompt == "Prompt with arguments: arg1='a', arg2='b'"


def people():
    """What a client's user, model and folders say."""

    async def user(_, asked):
        fields = asked.requested_schema["properties"]
        content = {name: field.get("default", "Ada") for name, field in fields.items()}
        return ElicitResult(action="accept", content=content)

    async def model(_, asked):
        said = TextContent(text=f"about {asked.messages[0].content.text}")
        return CreateMessageResult(role="assistant", content=said, model="none")

    async def roots(_):
        return ListRootsResult(roots=[Root(uri="file:///srv")])

    return {
        "elicitation_callback": user,
        "sampling_callback": model,
        "list_roots_callback": roots,
    }


def test_a_client_of_the_older_era_is_asked_while_a_tool_runs(door):
    async def look(client):
        model = await client.call_tool("test_sampling", {"prompt": "rain"})
        user = await client.call_tool("test_elicitation_sep1034_defaults", {})
        return words(model)[0], words(user)[0]

    model, user = door.visit(look, mode="legacy", **people())
    assert model == "LLM response: about rain"
    assert '"name": "John Doe"' in user
    assert '"score": 95.5' in user


def test_a_client_of_the_newer_era_comes_again_with_what_was_asked(door):
    async def look(client):
        name = await client.call_tool("test_input_required_result_elicitation", {})
        rounds = await client.call_tool("test_input_required_result_multi_round", {})
        three = await client.call_tool("test_input_required_result_multiple_inputs", {})
        prompt = await client.get_prompt("test_input_required_result_prompt", {})
        return [*words(name), *words(rounds), *words(three), prompt.messages[0].content.text]

    assert door.visit(look, **people()) == [
        "Hello, Ada!",
        "Ada likes Ada.",
        "about Generate a greeting Ada, roots: file:///srv",
        "Use this context: Ada",
    ]


def test_a_changed_state_and_a_missing_ability_are_protocol_errors(door):
    async def look(client):
        asked = await client.session.call_tool(
            "test_input_required_result_tampered_state", {}, allow_input_required=True
        )
        with pytest.raises(MCPError) as tampered:
            await client.session.call_tool(
                "test_input_required_result_tampered_state",
                {},
                request_state=f"{asked.request_state}x",
                allow_input_required=True,
            )
        with pytest.raises(MCPError) as missing:
            await client.call_tool("test_missing_capability", {})
        return tampered.value.error, missing.value.error

    tampered, missing = door.visit(look)
    assert tampered.code == -32602
    assert missing.code == -32021
    assert missing.data["requiredCapabilities"] == {"sampling": {}}


def test_who_listens_hears_of_changed_tools(door):
    async def look(client):
        async with client.listen(tools_list_changed=True) as events:
            await client.call_tool("test_trigger_tool_change", {})
            return type(await anext(aiter(events))).__name__

    assert door.visit(look) == "ToolsListChanged"


def test_the_fixtures_do_not_make_anyone_the_owner(door):
    async def look(client):
        return {tool.name for tool in (await client.list_tools()).tools}

    assert not door.visit(look) & {"hub_add", "peers_list"}
