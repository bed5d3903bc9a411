"""Who may do what: every method by every caller, and the sentences of the contract."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from aios_nb.access import Caller, Principal
from aios_nb.agents.definition import describe
from aios_nb.chat.log import Draft
from aios_nb.client import RemoteClient, get_file, put_file
from aios_nb.envelope import Kind, Sender, new_id
from aios_nb.errors import ConnectionLost, InvalidParams, NoSuchAgent, NotAllowed, RpcError
from aios_nb.wire.methods import METHODS
from tests import callers
from tests.callers import FORBIDDEN, FRIEND, STRANGER, WAIT_S, Way, World, code_of
from tests.hub.programs import ELSEWHERE, bring_in
from tests.sites import Gate, TestSite

CONTENT = b"some bytes"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
FILE = {"name": "some.txt", "mime": "text/plain", "size": len(CONTENT), "sha256": SHA256}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("rights") / "home")
    yield world
    world.stop()


def asked(agent: str, *path: str) -> dict[str, Any]:
    """The params of ``aios.message``."""
    envelope = {
        "sender": {"id": "somebody", "type": "human"},
        "recipient": {"id": agent, "type": "agent"},
        "message_type": "request",
        "message_id": new_id("m"),
        "content": {"task": "hello"},
        "routing": {"path": list(path)},
    }
    return {"envelope": envelope}


# The table -----------------------------------------------------------------------------


def tried(world: World, method: str, way: Way) -> dict[str, Any]:
    """Params with which the method works, for a caller that may use it at all."""
    answer = "asks" if method == "chat.answer" else "common"
    done = way("chat.send", {"agent": answer, "text": "hello"})
    here = {"conversation": done["conversation"]}
    this = {**here, "message_id": done["message_id"]}
    chunk = {"sha256": SHA256, "offset": 0, "chunk": base64.b64encode(CONTENT).decode()}
    if method == "chat.leave":
        way("chat.join", {**here, "who": "friendly"})
    if method == "blobs.get":
        way("blobs.put", {**chunk, "last": True})
    if method.startswith("hub."):
        bring_in(world.site, {"hub.add": ""}.get(method, "sums"))
    if method == "agents.withdraw":
        world.site.node.host(describe(callers.friendly, name="spare"))
    return {
        "nodes.allow": {"node": "n" * 32},
        "nodes.block": {"node": "o" * 32},
        "tokens.create": {"scope": "chat", "prefix": "sl:"},
        "tokens.revoke": {"id": world.token("sl:")["id"]},
        "agents.search": {"query": "common"},
        "agents.withdraw": {"name": "spare"},
        "agents.card": {"agent": "common"},
        "hub.add": {"address": ELSEWHERE},
        "hub.remove": {"name": "sums"},
        "hub.approve": {"name": "sums"},
        "hub.import": {"url": ELSEWHERE},
        "chat.open": {"agents": ["common"]},
        "chat.send": {"agent": "common", "text": "hello"},
        "chat.stream": {"agent": "common", "text": "hello"},
        "chat.post": {**here, "text": "hello"},
        "chat.answer": {"message_id": done["message_id"], "text": "yes", "wait": False},
        "chat.cancel": {"message_id": done["message_id"]},
        "chat.edit": {**this, "text": "hallo"},
        "chat.react": {**this, "reaction": "+1"},
        "chat.join": {**here, "who": "friendly"},
        "chat.leave": {**here, "who": "friendly"},
        "chat.rename": {**here, "title": "greetings"},
        "chat.delete": here,
        "chat.export": here,
        "chat.history": here,
        "chat.unwatch": {"watch": "w1"},
        "blobs.put": {**chunk, "last": True},
        "blobs.get": {"sha256": SHA256},
        "aios.message": asked("common"),
        "gossip.packet": {"data": "AA=="},
        "gossip.sync": {"digest": ""},
    }.get(method, {})


@pytest.mark.parametrize("name", callers.NAMES)
@pytest.mark.parametrize("row", METHODS, ids=lambda row: row.name)
def test_a_method_answers_exactly_the_callers_of_its_row(world: World, row: Any, name: str):
    kind, way = next((kind, way) for who, kind, way in world.ways() if who == name)
    may_chat = kind in {Caller.OWNER, Caller.TOKEN}
    params = tried(world, row.name, way if may_chat else world.over_rpc(world.owner))
    if row.name == "chat.stream" and not may_chat:
        params = {"message_id": "m-1"}  # nodes go on listening; they ask with aios.message
    code = code_of(way, row.name, params)

    if kind not in row.callers:
        assert code == FORBIDDEN
    elif row.name == "chat.unwatch" and "/rpc" in name:
        assert code == -32601  # there is nothing to unwatch
    elif may_chat or row.name in {"node.info", "agents.search", "agents.card", "aios.message"}:
        assert code == 0
    else:  # not a message, a file or an answer of theirs
        assert code != FORBIDDEN


def test_the_cells_are_those_of_every_caller(world: World):
    tried = [(name, kind) for name, kind, _ in world.ways()]

    assert [name for name, _ in tried] == list(callers.NAMES)
    assert {kind for _, kind in tried} == set(Caller)


def test_the_page_has_the_methods_of_each_caller():
    page = (Path(__file__).parents[1] / "PROTOCOL.md").read_text(encoding="utf-8")
    section = page.partition("\n## Callers\n")[2].partition("\n## ")[0]
    cells = {
        line.split(" | ")[0].strip("| "): line.split(" | ")[2].strip(" |").replace("`", "")
        for line in section.splitlines()
        if line.startswith("| ") and not line.startswith("| caller")
    }

    def named(words: str) -> set[str]:
        said = words.split(", ")
        return {
            row.name
            for row in METHODS
            if row.name in said or f"{row.name.partition('.')[0]}.*" in said
        }

    def allowed(kind: Caller) -> set[str]:
        return {row.name for row in METHODS if kind in row.callers}

    assert cells["owner"] == "all"
    assert allowed(Caller.OWNER) == {row.name for row in METHODS}
    assert named(cells["scoped token"]) == allowed(Caller.TOKEN)
    link = named(cells["known node, any node"])
    assert link == allowed(Caller.KNOWN) == allowed(Caller.NODE)
    assert cells["anyone"] == "none"
    assert allowed(Caller.ANYONE) == set()


@pytest.mark.parametrize(
    ("agent", "reached_by"),
    [
        ("diary", {"owner", "scoped token as owner"}),
        ("friendly", {"owner", "scoped token as owner", "scoped token", "known node"}),
        ("common", {"owner", "scoped token as owner", "scoped token", "known node", "any node"}),
    ],
)
def test_an_agent_answers_exactly_those_its_access_names(
    world: World, agent: str, reached_by: set[str]
):
    reached = set()
    for name, kind, way in world.ways():
        if kind is Caller.ANYONE:
            continue
        who = name.partition(" over")[0]
        found = way("agents.search", {"query": agent})["agents"]
        code = code_of(way, "agents.card", {"agent": agent})
        assert code in {0, -32001}
        assert (agent in {row["name"] for row in found}) == (code == 0)
        if kind is not Caller.TOKEN:
            assert code_of(way, "aios.message", asked(agent)) == code
        if kind in {Caller.OWNER, Caller.TOKEN}:
            assert code_of(way, "chat.send", {"agent": agent, "text": "x"}) == code
        if code == 0:
            reached.add(who)

    assert reached == reached_by


# A scoped token -------------------------------------------------------------------------


@pytest.fixture
def bridge(world: World) -> Way:
    return world.over_rpc(world.token("tg:")["token"])


@pytest.fixture
def owner(world: World) -> Way:
    return world.over_rpc(world.owner)


def opened(way: Way, *agents: str) -> dict[str, str]:
    """A new conversation, as a param."""
    return {"conversation": way("chat.open", {"agents": agents or ("common",)})["conversation"]}


def rows(way: Way, here: dict[str, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = way("chat.history", here)["messages"]
    return found


def listed(way: Way) -> set[str]:
    return {row["conversation"] for row in way("chat.list", {"limit": 1000})["conversations"]}


READING = {
    "chat.history": {},
    "chat.export": {},
    "chat.watch": {},
    "chat.rename": {"title": "mine"},
    "chat.post": {"text": "hello"},
    "chat.join": {"who": "common"},
    "chat.leave": {"who": "common"},
    "chat.delete": {},
}


@pytest.mark.parametrize("method", READING)
@pytest.mark.parametrize("as_owner", [False, True])
def test_a_token_cannot_touch_the_owners_conversations(
    world: World, owner: Way, method: str, as_owner: bool
):
    way = world.over_rpc(world.trusted["token"] if as_owner else world.bridge["token"])
    here = opened(owner)
    with pytest.raises(InvalidParams) as theirs:
        way(method, {**here, **READING[method]})
    with pytest.raises(InvalidParams) as missing:
        way(method, {"conversation": "nowhere", **READING[method]})

    assert here["conversation"] not in listed(way)
    said = theirs.value.message.replace(here["conversation"], "nowhere")
    assert said == missing.value.message  # nor learn that they exist


def test_two_tokens_do_not_see_each_other(world: World, bridge: Way):
    other = world.over_rpc(world.token("sl:")["token"])
    here = opened(bridge)

    assert here["conversation"] in listed(bridge)
    assert here["conversation"] not in listed(other)
    with pytest.raises(InvalidParams, match="no such conversation"):
        rows(other, here)


def test_the_owner_sees_what_a_token_opened(bridge: Way, owner: Way):
    here = opened(bridge)
    bridge("chat.post", {**here, "text": "hello", "sender": "tg:1:2"})

    assert here["conversation"] in listed(owner)
    assert rows(owner, here)[0]["sender"] == {"id": "tg:1:2", "type": "human"}


def test_a_token_sees_what_somebody_behind_it_was_joined_to_and_no_more_after(
    bridge: Way, owner: Way
):
    here = opened(owner)
    owner("chat.join", {**here, "who": "tg:1:2"})
    assert here["conversation"] in listed(bridge)
    assert [row["ref"] for row in rows(bridge, here)] == ["tg:1:2"]
    owner("chat.leave", {**here, "who": "tg:1:2"})

    assert here["conversation"] not in listed(bridge)
    with pytest.raises(InvalidParams, match="no such conversation"):
        rows(bridge, here)


def test_a_token_that_was_joined_itself_sees_the_conversation(world: World, owner: Way):
    made = world.token("tg:")
    here = opened(owner)
    owner("chat.join", {**here, "who": f"token:{made['id']}"})

    assert rows(world.over_rpc(made["token"]), here)
    with pytest.raises(InvalidParams):
        rows(world.over_rpc(world.bridge["token"]), here)


def test_people_behind_another_nodes_bridge_are_not_behind_ours(bridge: Way, owner: Way):
    here = opened(owner)
    owner("chat.join", {**here, "who": f"tg:1:2@{STRANGER}"})

    assert here["conversation"] not in listed(bridge)
    with pytest.raises(InvalidParams, match="no such conversation"):
        rows(bridge, here)
    assert len(owner("chat.history", here)["agents"]) == 1  # nor an agent


@pytest.mark.parametrize(
    "members",
    [
        (),
        ("tg:1:2",),
        ("tg:",),
        ("sl:1",),
        ("sl:1", "tg:9"),
        ("xtg:1",),
        ("TG:1",),
        (f"tg:1:2@{STRANGER}",),
        (f"owner@{STRANGER}",),
        ("token:other",),
        ("token:me",),
        ("t",),
    ],
)
@pytest.mark.parametrize("prefix", ["", "tg:", "tg:1:"])
@pytest.mark.parametrize("opener", ["somebody", "token:me"])
def test_lists_watches_and_single_conversations_agree_on_who_sees_what(
    world: World, members: tuple[str, ...], prefix: str, opener: str
):
    principal = Principal(Caller.TOKEN, "token:me", prefix)
    chat = world.site.rooms.chat

    async def seen() -> tuple[bool, bool, bool]:
        conversation = chat.log.new(opener, [])
        conversation.members = set(members)
        await chat.log.save(conversation)
        before = chat.log.cursor
        await chat.log.append(conversation, Draft("e", Kind.JOIN, Sender("o", "human"), ref="x"))
        await chat.log.save_touched()
        rows = chat.reader.listing(principal, 1000, None)
        events = chat.reader.since(before, None, principal)
        return (
            conversation.visible_to(principal),
            conversation.id in {row["conversation"] for row in rows},
            conversation.id in {event.conversation for event in events},
        )

    single, in_list, in_watch = world.site.node.run(seen)
    assert single == in_list == in_watch


def test_who_is_taken_out_hears_no_more(world: World, owner: Way):
    here, other = opened(owner), opened(owner)
    for place in (here, other):
        owner("chat.join", {**place, "who": "tg:1:2"})

    async def heard() -> list[str]:
        client = await RemoteClient.connect(world.info, token=world.bridge["token"])
        boss = await RemoteClient.connect(world.info)
        try:
            watch = client.notices("chat.watch")
            await watch.result()
            await boss.call("chat.post", **here, text="hello")
            await boss.call("chat.leave", **here, who="tg:1:2")
            await boss.call("chat.post", **here, text="secret")
            await boss.call("chat.post", **other, text="the end")
            texts: list[str] = []
            while "the end" not in texts:
                texts.append((await anext(aiter(watch)))["text"])
            return texts
        finally:
            await client.close()
            await boss.close()

    def seen_in_it(principal: Principal) -> set[str]:
        chat = world.site.rooms.chat
        conversation = chat.log.get(here["conversation"])
        return {event.text for event in chat.reader.since(0, conversation, principal)}

    assert "secret" not in asyncio.run(heard())
    boss, bridge = Principal(Caller.OWNER, "o"), Principal(Caller.TOKEN, "token:x", "tg:")
    assert {"hello", "secret"} <= world.site.on_loop(lambda: seen_in_it(boss))
    assert world.site.on_loop(lambda: seen_in_it(bridge)) == set()


# Speaking for others


@pytest.mark.parametrize(
    "sender",
    [
        "sl:1:2",
        "TG:1:2",
        "token:other",
        f"owner@{STRANGER}",
        f"tg:1:2@{STRANGER}",
        "common",
        FRIEND,
        "anyone",
    ],
)
@pytest.mark.parametrize("as_owner", [False, True])
def test_a_token_cannot_speak_for_others(world: World, sender: str, as_owner: bool):
    way = world.over_rpc(world.trusted["token"] if as_owner else world.bridge["token"])
    here = opened(way)
    with pytest.raises(NotAllowed):
        way("chat.post", {**here, "text": "hello", "sender": sender})

    assert rows(way, here) == []


def test_a_token_cannot_speak_for_the_owner_or_the_agents_of_this_node(world: World, bridge: Way):
    here = opened(bridge)
    node = world.site.node.node_id
    for sender in (f"owner@{node}", f"common@{node}"):
        with pytest.raises(NotAllowed):
            bridge("chat.post", {**here, "text": "hello", "sender": sender})


def test_a_token_speaks_as_itself_unless_it_names_somebody_behind_it(world: World):
    made = world.token("tg:7:")
    way = world.over_rpc(made["token"])
    here = {"conversation": way("chat.send", {"agent": "common", "text": "1"})["conversation"]}
    way("chat.post", {**here, "text": "2", "sender": "tg:7:9"})
    way("chat.post", {**here, "text": "3"})
    said = {row["text"]: row["sender"]["id"] for row in rows(way, here) if row["ref"] is None}

    assert said == {"1": f"token:{made['id']}", "2": "tg:7:9", "3": f"token:{made['id']}"}
    with pytest.raises(NotAllowed):
        way("chat.post", {**here, "text": "4", "sender": "tg:8:9"})


def test_a_senders_id_must_look_like_one(bridge: Way, owner: Way):
    here = opened(bridge)
    for sender in ("tg:", "tg:a b", "tg:" + "x" * 120):
        with pytest.raises(InvalidParams):
            bridge("chat.post", {**here, "text": "hello", "sender": sender})
    with pytest.raises(InvalidParams):
        owner("chat.post", {**here, "text": "hello", "sender": "token:x"})


def test_a_token_reacts_and_answers_for_people_behind_it_alone(bridge: Way, owner: Way):
    waiting = bridge("chat.send", {"agent": "asks", "text": "x"})
    assert waiting["status"] == "input_required"
    here, asked = {"conversation": waiting["conversation"]}, waiting["message_id"]
    this = {**here, "message_id": asked, "reaction": "+1"}
    bridge("chat.react", {**this, "sender": "tg:1:3"})
    answer = {"message_id": asked, "text": "yes", "wait": False}
    for method, params in (("chat.react", this), ("chat.answer", answer)):
        with pytest.raises(NotAllowed):
            bridge(method, {**params, "sender": "sl:1"})
    with pytest.raises(InvalidParams, match="used before"):
        bridge("chat.answer", {**answer, "sender": "tg:1:3", "event_id": asked})
    bridge("chat.answer", {**answer, "sender": "tg:1:3", "event_id": "a1"})
    said = {row["message_id"]: row["sender"]["id"] for row in rows(bridge, here)}
    assert said["a1"] == "tg:1:3"
    assert [row["sender"]["id"] for row in rows(bridge, here) if row["kind"] == "reaction"] == [
        "tg:1:3"
    ]


def test_a_token_edits_what_people_behind_it_wrote_in_their_name(bridge: Way, owner: Way):
    here = opened(bridge)
    theirs = bridge("chat.post", {**here, "text": "helo", "sender": "tg:1:2"})["message_id"]
    mine = owner("chat.post", {**here, "text": "hi"})["message_id"]
    foreign = owner("chat.post", {**here, "text": "hi", "sender": "sl:1"})["message_id"]
    bridge("chat.edit", {**here, "message_id": theirs, "text": "hello"})
    for other in (mine, foreign):
        with pytest.raises(NotAllowed):
            bridge("chat.edit", {**here, "message_id": other, "text": "no"})
    with pytest.raises(NotAllowed):
        owner("chat.edit", {**here, "message_id": theirs, "text": "no"})

    edits = [(row["ref"], row["text"], row["sender"]["id"]) for row in rows(bridge, here)
             if row["kind"] == "edit"]  # fmt: skip
    assert edits == [(theirs, "hello", "tg:1:2")]


def test_a_token_brings_in_only_people_behind_it_and_agents_it_may_call(bridge: Way):
    here = opened(bridge)
    for who in ("tg:1:2", "friendly"):
        bridge("chat.join", {**here, "who": who})
    for who in ("sl:1", "token:other", f"owner@{STRANGER}", f"tg:1:2@{STRANGER}"):
        with pytest.raises(NotAllowed):
            bridge("chat.join", {**here, "who": who})
    with pytest.raises(NoSuchAgent):
        bridge("chat.join", {**here, "who": "diary"})


def test_a_token_takes_out_only_people_behind_it_and_agents_it_may_call(
    world: World, bridge: Way, owner: Way
):
    here = opened(owner, "diary", "common")
    for who in ("tg:1:2", "tg:1:3", "sl:1"):
        owner("chat.join", {**here, "who": who})
    for who in ("tg:1:2", "common"):
        bridge("chat.leave", {**here, "who": who})
    with pytest.raises(NotAllowed):
        bridge("chat.leave", {**here, "who": "sl:1"})
    for who in ("diary", f"diary@{world.site.node.node_id}"):
        with pytest.raises(NoSuchAgent):
            bridge("chat.leave", {**here, "who": who})

    assert [agent.partition("@")[0] for agent in owner("chat.history", here)["agents"]] == ["diary"]


def test_a_token_cannot_wake_a_private_agent_in_a_conversation_it_was_joined_to(
    bridge: Way, owner: Way
):
    here = opened(owner, "diary")
    owner("chat.join", {**here, "who": "tg:1:2"})
    with pytest.raises(NoSuchAgent):
        bridge("chat.post", {**here, "text": "hello", "sender": "tg:1:2"})
    answer = bridge("chat.post", {**here, "text": "@diary @common hello", "sender": "tg:1:2"})

    assert [reply["agent"].partition("@")[0] for reply in answer["replies"]] == ["common"]


def test_a_token_deletes_only_what_it_opened(bridge: Way, owner: Way):
    mine, theirs = opened(bridge), opened(owner)
    owner("chat.join", {**theirs, "who": "tg:1:2"})
    with pytest.raises(NotAllowed):
        bridge("chat.delete", theirs)

    assert bridge("chat.delete", mine)["deleted"]
    assert rows(owner, theirs)


def test_a_token_finds_only_its_own_messages(bridge: Way, owner: Way):
    sent = owner("chat.send", {"agent": "common", "text": "hello"})
    for way_in in (sent["message_id"], sent["reply_id"]):
        for method in ("chat.stream", "chat.cancel"):
            with pytest.raises(InvalidParams):
                bridge(method, {"message_id": way_in})


# Files


def blob(world: World, token: str | None, method: str = "GET", sha256: str = SHA256) -> int:
    """The HTTP status of ``/blobs/SHA256``."""
    where = urlsplit(world.info.url).netloc
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with closing(http.client.HTTPConnection(where, timeout=WAIT_S)) as connection:
        body = CONTENT if method == "PUT" else None
        connection.request(method, f"/blobs/{sha256}", body, headers)
        return connection.getresponse().status


def test_a_bridge_reads_the_files_of_the_conversations_of_its_people(tmp_path: Path):
    world = World(tmp_path / "home")
    try:
        owner = world.over_rpc(world.owner)
        other = world.token("sl:")["token"]
        early, late = opened(owner), opened(owner)
        owner("chat.join", {**early, "who": "tg:1:2"})
        bridge = world.bridge["token"]
        assert [blob(world, world.owner, "PUT"), blob(world, bridge)] == [200, 404]
        owner("chat.post", {**late, "text": "a file", "files": [FILE]})
        assert blob(world, bridge) == 404
        owner("chat.join", {**late, "who": f"tg:1:2@{STRANGER}"})
        assert blob(world, bridge) == 404
        owner("chat.join", {**late, "who": "tg:5:6"})

        assert [blob(world, bridge), blob(world, other), blob(world, None)] == [200, 404, 401]
        again = {**early, "text": "on", "sender": "tg:1:2", "files": [FILE]}
        assert world.over_rpc(bridge)("chat.post", again)
        here = opened(world.over_rpc(other))
        with pytest.raises(InvalidParams, match="no such file"):
            world.over_rpc(other)("chat.post", {**here, "text": "mine", "files": [FILE]})
    finally:
        world.stop()


def test_our_own_client_can_be_a_token(world: World):
    made = world.token("tg:")

    async def main() -> tuple[bytes, str, int]:
        client = await RemoteClient.connect(world.info, token=made["token"])
        try:
            ref = await put_file(client, b"over /ws", "a.txt", "text/plain")
            sent = await client.call("chat.send", agent="common", text="hello", files=[ref])
            code = 0
            try:
                await client.call("tokens.list")
            except NotAllowed as error:
                code = error.code
            return await get_file(client, ref), sent["text"], code
        finally:
            await client.close()

    assert asyncio.run(main()) == (b"over /ws", "common: hello", FORBIDDEN)


def test_a_client_with_a_token_is_still_that_token_after_the_node_restarts(
    make_site: Callable[..., TestSite],
):
    site = make_site()
    made = site.call("tokens.create", scope="chat", prefix="tg:")

    async def main() -> int:
        nonlocal site
        client = await RemoteClient.connect(
            site.node.run_info, token=made["token"], locate=lambda: site.node.run_info
        )
        try:
            await asyncio.to_thread(site.stop)
            site = await asyncio.to_thread(make_site)
            while True:
                try:
                    await client.call("node.info")
                    break
                except ConnectionLost:  # it has not heard yet that the old one is gone
                    continue
            with pytest.raises(NotAllowed) as refusal:
                await client.call("tokens.list")
            return refusal.value.code
        finally:
            await client.close()

    assert asyncio.run(main()) == FORBIDDEN


# Shown once, kept as a hash ------------------------------------------------------------------


def test_a_token_is_shown_once(world: World):
    made = world.token("tg:")
    again = world.site.call("tokens.list")

    assert made["token"] not in json.dumps(again)
    assert made["id"] in {row["id"] for row in again["tokens"]}
    assert {key: made[key] for key in ("id", "scope", "prefix", "as", "created_at")} in again[
        "tokens"
    ]


def test_a_token_survives_a_restart_and_only_its_hash_is_on_the_disk(
    make_site: Callable[..., TestSite], aios_home: Path
):
    site = make_site(describe(callers.common))
    made = site.call("tokens.create", scope="chat", prefix="tg:", **{"as": "owner"})
    secret = made["token"]
    here = opened(lambda method, params: callers.over_rpc(site.node.url, secret, method, params))

    def on_disk() -> bytes:
        files = (path for path in aios_home.rglob("*") if path.is_file())
        return b"".join(path.read_bytes() for path in files)

    written = [on_disk()]
    site.stop()
    written.append(on_disk())
    for content in written:
        assert hashlib.sha256(secret.encode()).digest() in content
        assert secret.encode() not in content
        assert secret.removeprefix("aios_").encode() not in content
    site = make_site(describe(callers.common))

    def again(method: str, params: Any) -> Any:
        return callers.over_rpc(site.node.url, secret, method, params)

    assert again("chat.history", here)["messages"] == []
    assert again("chat.send", {"agent": "echo", "text": "still as owner"})["status"] == "done"
    site.call("tokens.revoke", id=made["id"])
    site.stop()
    site = make_site(describe(callers.common))
    assert code_of(again, "node.info", {}) == FORBIDDEN


def test_a_token_is_written_through_to_the_disk(world: World, monkeypatch: pytest.MonkeyPatch):
    store = world.site.rooms.tokens._store
    levels = []
    through = store.now

    def seen(apply: Any) -> Any:
        levels.append(store._writer.execute("PRAGMA synchronous").fetchone()[0])
        return through(apply)

    monkeypatch.setattr(store, "now", seen)
    made = world.token("tg:")
    world.site.call("tokens.revoke", id=made["id"])
    world.site.call("nodes.block", node="p" * 32)

    assert levels == [2, 2, 2]  # FULL


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"scope": "all", "prefix": "tg:"}, "scope"),
        ({"scope": "chat", "prefix": "tg"}, "prefix"),
        ({"scope": "chat", "prefix": "owner:"}, "owner"),
        ({"scope": "chat", "prefix": "tg:", "as": "known"}, "as"),
        ({"prefix": "tg:"}, "scope"),
    ],
)
def test_a_token_that_cannot_be_meant_is_refused_in_one_line(
    owner: Way, params: dict[str, str], complaint: str
):
    with pytest.raises(InvalidParams, match=complaint):
        owner("tokens.create", params)


# Revoked is out, at once ------------------------------------------------------------------


def test_a_revoked_token_opens_nothing(world: World):
    made = world.token("tg:")
    ways = world.over_rpc(made["token"]), world.over_ws(made["token"])
    assert [code_of(way, "node.info", {}) for way in ways] == [0, 0]
    world.site.call("tokens.revoke", id=made["id"])

    assert code_of(ways[0], "node.info", {}) == FORBIDDEN
    assert blob(world, made["token"], "PUT") == 401
    with pytest.raises(NotAllowed, match="token"):
        asyncio.run(RemoteClient.connect(world.info, token=made["token"]))


def test_open_sockets_of_a_revoked_token_are_closed_and_others_are_not(world: World):
    made, other = world.token("tg:"), world.token("tg:")

    async def main() -> tuple[list[int | None], str]:
        async with aiohttp.ClientSession() as session:
            by_hello = await callers.opened(session, world.info.url)
            await callers.introduce(by_hello, made["token"])
            by_header = await session.ws_connect(
                f"{world.info.url}/ws",
                protocols=("aios-rpc-1",),
                headers={"Authorization": f"Bearer {made['token']}"},
            )
            stays = await callers.opened(session, world.info.url)
            name = await callers.introduce(stays, other["token"])
            revoking = world.site.start("tokens.revoke", id=made["id"])
            frames = [await socket.receive() for socket in (by_hello, by_header)]
            await asyncio.wrap_future(revoking)
            await stays.send_json({"jsonrpc": "2.0", "id": 1, "method": "node.info"})
            assert "result" in await stays.receive_json()
            return [frame.data for frame in frames], name

    codes, name = asyncio.run(main())
    assert codes == [4401, 4401]
    assert name == f"token:{other['id']}"


def test_a_watch_of_a_revoked_token_ends_and_does_not_come_back(world: World):
    made = world.token("tg:")

    async def main() -> None:
        client = await RemoteClient.connect(world.info, token=made["token"])
        try:
            watch = client.notices("chat.watch")
            await watch.result()
            world.site.start("tokens.revoke", id=made["id"])
            with pytest.raises(NotAllowed, match="token"):
                await anext(aiter(watch))
        finally:
            await client.close()

    asyncio.run(main())


def test_an_event_stream_of_a_revoked_token_ends(world: World):
    made = world.token("tg:")
    where = urlsplit(world.info.url).netloc
    with closing(http.client.HTTPConnection(where, timeout=WAIT_S)) as connection:
        headers = {
            "Authorization": f"Bearer {made['token']}",
            "Accept": "text/event-stream",
            "Content-Type": "application/json",
        }
        connection.request(
            "POST", "/rpc", '{"jsonrpc":"2.0","id":1,"method":"chat.watch"}', headers
        )
        answer = connection.getresponse()
        assert answer.readline().startswith(b"data: ")
        world.site.call("tokens.revoke", id=made["id"])
        with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
            assert answer.read() == b"\n"  # and it does end


def test_an_answer_that_comes_after_the_end_of_its_token_is_not_given(
    make_site: Callable[..., TestSite],
):
    gate = Gate()

    async def slow(text: str) -> str:
        await gate.pass_through(text)
        return "secret"

    site = make_site(slow)
    made = site.call("tokens.create", scope="chat", prefix="tg:")
    codes: list[int] = []

    def ask() -> None:
        def way(method: str, params: Any) -> Any:
            return callers.over_rpc(site.node.url, made["token"], method, params)

        codes.append(code_of(way, "chat.send", {"agent": "slow", "text": "hello"}))

    asking = threading.Thread(target=ask)
    asking.start()
    site.node.run(lambda: gate.arrived(1))
    site.call("tokens.revoke", id=made["id"])
    site.on_loop(gate.open)
    asking.join(WAIT_S)

    assert codes == [FORBIDDEN]


def test_a_request_whose_end_comes_after_the_end_of_its_token_is_not_taken(world: World):
    made = world.token("tg:")
    before = len(world.site.call("chat.list", limit=1000)["conversations"])
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "chat.open", "params": {"agents": ["common"]}}
    ).encode()
    parts = urlsplit(world.info.url)
    head = (
        f"POST /rpc HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {made['token']}\r\nContent-Length: {len(body)}\r\n"
        "Expect: 100-continue\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection((parts.hostname, parts.port), timeout=WAIT_S) as connection:
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 100")  # it is let in
        connection.sendall(body[:10])
        world.site.call("tokens.revoke", id=made["id"])
        connection.sendall(body[10:])
        answer = b"".join(iter(lambda: connection.recv(65536), b""))

    assert answer.startswith(b"HTTP/1.1 401")
    assert len(world.site.call("chat.list", limit=1000)["conversations"]) == before


# Nodes --------------------------------------------------------------------------------------


def test_a_friend_who_passes_on_a_strangers_wish_has_only_the_strangers_rights(world: World):
    friend = world.from_node(world.friend)
    known, unknown = world.friend.node.node_id, world.stranger.node.node_id

    by = f"agent@{known}"  # who calls stands last

    assert code_of(friend, "aios.message", asked("friendly", known)) == 0
    assert code_of(friend, "aios.message", asked("friendly", world.info.node_id, by)) == 0
    assert code_of(friend, "aios.message", asked("friendly", unknown, by)) == -32001
    between = asked("friendly", known, f"other@{unknown}", by)
    assert code_of(friend, "aios.message", between) == -32001
    assert code_of(friend, "aios.message", asked("common", unknown, by)) == 0


def test_allowing_and_blocking_take_effect_on_a_link_that_is_open(tmp_path: Path):
    world = World(tmp_path / "home")
    try:
        way, node = world.from_node(world.stranger), world.stranger.node.node_id
        assert code_of(way, "agents.card", {"agent": "friendly"}) == -32001
        world.site.call("nodes.allow", node=node)
        assert code_of(way, "agents.card", {"agent": "friendly"}) == 0
        friend = world.from_node(world.friend)
        path = (node, f"agent@{world.friend.node.node_id}")
        assert code_of(friend, "aios.message", asked("common", *path)) == 0
        world.site.call("nodes.block", node=node)
        with pytest.raises((RpcError, ConnectionLost)):
            way("node.info", {})
        assert code_of(friend, "aios.message", asked("common", *path)) == -32001
    finally:
        world.stop()


def test_callers_shows_who_is_shut_out_and_no_more_when_it_is_let_in(owner: Way):
    def blocked() -> set[str]:
        return {row["id"] for row in owner("node.callers", {})["callers"] if row["blocked"]}

    assert owner("nodes.block", {"node": "q" * 32}) == {"node": "q" * 32, "state": "blocked"}
    assert "q" * 32 in blocked()
    assert owner("nodes.allow", {"node": "q" * 32}) == {"node": "q" * 32, "state": "allowed"}
    assert "q" * 32 not in blocked()


def test_a_node_of_the_same_home_is_known_to_this_one(make_site: Callable[..., TestSite]):
    one, two = make_site(name="one"), make_site(name="two")
    nodes = two.rooms.nodes

    assert two.on_loop(lambda: nodes.standing(one.node.node_id)) is Caller.KNOWN
    assert two.on_loop(lambda: nodes.standing(two.node.node_id)) is Caller.OWNER
    assert two.on_loop(lambda: nodes.standing(STRANGER)) is Caller.NODE
