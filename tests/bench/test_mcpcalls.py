from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from aios_nb.bench import contestants, mcpcalls
from aios_nb.bench.calls import call_for
from aios_nb.bench.generator import Generator
from aios_nb.bench.loadgen import session_for
from aios_nb.bench.scenarios import interop
from aios_nb.bench.spec import Broken, Load, Target

LISTED = {"agents": [{"agent": "echo@there", "live": True}]}


def call(work: str, **more: Any):
    target = Target(url="http://there", work=work, concurrency=2, wanted=json.dumps(LISTED), **more)
    return call_for(target)


def answer(asked: bytes, **changes: Any) -> bytes:
    """What a server says to ``agents_list`` or ``agent_send``, right but for the changes."""
    request = json.loads(asked)
    text = request["params"]["arguments"].get("text")
    told: Any = {"text": text, "status": "done", "conversation": "c1"} if text else LISTED
    said = {"type": "text", "text": text or json.dumps(told)}
    result = {"content": [said], "structuredContent": told, "isError": False, **changes}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()


def streamed(message: bytes) -> bytes:
    return b"id: 0\r\ndata: \r\n\r\nevent: message\r\ndata: " + message + b"\r\n\r\n"


works = pytest.mark.parametrize("work", ["mcp-list", "mcp-send"])


@works
def test_a_right_answer_is_taken_as_json_and_as_a_stream(work) -> None:
    for era in ({}, {"wire": "mcp-session"}):
        made = call(work, **era)
        for slot in (0, 1, 0):
            assert made.reply(slot, answer(made.request(slot))) is None
            assert made.reply(slot, streamed(answer(made.request(slot)))) is None


@works
def test_newer_clients_say_who_they_are_with_each_call_and_older_ones_do_not(work) -> None:
    meta = json.loads(call(work).request(0))["params"]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == mcpcalls.MODERN
    assert "_meta" not in json.loads(call(work, wire="mcp-session").request(0))["params"]


@works
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"isError": True}, "a tool that failed"),
        ({"structuredContent": {"agents": [], "text": "x"}}, "another"),
        ({"content": [{"type": "text", "text": "[]"}]}, "another text"),
        ({"content": [{"type": "text", "text": "no JSON"}]}, "another text"),
        ({"content": []}, "another text"),
        ({"structuredContent": None}, "another"),
    ],
)
def test_a_wrong_result_is_noticed(work, changes, said) -> None:
    made = call(work)
    assert said in (made.reply(0, answer(made.request(0), **changes)) or "")


def test_an_agent_must_have_been_asked_and_be_done() -> None:
    made = call("mcp-send")
    asked = made.request(0)
    text = json.loads(asked)["params"]["arguments"]["text"]
    for told in ({"status": "input_required", "conversation": "c1"}, {"status": "done"}):
        problem = made.reply(0, answer(asked, structuredContent={**told, "text": text}))
        assert "status" in (problem or "")


@works
def test_an_answer_to_another_call_or_none_at_all_is_noticed(work) -> None:
    made = call(work)
    first, asked = made.request(0), made.request(0)
    assert "another call" in (made.reply(0, answer(first)) or "")
    error = {"jsonrpc": "2.0", "id": json.loads(asked)["id"], "error": {"code": -32603}}
    assert "no result" in (made.reply(0, json.dumps(error).encode()) or "")
    for body in (b"", b"{", b"event: ping\r\n\r\n", b"\xff"):
        assert "not the answer of a tool" in (made.reply(0, body) or "")


def test_a_list_is_not_checked_against_nothing() -> None:
    with pytest.raises(Broken, match="none was given"):
        call_for(Target(url="http://there", work="mcp-list", concurrency=1))


@pytest.fixture(scope="module", name="node")
def node_fixture():
    with contestants.node() as node:
        yield node


@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize("tool", [mcpcalls.LIST, mcpcalls.SEND])
def test_a_real_node_is_called_in_both_eras(node, tool, modern) -> None:
    wanted = interop.listed(node) if tool == mcpcalls.LIST else ""
    target = interop.tool_call(node, tool, modern=modern, wanted=wanted)
    with Generator() as generator, generator.open(target) as session:
        assert session.drive(Load(count=30)).replies == 30


def test_each_connection_of_an_older_client_has_a_session_and_keeps_it(node) -> None:
    async def run() -> None:
        session = session_for(interop.tool_call(node, mcpcalls.SEND, modern=False))
        await session.open()
        heads = list(session.heads)
        assert len({head.partition(b"Mcp-Session-Id: ")[2] for head in heads}) == session.slots
        assert (await session.drive(Load(count=20))).first_wrong is None
        assert session.heads == heads
        session.close()

    asyncio.run(run())


def test_a_server_that_opens_no_session_is_told_apart(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            target = node.target("mcp-send", wire="mcp-session", path="/echo")
            with pytest.raises(Broken, match="no MCP session was opened: HTTP 200"):
                await session_for(target).open()
            node.status = 503
            with pytest.raises(Broken, match="HTTP 503"):
                await session_for(target).open()

    asyncio.run(run())
