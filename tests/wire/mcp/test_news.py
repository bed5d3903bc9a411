"""Agents that come and go, as clients that listen hear of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import mcp_types as types
import pytest

from aios_nb.access import ANYONE, Caller, Principal
from aios_nb.envelope import AgentRow
from aios_nb.hub.news import News
from aios_nb.wire.mcp.news import Announcing, changed_for
from aios_nb.wire.mcp.sessions import Sessions
from tests.wire.mcp.conftest import modern, routing

OWNER, TOKEN = Principal(Caller.OWNER, "o"), Principal(Caller.TOKEN, "t")


async def late(text: str) -> str:
    """Comes later."""
    return text


def change(event: str, access: str, node: str = "here") -> dict[str, Any]:
    return {"event": event, "agent": AgentRow(f"a@{node}", "a", node, access=access)}


@pytest.mark.parametrize(
    ("who", "what", "listed"),
    [
        (OWNER, change("offered", "private"), True),
        (OWNER, change("replaced", "private"), False),
        (TOKEN, change("offered", "private"), False),
        (TOKEN, change("withdrawn", "known"), True),
        (ANYONE, change("offered", "network"), False),
        (ANYONE, change("offered", "public"), True),
        (OWNER, change("offered", "network", "there"), False),
    ],
)
def test_who_hears_of_what(who, what, listed):
    assert changed_for(who, "here", [what]).listed is listed
    seen = who.may_call(what["agent"].access)
    assert ("hub://catalog" in changed_for(who, "here", [what]).updated) is seen


def test_anyone_does_not_hear_of_other_nodes_agents():
    assert not changed_for(ANYONE, "here", [change("offered", "public", "there")])
    assert changed_for(ANYONE, "here", None)  # some are forgotten: look again


async def offered(door: Any, **card: Any) -> None:
    await asyncio.to_thread(door.site.node.host, late, **card)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_an_older_client_is_told_on_its_stream(door):
    async def main():
        got: asyncio.Queue[Any] = asyncio.Queue()

        async def hear(message: Any) -> None:
            await got.put(message)

        async with door.client("legacy", message_handler=hear) as client:
            uri = f"agent://late@{door.site.node.node_id}/card"
            await client.subscribe_resource(uri)
            heard: list[Any] = []
            while not heard:  # its stream opens by itself, some time after the handshake
                await offered(door)
                try:
                    heard.append(await asyncio.wait_for(got.get(), 5))
                except TimeoutError:
                    await asyncio.to_thread(door.site.node.withdraw, "late")
            while len({type(one) for one in heard}) < 2:
                heard.append(await got.get())
            return uri, heard

    uri, heard = asyncio.run(main())
    assert any(isinstance(one, types.ResourceListChangedNotification) for one in heard)
    updated = [one for one in heard if isinstance(one, types.ResourceUpdatedNotification)]
    assert {str(one.params.uri) for one in updated} == {uri}


def test_a_newer_client_is_told_what_it_asked_for_and_nothing_else(door):
    asked = {"resourcesListChanged": True, "resourceSubscriptions": ["hub://catalog"]}

    async def event(response: aiohttp.ClientResponse) -> Any:
        while not (line := await response.content.readline()).startswith(b"data: "):
            assert line, "the stream ended"
        return json.loads(line[6:])

    async def main():
        async with aiohttp.ClientSession() as session:
            streams = []
            for token in (None, ""):
                body = modern("subscriptions/listen", {"notifications": asked}, "sub-1")
                headers = door.headers(token, **routing("subscriptions/listen"))
                response = await session.post(door.url, json=body, headers=headers)
                streams.append((response, await event(response)))
            await offered(door, access="network")
            owner = [await event(streams[0][0]) for _ in range(2)]
            await offered(door, access="public")  # to anyone this one is new
            anyone = await event(streams[1][0])
            for response, _ in streams:
                response.close()
            return [ack for _, ack in streams], owner, anyone

    acks, owner, anyone = asyncio.run(main())
    for ack in acks:
        assert ack["method"] == "notifications/subscriptions/acknowledged"
        assert ack["params"]["notifications"] == asked
    subscription = {"io.modelcontextprotocol/subscriptionId": "sub-1"}
    assert [note["method"] for note in owner] == [
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    ]
    assert all(note["params"]["_meta"] == subscription for note in owner)
    assert owner[1]["params"]["uri"] == "hub://catalog"
    assert anyone["method"] == "notifications/resources/updated"


class Peer:
    """Where notices to one client go. It takes one for each time that it is let."""

    def __init__(self, takes: int = 0) -> None:
        self.room = asyncio.Semaphore(takes)
        self.came = self.told = 0
        self.news = asyncio.Event()

    async def send_resource_list_changed(self) -> None:
        self.came += 1
        self.news.set()
        await self.room.acquire()
        self.told += 1
        self.news.set()

    async def reaches(self, *, came: int = 0, told: int = 0) -> None:
        while self.came < came or self.told < told:
            self.news.clear()
            await self.news.wait()


@contextlib.asynccontextmanager
async def announcing(news: News, *peers: Peer) -> AsyncIterator[None]:
    """Tells these, as sessions of the owner."""
    sessions = Sessions()
    for number, peer in enumerate(peers):
        sessions.opened(str(number), OWNER)
        session = sessions.get(str(number))
        assert session is not None
        session.peer = peer
    telling = asyncio.create_task(Announcing(news, "here", sessions, {}).run())
    await asyncio.sleep(0)  # it looks from here on
    async with asyncio.timeout(60):
        yield
    telling.cancel()


def test_a_client_that_reads_nothing_does_not_keep_others_waiting():
    async def main():
        news, deaf, hears = News(), Peer(), Peer(takes=2)
        async with announcing(news, deaf, hears):
            for turn in (1, 2):
                news.tell("offered", change("offered", "public")["agent"])
                await hears.reaches(told=turn)
        assert (deaf.came, deaf.told) == (1, 0)

    asyncio.run(main())


def test_what_changes_during_a_notice_is_told_after_it():
    async def main():
        news, slow, other = News(), Peer(), Peer(takes=2)
        async with announcing(news, slow, other):
            for turn in (1, 2):
                news.tell("offered", change("offered", "public")["agent"])
                await other.reaches(told=turn)
            assert slow.came == 1
            slow.room.release()
            await slow.reaches(came=2, told=1)

    asyncio.run(main())
