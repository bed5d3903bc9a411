"""Who may see what: owner, scoped token and anyone at the one door."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import aiohttp
import pytest

from tests.wire.mcp.conftest import call, heard, modern, routing, text_of

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


@ERAS
def test_anyone_reaches_public_agents_and_knows_of_no_others(shared, era):
    async def main():
        async with shared.client(era, "") as client:
            listed = (await client.call_tool("agents_list", {})).structured_content
            done = await client.call_tool("agent_send", {"agent": "adder", "text": "1 2"})
            hidden = await client.call_tool("agent_send", {"agent": "diary", "text": "x"})
            missing = await client.call_tool("agent_send", {"agent": "nobody", "text": "x"})
            peers = await client.call_tool("peers_list", {})
            added = await client.call_tool("hub_add", {"url": "http://127.0.0.1:1/"})
            resources = [str(r.uri) for r in (await client.list_resources()).resources]
            return listed, done, (hidden, missing), (peers, added), resources

    listed, done, (hidden, missing), refused, resources = asyncio.run(main())
    names = {row["agent"].partition("@")[0] for row in listed["agents"]}
    assert names == {"adder", "talker", "asker", "painter", "slow"}
    assert text_of(done) == "3"
    assert text_of(hidden) == text_of(missing).replace("nobody", "diary")
    assert all(result.is_error and "Unknown tool" in text_of(result) for result in refused)
    assert not any("diary" in uri or "echo" in uri for uri in resources)


@ERAS
def test_each_caller_sees_only_its_own_conversations(shared, era):
    one, other = shared.token("one:")["token"], shared.token("two:")["token"]

    async def open_one(token: str) -> Any:
        async with shared.client(era, token) as client:
            result = await client.call_tool("agent_send", {"agent": "adder", "text": "1"})
            return result.structured_content["conversation"]

    async def look(token: str, conversation: str) -> list[bool]:
        async with shared.client(era, token) as client:
            read = await client.call_tool("conversation_history", {"conversation": conversation})
            asked = {"agent": "adder", "text": "2", "conversation": conversation}
            sent = await client.call_tool("agent_send", asked)
            resource = prompt = True
            try:
                await client.read_resource(f"conversation://{conversation}")
            except Exception as error:  # noqa: BLE001 - the SDK has several
                resource = "-32602" not in repr(error) and False
            try:
                await client.get_prompt("summarise_conversation", {"conversation": conversation})
            except Exception:  # noqa: BLE001
                prompt = False
            return [not read.is_error, not sent.is_error, resource, prompt]

    conversation = asyncio.run(open_one(one))
    assert asyncio.run(look(one, conversation)) == [True] * 4
    assert asyncio.run(look(other, conversation)) == [False] * 4
    assert asyncio.run(look("", conversation)) == [False] * 4


def test_a_session_is_for_who_opened_it(shared):
    one, other = shared.token("one:")["token"], shared.token("two:")["token"]

    async def main():
        async with aiohttp.ClientSession() as session:
            headers = await shared.legacy_session(session, one)
            statuses = []
            for token in (one, other, shared.owner, ""):
                said = {k: v for k, v in headers.items() if k != "Authorization"}
                said |= {"Authorization": f"Bearer {token}"} if token else {}
                looks = (call("tools/list"), call("tools/call", {"name": "node_status"}))
                statuses += [(await shared.post(session, body, said))[0] for body in looks]
            end = {k: v for k, v in headers.items() if k != "Authorization"}
            async with session.delete(shared.url, headers=end) as response:
                statuses.append(response.status)
            statuses.append((await shared.post(session, call("ping"), headers))[0])
            async with session.delete(shared.url, headers=headers) as response:
                statuses.append(response.status)
            statuses.append((await shared.post(session, call("ping"), headers))[0])
            return statuses

    strangers = [404] * 6
    assert asyncio.run(main()) == [200, 200, *strangers, 404, 200, 200, 404]


def test_what_one_client_carries_for_us_is_of_no_use_to_another(shared):
    one, other = shared.token("one:")["token"], shared.token("two:")["token"]
    asked = {"name": "agent_send", "arguments": {"agent": "asker", "text": "x"}}
    said = {"answer": {"action": "accept", "content": {"answer": "Eve"}}}

    async def send(token: str, **more: Any) -> tuple[int, Any]:
        body = modern("tools/call", {**asked, **more}, elicitation={"form": {}})
        headers = shared.headers(token, **routing("tools/call", "agent_send"))
        async with aiohttp.ClientSession() as session:
            status, _, told = await shared.post(session, body, headers)
            return status, told

    async def main():
        _, first = await send(one)
        state = first["result"]["requestState"]
        assert first["result"]["resultType"] == "input_required"
        stolen = await send(other, requestState=state, inputResponses=said)
        altered = await send(one, requestState=state[:-4] + "AAAA", inputResponses=said)
        missing = await send(one, requestState=state, inputResponses={"other": said["answer"]})
        done = await send(one, requestState=state, inputResponses=said)
        again = await send(one, requestState=state, inputResponses=said)
        return stolen, altered, missing, done, again

    stolen, altered, missing, done, again = asyncio.run(main())
    for status, told in (stolen, altered):
        assert (status, told["error"]["code"]) == (400, -32602)
    assert missing[1]["result"]["resultType"] == "input_required"
    assert done[1]["result"]["structuredContent"]["text"] == "Hello, Eve!"
    assert again[1]["result"]["structuredContent"]["text"] == "Hello, Eve!"  # not asked twice


@ERAS
def test_a_revoked_token_ends_sessions_streams_and_calls(door, era):
    made = door.token("gone:")

    async def main():
        async with aiohttp.ClientSession() as session:
            if era == "legacy":
                headers = await door.legacy_session(session, made["token"])
                body = call("tools/call", {"name": "agent_send", "arguments": SLOW}, 9)
                stream = await session.get(door.url, headers=headers)
                assert stream.status == 200
            else:
                headers = door.headers(made["token"], **routing("tools/call", "agent_send"))
                body = modern("tools/call", {"name": "agent_send", "arguments": SLOW}, 9)
                listen = modern(
                    "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
                )
                said = door.headers(made["token"], **routing("subscriptions/listen"))
                stream = await session.post(door.url, json=listen, headers=said)
                await stream.content.readline()
            asking = asyncio.ensure_future(door.post(session, body, headers))
            await heard(door.slow.started)
            await asyncio.to_thread(door.site.call, "tokens.revoke", id=made["id"])
            with contextlib.suppress(aiohttp.ClientError):
                await stream.read()
            with contextlib.suppress(aiohttp.ClientError, IndexError):
                await asking
            await heard(door.slow.stopped)
            return (await door.post(session, call("ping"), headers))[0]

    assert asyncio.run(main()) == 401


SLOW = {"agent": "slow", "text": "x"}
