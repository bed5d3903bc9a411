"""One script, two clients: in the node's process and over ``/ws``. Both are told the same.

Each client has two fresh nodes of its own, ``a``, which it talks to, and ``b``, which ``a`` joined;
so every number, id and word can be compared.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import aios_nb as aios
from aios_nb.agents.definition import describe
from aios_nb.client import LocalClient, RemoteClient, SiteClient, get_file, put_file
from aios_nb.errors import AiosError
from aios_nb.tokens import Token
from aios_nb.wire.methods import METHODS
from tests.between.conftest import Make
from tests.players import asks, breaks, forever, spell, weigh
from tests.sites import TestSite
from tests.transcripts import Transcript

NOBODY = "z" * 32
CONTENT = bytes(range(256)) * 4000
"""More than one chunk."""


def sheet(_text: str) -> Any:
    return aios.File(CONTENT, name="sheet.bin")


def numbers(_text: str) -> dict[str, Any]:
    return {"columns": ["n"], "rows": [[1], [2.5], [None]]}


HERE = (spell, breaks, forever, asks, weigh)
THERE = (
    *(describe(one, name=f"far-{one.__name__}") for one in (spell, breaks, forever, asks, weigh)),
    describe(sheet, name="far-sheet"),
    describe(numbers, name="far-numbers"),
)


class World:
    """What a chapter of the script talks to."""

    def __init__(self, a: TestSite, b: TestSite, client: SiteClient) -> None:
        self.a = a
        self.b = b
        self.b_id = b.node.node_id
        self.tell = Transcript(client)

    def far(self, name: str) -> str:
        return f"{name}@{self.b_id}"


Chapter = Callable[[World], Awaitable[None]]
CHAPTERS: dict[str, Chapter] = {}


def chapter(work: Chapter) -> Chapter:
    CHAPTERS[work.__name__] = work
    return work


@chapter
async def looking(w: World) -> None:
    await w.tell.call("agents.card", agent="spell")
    await w.tell.call("agents.card", agent="far-spell")
    await w.tell.call("agents.card", agent=w.far("far-spell"))
    for method in ("node.info", "node.callers", "agents.list", "chat.list", "tokens.list"):
        await w.tell.call(method)  # with the link to the other node up: it is counted
    await w.tell.call("node.peers")
    await w.tell.call("agents.search", query="word after word")
    await w.tell.call("agents.search", query="word", limit=0)


@chapter
async def programs_of_others(w: World) -> None:
    address = f"{w.b.node.url}/mcp"
    await w.tell.call("hub.add", address=address)
    await w.tell.call("hub.add", address=address, local=True, name="far-tools")
    await w.tell.call("hub.add", address=address, local=True)
    await w.tell.call("agents.card", agent="far-tools")
    await w.tell.call("chat.send", agent="far-tools", text="no-such-tool")
    for method in ("hub.list", "hub.refresh", "agents.list"):
        await w.tell.call(method)
    await w.tell.call("hub.approve", name="far-tools")
    await w.tell.call("hub.import", url=w.b.node.url, local=True)
    await w.tell.call("hub.remove", name="far-tools")
    await w.tell.call("hub.remove", name="far-tools")


@chapter
async def talking(w: World) -> None:
    first = await w.tell.call("chat.send", agent="spell", text="a b", message_id="m-1")
    here = {"conversation": first["conversation"]}
    await w.tell.call("chat.send", agent="spell", text="a b", message_id="m-1")
    await w.tell.call("chat.send", agent="spell", text="other", message_id="m-1")
    await w.tell.call("chat.send", agent="breaks", text="x", message_id="m-2", **here)
    await w.tell.call("chat.send", agent="breaks", text="x", message_id="m-2", **here)
    await w.tell.call("chat.send", agent="spell", text="é 東京 \U0001f600", data={"a": [1, None]})
    await w.tell.call("chat.send", agent="forever", text="x", deadline_s=2)
    await w.tell.call("chat.post", text="@spell one", message_id="m-3", **here)
    await w.tell.stream(message_id="m-3", offset=0)
    await w.tell.stream(message_id="m-3", offset=2)
    await w.tell.call("chat.edit", message_id="m-1", text="a c", **here)
    await w.tell.call("chat.react", message_id="m-1", reaction="+1", **here)
    await w.tell.call("chat.join", who="echo", **here)
    await w.tell.call("chat.leave", who="echo", **here)
    await w.tell.call("chat.rename", title="letters", **here)
    await w.tell.call("chat.history", **here)
    await w.tell.call("chat.history", after=3, limit=2, **here)
    for form in ("md", "json", "ipynb", "pdf"):
        await w.tell.call("chat.export", format=form, **here)
    await w.tell.call("chat.list", limit=2)
    await w.tell.call("node.callers")
    await w.tell.call("chat.delete", **here)
    await w.tell.call("chat.history", **here)


@chapter
async def mistakes(w: World) -> None:
    await w.tell.call("agents.crad")
    await w.tell.call("agents.card", agent="spel")
    await w.tell.call("agents.card", agnet="spell")
    await w.tell.call("agents.card", agent="far-spel")
    await w.tell.call("agents.card", agent=f"spell@{NOBODY}")
    await w.tell.call("chat.stream", agent="spell", text="x")
    await w.tell.call("chat.unwatch", watch="w1")
    await w.tell.call("chat.send", agent="spell", text=5)
    await w.tell.call("chat.send", agent="spell", text="x", deadline_s=-1)
    await w.tell.call("chat.send", agent="spell", text="x", message_id="no id")
    await w.tell.call("chat.send", agent="spell", text="x", data={"not": object()})
    await w.tell.call("chat.send", agent="spell", text="\ud800")
    await w.tell.call("chat.send", agent="spell", text="x" * (2 << 20))
    await w.tell.call("chat.send", agent="spell", text="x" * (5 << 20))
    await w.tell.call("chat.send", agent="spell", text="x", data=_nested(5000))
    await w.tell.call("chat.send", agent="spell", text="x", data=float("nan"))
    await w.tell.call("chat.answer", message_id="m-none", text="x")
    await w.tell.call("chat.cancel", message_id="m-none")
    await w.tell.call("chat.watch")
    await w.tell.stream(message_id="m-none", offset=0)
    await w.tell.stream(agent="spell")
    await w.tell.stream(agent="nobody", text="x")
    await w.tell.call("blobs.get", sha256="0" * 64)
    await w.tell.call("blobs.put", sha256="0" * 64, offset=0, chunk="eA==", last=True)
    await w.tell.call("nodes.allow", node="short")
    await w.tell.call("tokens.revoke", id="none")
    await w.tell.call("agents.withdraw", name="nobody")
    await w.tell.call("aios.message", envelope={"sender": 1})
    for method, params in (("chat.watch", {"conversation": "c-none"}), ("chat.watch", {"x": 1})):
        async with w.tell.flow(method, **params) as flow:
            for _ in range(2):
                try:
                    await flow.result()
                except AiosError as error:
                    w.tell.error(method, error)
    try:
        w.tell.client.notices("chat.send", agent="spell", text="x")
    except AiosError as error:
        w.tell.error("notices", error)


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@chapter
async def streams(w: World) -> None:
    for agent in ("spell", w.far("far-spell")):
        first = await w.tell.stream(agent=agent, text="a b c", message_id=f"m-{len(agent)}")
        await w.tell.stream(message_id=first["message_id"], offset=3)
        await w.tell.stream(message_id=first["reply_id"], offset=0)
    for agent in ("breaks", w.far("far-breaks"), w.far("far-nobody"), f"spell@{NOBODY}"):
        await w.tell.stream(agent=agent, text="x")


@chapter
async def a_reply_by_its_own_id(w: World) -> None:
    """Two replies to one message, each listened to while it is written."""
    opened = await w.tell.call("chat.open", agents=["forever", w.far("far-forever")])
    posted = await w.tell.call(
        "chat.post", text=f"@forever @{w.far('far-forever')} go", message_id="m-1", **opened
    )
    for reply in posted["replies"]:
        async with w.tell.flow("chat.stream", message_id=reply["reply_id"], offset=0) as flow:
            w.tell.note("piece", await anext(flow))
    await w.tell.call("chat.cancel", message_id="m-1")


@chapter
async def closed_flows(w: World) -> None:
    async def told(about: str, wait: Awaitable[Any]) -> None:
        try:
            w.tell.note(about, await asyncio.wait_for(wait, 20))
        except (AiosError, StopAsyncIteration) as error:
            w.tell.note(about, [type(error).__name__, str(error)])

    opened = await w.tell.call("chat.open", agents=["spell"])
    for method, params in (
        ("chat.stream", {"agent": "forever", "text": "x"}),
        ("chat.watch", dict(opened)),
        ("agents.watch", {}),
    ):
        flow = w.tell.client.notices(method, **params)
        flow.close()
        await told("closed unread: the next", anext(flow))
        await told("closed unread: result", flow.result())

        flow = w.tell.client.notices(method, **params)
        if method == "chat.stream":
            await anext(flow)
        else:
            await flow.result()
        waiting = asyncio.ensure_future(anext(flow))
        for _ in range(10):
            await asyncio.sleep(0)  # it waits by now
        flow.close()
        await told("closed in the middle: who waits", waiting)
        await told("closed in the middle: result", flow.result())


@chapter
async def a_flow_that_failed_fails_again(w: World) -> None:
    flow = w.tell.client.notices("chat.stream", agent="breaks", text="x", message_id="m-1")
    for _ in range(2):
        try:
            await anext(flow)
        except AiosError as error:
            w.tell.error("next", error)
        try:
            await flow.result()
        except AiosError as error:
            w.tell.error("result", error)


@chapter
async def watching_a_conversation(w: World) -> None:
    opened = await w.tell.call("chat.open", agents=[w.far("far-spell")])
    async with (
        w.tell.flow("chat.watch", after=0, **opened) as this,
        w.tell.flow("chat.watch") as everything,
    ):
        w.tell.note("result", await this.result())
        await everything.result()
        await w.tell.call("chat.send", agent="far-spell", text="x y", **opened)
        await w.tell.call("chat.rename", title="t", **opened)
        for flow in (this, everything):
            for _ in range(2):
                event = await anext(flow)
                event.pop("status")  # of the moment in which it is read
                w.tell.note("event", event)


@chapter
async def watching_agents(w: World) -> None:
    async with w.tell.flow("agents.watch") as flow:
        w.tell.note("result", await flow.result())
        for about in ("One", "Another"):
            offered = describe(lambda text: text, name="spare", about=about)
            await asyncio.to_thread(w.a.node.host, offered)
            w.tell.note("event", await anext(flow))
        await w.tell.call("agents.withdraw", name="spare")
        w.tell.note("event", await anext(flow))


@chapter
async def files(w: World) -> None:
    w.tell.methods |= {"blobs.put", "blobs.get"}
    file = await put_file(w.tell.client, CONTENT, "big.bin", "application/octet-stream")
    assert await get_file(w.tell.client, file) == CONTENT
    for agent in ("weigh", w.far("far-weigh")):
        await w.tell.call("chat.send", agent=agent, text="x", files=[file])
    answer = await w.tell.call("chat.send", agent="far-sheet", text="x")
    [given] = answer["files"]
    content = await get_file(w.tell.client, given)
    w.tell.note("bytes", hashlib.sha256(content).hexdigest() == given["sha256"])
    empty = await put_file(w.tell.client, b"", "empty", "text/plain")
    await w.tell.call("chat.send", agent="weigh", text="x", files=[empty])
    await w.tell.call("chat.send", agent="weigh", text="x", files=[{**file, "sha256": "0" * 64}])


@chapter
async def agents_of_two_nodes_in_one_conversation(w: World) -> None:
    opened = await w.tell.call(
        "chat.open", agents=["spell", "far-spell", "far-numbers"], title="two"
    )
    await w.tell.call("chat.send", agent="spell", text="a", **opened)
    await w.tell.call("chat.send", agent="far-spell", text="b", **opened)
    await w.tell.call("chat.send", agent="far-numbers", text="c", **opened)
    await w.tell.call("chat.post", text="@spell hi", message_id="m-1", **opened)
    await w.tell.stream(message_id="m-1", offset=0)
    await w.tell.call("chat.post", text="@far-spell hi", message_id="m-2", **opened)
    await w.tell.stream(message_id="m-2", offset=0)
    await w.tell.call("chat.history", **opened)
    await w.tell.call("chat.export", format="md", **opened)
    await w.tell.call("chat.list")
    await w.tell.call("chat.open", agents=["far-nobody"])
    await w.tell.call("node.peers")


@chapter
async def questions(w: World) -> None:
    for agent in ("asks", "far-asks"):
        asked = await w.tell.stream(agent=agent, text="hi", message_id=f"m-{agent}")
        await w.tell.call("chat.answer", message_id="m-none", text="Ada")
        await w.tell.call("chat.answer", message_id=f"m-{agent}", text="Ada", wait=False)
        await w.tell.stream(message_id=f"m-{agent}", question=asked["question"])
        await w.tell.call("chat.answer", message_id=f"m-{agent}", text="Ada")
        await w.tell.call("chat.history", conversation=asked["conversation"])
        await w.tell.call("chat.send", agent=agent, text="hi", message_id=f"m2-{agent}")
        await w.tell.call("chat.answer", message_id=f"m2-{agent}", text="Bob")


@chapter
async def cancelling(w: World) -> None:
    for agent in ("forever", "far-forever"):
        async with w.tell.flow("chat.stream", agent=agent, text="x", message_id=agent) as flow:
            await anext(flow)
            await w.tell.call("chat.cancel", message_id=agent)
            try:
                await flow.result()
            except AiosError as error:
                w.tell.error("cancelled", error)
        await w.tell.call("chat.cancel", message_id=agent)
        await w.tell.stream(message_id=agent, offset=0)
        await w.tell.call("chat.send", agent=agent, text="x", message_id=agent)


@chapter
async def a_client_that_stops_waiting_stops_nothing(w: World) -> None:
    send = w.tell.client.call("chat.send", agent="far-asks", text="x", message_id="m-1")
    waiting = asyncio.ensure_future(send)
    async with w.tell.flow("chat.watch", after=0) as flow:
        await anext(flow)
        waiting.cancel()
        await asyncio.wait([waiting])
    await w.tell.stream(message_id="m-1", offset=0)
    await w.tell.call("chat.answer", message_id="m-1", text="Ada")


@chapter
async def without_waiting(w: World) -> None:
    for agent in ("spell", "far-spell"):
        await w.tell.call("chat.send", agent=agent, text="x", message_id=agent, wait=False)
        await w.tell.stream(message_id=agent, offset=0)
        await w.tell.call("chat.send", agent=agent, text="x", message_id=agent)


@chapter
async def a_node_that_is_away(w: World) -> None:
    await w.tell.call("chat.send", agent="far-spell", text="x", message_id="before")
    await asyncio.to_thread(w.b.stop)
    far = w.far("far-spell")
    await w.tell.call("chat.send", agent=far, text="y", message_id="m-1", deadline_s=1)
    await w.tell.call("chat.send", agent=far, text="y", message_id="m-1", deadline_s=1)
    await w.tell.stream(agent=far, text="y", message_id="m-2", deadline_s=1)
    later = {"agent": far, "text": "y", "message_id": "m-3", "deadline_s": 0.5}
    sent = await w.tell.call("chat.send", wait=False, **later)
    await w.tell.stream(message_id="m-3", offset=0)
    await w.tell.call("chat.history", conversation=sent["conversation"])
    await w.tell.call("chat.send", agent=far, text="x", message_id="before")
    await w.tell.call("agents.card", agent=far)


@chapter
async def rights(w: World) -> None:
    await w.tell.call("nodes.block", node=NOBODY)
    await w.tell.call("nodes.allow", node=NOBODY)
    await w.tell.call("nodes.block", node=w.b_id)
    await w.tell.call("chat.send", agent=w.far("far-spell"), text="x", deadline_s=1)
    await w.tell.call("node.callers")
    await w.tell.call("nodes.allow", node=w.b_id)
    await w.tell.call("chat.send", agent=w.far("far-spell"), text="x")


@chapter
async def tokens(w: World) -> None:
    made = await w.tell.call("tokens.create", scope="chat", prefix="tg:")
    await w.tell.call("tokens.create", scope="all", prefix="tg:")
    await w.tell.call("tokens.create", scope="chat", prefix="owner:")
    await w.tell.call("tokens.create", **{"scope": "chat", "prefix": "ow:", "as": "owner"})
    await w.tell.call("tokens.list")
    await w.tell.call("tokens.revoke", id=made["id"])
    await w.tell.call("tokens.revoke", id=made["id"])
    await w.tell.call("tokens.list")


@chapter
async def envelopes(w: World) -> None:
    def said(agent: str, message_id: str) -> dict[str, Any]:
        return {
            "sender": {"id": "somebody", "type": "human"},
            "recipient": {"id": agent, "type": "agent"},
            "message_type": "request",
            "message_id": message_id,
            "content": {"task": "a b"},
        }

    for number, agent in enumerate(("spell", "breaks", "nobody")):
        await w.tell.call("aios.message", envelope=said(agent, f"m-{number}"))
        await w.tell.call("aios.message", envelope=said(agent, f"m-{number}"), stream=True)


async def as_a_bridge(w: World) -> None:
    """With a scoped token; not as the owner."""
    opened = await w.tell.call("chat.open", agents=["spell", "far-spell"])
    sender = {"sender": "tg:1:2"}
    await w.tell.call("chat.post", text="@far-spell hi", message_id="m-1", **sender, **opened)
    await w.tell.stream(message_id="m-1", offset=0)
    await w.tell.call("chat.post", text="hi", message_id="m-2", sender="owner", **opened)
    await w.tell.call("chat.send", agent="far-asks", text="x", message_id="m-3")
    await w.tell.call("chat.answer", message_id="m-3", text="Ada")
    await w.tell.call("chat.history", **opened)
    await w.tell.call("chat.list")
    for method in ("node.info", "node.peers", "agents.list", "tokens.list"):
        await w.tell.call(method)
    await w.tell.stream(agent="private", text="x")
    async with w.tell.flow("agents.watch") as flow:
        try:
            await flow.result()
        except AiosError as error:
            w.tell.error("agents.watch", error)


async def _told(a: TestSite, b: TestSite, client: SiteClient, work: Chapter) -> Transcript:
    world = World(a, b, client)
    try:
        async with asyncio.timeout(120):
            await work(world)
    finally:
        await client.close()
    return world.tell


@pytest.fixture
def compared(node: Make, tmp_path: Path) -> Callable[..., Transcript]:
    """Has a chapter told over both clients, and says what both were told."""

    def compare(work: Chapter, connect: Callable[[TestSite, str], SiteClient]) -> Transcript:
        told = []
        for kind in ("local", "remote"):
            b = node("b", *THERE, home=tmp_path / kind / "b")
            a = node("a", *HERE, join=b, home=tmp_path / kind / "a")
            client = connect(a, kind)
            told.append(a.node.run(lambda a=a, b=b, client=client: _told(a, b, client, work)))
        for local, remote in zip(told[0].said, told[1].said, strict=True):
            assert remote == local
        return told[0]

    return compare


def _owner(a: TestSite, kind: str) -> SiteClient:
    run = a.node.run_info
    assert run is not None
    if kind == "local":
        return a.node.client
    return a.node.run(lambda: RemoteClient.connect(run))


def _bridge(a: TestSite, kind: str) -> SiteClient:
    made = a.call("tokens.create", scope="chat", prefix="tg:")
    a.node.host(describe(lambda text: text, name="private", access="private"))
    run = a.node.run_info
    assert run is not None
    if kind == "remote":
        return a.node.run(lambda: RemoteClient.connect(run, token=made["token"]))
    principal = Token(made["id"], "chat", "tg:", as_owner=False, created=0).principal
    return LocalClient(a.node.client._dispatcher, principal, run.node_id, run.name)


@pytest.mark.parametrize("name", CHAPTERS)
def test_both_clients_are_told_the_same(compared: Callable[..., Transcript], name: str) -> None:
    assert compared(CHAPTERS[name], _owner).said


def test_a_scoped_token_is_told_the_same_by_both(compared: Callable[..., Transcript]) -> None:
    assert compared(as_a_bridge, _bridge).said


def test_the_script_has_every_method(node: Make) -> None:
    called: set[str] = set()
    for number, work in enumerate(CHAPTERS.values()):
        b = node(f"b{number}", *THERE)
        a = node(f"a{number}", *HERE, join=b)
        client = a.node.client
        told = a.node.run(lambda a=a, b=b, client=client, work=work: _told(a, b, client, work))
        called |= told.methods
    for_nodes = {"gossip.packet", "gossip.sync"}
    assert called >= {row.name for row in METHODS} - for_nodes
