"""The two clients, against the same node: what one gives, the other gives."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import aios_nb as aios
from aios_nb.client import Flow, LocalClient, RemoteClient, SiteClient, get_file, put_file
from aios_nb.config import Settings
from aios_nb.errors import (
    AgentFailed,
    Cancelled,
    InvalidParams,
    MethodNotFound,
    NoSuchAgent,
    NotRunning,
    UsageError,
)
from aios_nb.home import Home
from aios_nb.loop import LoopThread
from aios_nb.node import Node
from tests.players import asks, breaks, forever, spell, weigh


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    home: Path = tmp_path_factory.mktemp("clients") / "home"
    agents = [aios.define(one) for one in (spell, breaks, forever, asks, weigh)]
    started = Node(Settings(name="alice", home=home), agents).start()
    yield started
    started.stop()


@pytest.fixture(params=["local", "remote"])
def client(request: pytest.FixtureRequest, node: Node) -> Iterator[SiteClient]:
    made = _client(node, request.param)
    yield made
    node.run(made.close)


def _client(node: Node, kind: str) -> SiteClient:
    if kind == "local":
        assert isinstance(node.client, LocalClient)
        return node.client
    run = node.run_info
    assert run is not None
    return node.run(lambda: RemoteClient.connect(run))


def shape(value: Any) -> Any:
    """What a value looks like, whatever is in it."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return type(value)


def test_it_knows_whom_it_talks_to(client: SiteClient, node: Node):
    info = node.run(lambda: client.call("node.info"))
    assert info["node_id"] == client.node_id
    assert info["name"] == client.name == "alice"


def test_a_stream_adds_up_to_its_result(client: SiteClient, node: Node):
    async def work() -> tuple[list[dict[str, Any]], dict[str, Any]]:
        flow = client.notices("chat.stream", agent="spell", text="a b c")
        return [piece async for piece in flow], await flow.result()

    pieces, result = node.run(work)
    assert "".join(piece["text"] for piece in pieces) == result["text"] == "a b c "
    assert {frozenset(piece) for piece in pieces} == {
        frozenset({"message_id", "reply_id", "offset", "text", "done"})
    }
    assert pieces[-1]["done"] is True
    assert pieces[0]["message_id"] == result["message_id"]


def test_a_stream_that_fails_raises_when_it_is_read_and_when_asked(client, node):
    async def work() -> None:
        flow = client.notices("chat.stream", agent="breaks", text="x")
        with pytest.raises(AgentFailed) as caught:
            await flow.result()
        assert caught.value.data["status"] == "failed"
        with pytest.raises(AgentFailed):
            await flow.result()

    node.run(work)


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("agents.card", {"agent": "spel"}, NoSuchAgent),
        ("agents.card", {"agnet": "spell"}, InvalidParams),
        ("agents.crad", {}, MethodNotFound),
        ("chat.send", {"agent": "breaks", "text": "x"}, AgentFailed),
        ("chat.history", {"conversation": "c-none"}, InvalidParams),
        ("chat.stream", {"agent": "spell", "text": "x"}, UsageError),
    ],
)
def test_what_goes_wrong_has_its_type(client, node, method, params, error):
    with pytest.raises(error) as caught:
        node.run(lambda: client.call(method, **params))
    assert caught.value.message


def test_errors_say_the_same(node: Node):
    said = []
    for kind in ("local", "remote"):
        one = _client(node, kind)
        with pytest.raises(NoSuchAgent) as caught:
            node.run(lambda one=one: one.call("agents.card", agent="spel"))
        said.append((str(caught.value), caught.value.data))
        node.run(one.close)
    assert said[0] == said[1]


def test_the_same_id_never_runs_twice(client: SiteClient, node: Node):
    message_id = f"twice-{type(client).__name__}"

    async def ask() -> Any:
        return await client.call("chat.send", agent="spell", text="x", message_id=message_id)

    assert node.run(ask) == node.run(ask)


def test_a_call_has_an_id_even_when_none_was_chosen(client: SiteClient, node: Node):
    result = node.run(lambda: client.call("chat.send", agent="spell", text="x"))
    assert result["message_id"].startswith("m")


def test_a_watch_sees_what_happens_and_stops_when_closed(client: SiteClient, node: Node):
    async def work() -> list[str]:
        conversation = (await client.call("chat.open", agents=["spell"]))["conversation"]
        flow = client.notices("chat.watch", conversation=conversation, after=0)
        assert set(await flow.result()) == {"cursor", "seq"}
        await client.call("chat.send", agent="spell", text="x y", conversation=conversation)
        seen = []
        async for event in flow:
            assert event["conversation"] == conversation
            assert "watch" not in event
            if event["kind"] == "message":
                seen.append(event["text"])
            if len(seen) == 2:
                flow.close()
        return seen

    assert node.run(work) == ["x y", "x y "]


def test_a_question_is_answered_and_the_stream_goes_on(client: SiteClient, node: Node):
    async def work() -> tuple[dict[str, Any], dict[str, Any]]:
        asked = await client.notices("chat.stream", agent="asks", text="hi").result()
        await client.call("chat.answer", message_id=asked["message_id"], text="Ada", wait=False)
        again = client.notices("chat.stream", message_id=asked["message_id"], offset=0)
        return asked, await again.result()

    asked, answered = node.run(work)
    assert (asked["status"], asked["text"]) == ("input_required", "who?")
    assert (answered["status"], answered["text"]) == ("done", "hello Ada")


def test_a_run_is_cancelled_for_all_who_listen(client: SiteClient, node: Node):
    async def work() -> None:
        flow = client.notices("chat.stream", agent="forever", text="x")
        first = await anext(aiter(flow))
        await client.call("chat.cancel", message_id=first["message_id"])
        with pytest.raises(Cancelled):
            await flow.result()

    node.run(work)


def test_a_follower_of_agents_has_the_right_picture_after_the_node_restarted(tmp_path: Path):
    """Another port, another token, other agents: the watch finds the node and the difference."""
    home = Home(tmp_path / "home")
    following = LoopThread("follower")
    following.start()

    def start(*agents: Any) -> Node:
        return Node(Settings(name="alice", home=home.path), map(aios.define, agents)).start()

    async def follow() -> tuple[RemoteClient, Flow]:
        client = await RemoteClient.connect(home.find("alice"), locate=lambda: _found(home))
        flow = client.notices("agents.watch")
        await flow.result()
        return client, flow

    async def heard(flow: Flow, count: int) -> list[tuple[str, str]]:
        events = [await anext(flow) for _ in range(count)]
        return [(event["event"], event["agent"]["name"]) for event in events]

    alice = start(spell, breaks)
    try:
        client, flow = following.sync(follow)
        told = following.submit(heard(flow, 2))
        alice.stop()
        alice = start(spell, asks)
        assert told.result(60) == [("withdrawn", "breaks"), ("offered", "asks")]
        following.sync(client.close)
    finally:
        alice.stop()
        following.stop()


def _found(home: Home) -> Any:
    try:
        return home.find("alice")
    except NotRunning:
        return None


def test_files_travel_in_pieces(client: SiteClient, node: Node):
    content = bytes(range(256)) * 5000

    async def work() -> Any:
        file = await put_file(client, content, "big.bin", "application/octet-stream")
        assert await get_file(client, file) == content
        return await client.call("chat.send", agent="weigh", text="x", files=[file])

    assert node.run(work)["data"] == {"sizes": [len(content)]}


def test_both_give_the_same_shapes(node: Node):
    async def script(client: SiteClient) -> list[Any]:
        first = await client.call("chat.send", agent="spell", text="a b")
        conversation = first["conversation"]
        flow = client.notices("chat.stream", agent="spell", text="c", conversation=conversation)
        return [
            first,
            await flow.result(),
            await client.call("node.info"),
            await client.call("agents.list"),
            await client.call("agents.card", agent="spell"),
            await client.call("agents.search", query="word"),
            await client.call("chat.history", conversation=conversation),
            (await client.call("chat.list", limit=1)),
            await client.call("chat.rename", conversation=conversation, title="t"),
            await client.call("chat.export", conversation=conversation),
            await client.call("node.callers"),
            await client.call("chat.delete", conversation=conversation),
        ]

    shapes = []
    for kind in ("local", "remote"):
        client = _client(node, kind)
        shapes.append(shape(node.run(lambda client=client: script(client))))
        node.run(client.close)
    assert shapes[0] == shapes[1]


def test_an_upload_sends_the_bytes_and_the_message_names_them() -> None:
    sent: list[dict[str, Any]] = []

    class Noting:
        async def call(self, method: str, **params: Any) -> None:
            assert method == "blobs.put"
            sent.append(params)

    file = asyncio.run(put_file(Noting(), b"hello", "a.txt", "text/plain"))  # type: ignore[arg-type]
    assert [set(params) for params in sent] == [{"sha256", "offset", "chunk", "last"}]
    assert (file["name"], file["mime"], file["size"]) == ("a.txt", "text/plain", 5)
