"""The client over /ws, against sites that lie, drop the line, or answer late."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from aios_nb.client import RemoteClient, flows, get_file, put_file
from aios_nb.errors import (
    ConnectionLost,
    Impostor,
    InternalError,
    NoSuchAgent,
    NotAllowed,
    NotRunning,
    UsageError,
)
from aios_nb.identity import Identity, answer_hello, read_nonce, to_base64url

TOKEN = "the-owners-token"
Reply = Callable[["Site", web.WebSocketResponse, dict[str, Any]], Awaitable[None]]


class Site:
    """A program on a port that speaks the hello, truthfully or not, and answers by script."""

    def __init__(self, identity: Identity, **methods: Reply) -> None:
        self.identity = identity
        self.methods = {name.replace("_", "."): reply for name, reply in methods.items()}
        self.hello: Callable[[bytes], Any] = self.honest
        self.after_hello: list[dict[str, Any]] = []
        self.nonces: list[bytes] = []
        self.calls: list[dict[str, Any]] = []
        self.called = asyncio.Condition()
        self.sockets: list[web.WebSocketResponse] = []
        self.port = 0
        self._runner: web.AppRunner | None = None

    def honest(self, nonce: bytes) -> Any:
        return answer_hello(self.identity, nonce, self.port)

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_get("/ws", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        await self.drop()
        if self._runner is not None:
            await self._runner.cleanup()

    async def drop(self) -> None:
        """Cut every connection, without a word."""
        for socket in self.sockets:
            if socket._req is not None and socket._req.transport is not None:
                socket._req.transport.abort()
        self.sockets.clear()

    async def until(self, count: int) -> None:
        async with self.called, asyncio.timeout(20):
            await self.called.wait_for(lambda: len(self.calls) >= count)

    def run_info(self, token: str = TOKEN) -> Any:
        return SimpleNamespace(
            url=f"http://127.0.0.1:{self.port}",
            node_id=self.identity.node_id,
            token=token,
            name="alice",
        )

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("aios-rpc-1",))
        await socket.prepare(request)
        self.sockets.append(socket)
        nonce = read_nonce((await socket.receive_json())["nonce"])
        self.nonces.append(nonce)
        hello = self.hello(nonce)
        await socket.send_str(json.dumps(hello if isinstance(hello, dict) else _plain(hello)))
        async for frame in socket:
            if frame.type is not aiohttp.WSMsgType.TEXT:
                break
            said = json.loads(frame.data)
            if "method" not in said:
                self.after_hello.append(said)
                await socket.send_json({"ok": said.get("token") == TOKEN})
                continue
            async with self.called:
                self.calls.append(said)
                self.called.notify_all()
            reply = self.methods.get(said["method"])
            if reply is not None:
                await reply(self, socket, said)
        return socket


def _plain(hello: Any) -> dict[str, Any]:
    return {
        "node_id": hello.node_id,
        "port": hello.port,
        "public_key": hello.public_key,
        "sig": hello.sig,
    }


async def answer(socket: web.WebSocketResponse, call: dict[str, Any], result: Any) -> None:
    await socket.send_json({"jsonrpc": "2.0", "id": call["id"], "result": result})


async def refuse(socket: web.WebSocketResponse, call: dict[str, Any], error: Any) -> None:
    await socket.send_json({"jsonrpc": "2.0", "id": call["id"], "error": error})


async def delta(
    socket: web.WebSocketResponse, message_id: str, offset: int, text: str, *, done: bool = False
) -> None:
    params = {
        "message_id": message_id,
        "reply_id": "r1",
        "offset": offset,
        "text": text,
        "done": done,
    }
    await socket.send_json({"jsonrpc": "2.0", "method": "chat.delta", "params": params})


async def event(socket: web.WebSocketResponse, watch: str, seq: int) -> None:
    params = {"watch": watch, "message_id": f"m{seq}", "seq": seq, "cursor": 100 + seq}
    await socket.send_json({"jsonrpc": "2.0", "method": "chat.event", "params": params})


@asynccontextmanager
async def a_site(**methods: Reply):
    site = Site(Identity.generate(), **methods)
    await site.start()
    try:
        yield site
    finally:
        await site.stop()


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine; a task that is left behind fails it."""

    async def and_look() -> None:
        async with asyncio.timeout(60):
            await work
        left = [task for task in asyncio.all_tasks() if "aios-client" in task.get_name()]
        assert left == []

    asyncio.run(and_look())


# The hello -----------------------------------------------------------------------------


def test_the_token_is_sent_after_the_node_has_proven_its_key():
    async def work() -> None:
        async with a_site(node_info=lambda s, w, c: answer(w, c, {"name": "alice"})) as site:
            async with await RemoteClient.connect(site.run_info()) as client:
                assert await client.call("node.info") == {"name": "alice"}
                assert client.node_id == site.identity.node_id
            assert site.after_hello == [{"token": TOKEN}]

    run(work())


def test_a_url_with_id_and_token_is_enough():
    async def work() -> None:
        async with a_site(node_info=lambda s, w, c: answer(w, c, 1)) as site:
            url = f"http://127.0.0.1:{site.port}/"
            async with await RemoteClient.connect(url, site.identity.node_id, TOKEN) as client:
                assert await client.call("node.info") == 1

    run(work())


def test_every_connection_gets_a_fresh_nonce():
    async def work() -> None:
        async with a_site() as site:
            for _ in range(3):
                await (await RemoteClient.connect(site.run_info())).close()
            assert len(set(site.nonces)) == 3
            assert {len(nonce) for nonce in site.nonces} == {32}

    run(work())


def _another_key(site: Site) -> None:
    stranger = Identity.generate()
    site.hello = lambda nonce: answer_hello(stranger, nonce, site.port)


def _the_right_id_over_another_key(site: Site) -> None:
    stranger = Identity.generate()
    site.hello = lambda nonce: {
        **_plain(answer_hello(stranger, nonce, site.port)),
        "node_id": site.identity.node_id,
    }


def _the_right_key_with_another_signature(site: Site) -> None:
    stranger = Identity.generate()
    site.hello = lambda nonce: {
        **_plain(answer_hello(stranger, nonce, site.port)),
        "node_id": site.identity.node_id,
        "public_key": to_base64url(site.identity.public_key),
    }


def _the_real_node_on_another_port(site: Site) -> None:
    elsewhere = site.port - 1 if site.port > 1 else 2
    site.hello = lambda nonce: answer_hello(site.identity, nonce, elsewhere)


def _a_real_signature_under_a_changed_port(site: Site) -> None:
    elsewhere = site.port - 1 if site.port > 1 else 2
    site.hello = lambda nonce: {
        **_plain(answer_hello(site.identity, nonce, elsewhere)),
        "port": site.port,
    }


def _an_old_signature(site: Site) -> None:
    overheard = answer_hello(site.identity, b"n" * 32, site.port)
    site.hello = lambda _nonce: overheard


def _a_word(site: Site) -> None:
    site.hello = lambda _nonce: {"ok": True}


@pytest.mark.parametrize(
    "lie",
    [
        _another_key,
        _the_right_id_over_another_key,
        _the_right_key_with_another_signature,
        _the_real_node_on_another_port,
        _a_real_signature_under_a_changed_port,
        _an_old_signature,
        _a_word,
    ],
)
def test_an_impostor_gets_no_token(lie: Callable[[Site], None]):
    async def work() -> None:
        async with a_site() as site:
            lie(site)
            with pytest.raises(Impostor):
                await RemoteClient.connect(site.run_info())
            assert len(site.nonces) == 1
            assert site.after_hello == []

    run(work())


def test_an_impostor_that_takes_the_port_later_gets_no_token_either():
    async def work() -> None:
        async with a_site(node_info=lambda s, w, c: answer(w, c, 1)) as site:
            client = await RemoteClient.connect(site.run_info())
            await client.call("node.info")
            _another_key(site)
            await site.drop()
            with pytest.raises((Impostor, ConnectionLost)):
                await client.call("node.info")
            with pytest.raises(Impostor):
                await client.call("node.info")
            await client.close()
            assert site.after_hello == [{"token": TOKEN}]

    run(work())


def test_a_wrong_token_is_one_clear_error():
    async def work() -> None:
        async with a_site() as site:
            with pytest.raises(NotAllowed, match="token"):
                await RemoteClient.connect(site.run_info(token="old"))

    run(work())


def test_a_port_where_nothing_listens_is_not_running():
    async def work() -> None:
        async with a_site() as site:
            gone = site.run_info()
        with pytest.raises(NotRunning, match="alice"):
            await RemoteClient.connect(gone)

    run(work())


def test_a_server_of_another_kind_is_not_running():
    async def work() -> None:
        runner = web.AppRunner(web.Application())
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        where = SimpleNamespace(
            url=f"http://127.0.0.1:{runner.addresses[0][1]}",
            node_id="a" * 32,
            token=TOKEN,
            name="alice",
        )
        with pytest.raises(NotRunning, match="404"):
            await RemoteClient.connect(where)
        await runner.cleanup()

    run(work())


# Calls ---------------------------------------------------------------------------------


def test_calls_share_a_connection_and_find_their_own_answers():
    waiting: list[dict[str, Any]] = []

    async def backwards(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        waiting.append(call)
        if len(waiting) == 20:
            for earlier in reversed(waiting):
                await answer(socket, earlier, earlier["params"]["agent"])

    async def work() -> None:
        async with a_site(agents_card=backwards) as site:
            async with await RemoteClient.connect(site.run_info()) as client:
                asked = [f"a{n}" for n in range(20)]
                got = await asyncio.gather(
                    *(client.call("agents.card", agent=name) for name in asked)
                )
                assert got == asked
            assert len(site.nonces) == 1

    run(work())


def test_an_error_comes_back_as_its_type_with_hint_and_data():
    error = {
        "code": -32001,
        "message": "no agent ehco",
        "data": {"hint": "echo?", "near": ["echo"]},
    }

    async def work() -> None:
        async with (
            a_site(agents_card=lambda s, w, c: refuse(w, c, error)) as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            with pytest.raises(NoSuchAgent) as caught:
                await client.call("agents.card", agent="ehco")
            assert caught.value.hint == "echo?"
            assert caught.value.data == {"near": ["echo"]}

    run(work())


@pytest.mark.parametrize("nonsense", ["text", 7, [], {"data": 3}])
def test_an_error_that_makes_no_sense_is_still_an_error(nonsense: Any):
    async def work() -> None:
        async with (
            a_site(agents_card=lambda s, w, c: refuse(w, c, nonsense)) as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            with pytest.raises(InternalError):
                await client.call("agents.card", agent="x")

    run(work())


def test_a_call_that_waits_when_the_line_breaks_fails_and_names_its_message():
    async def work() -> None:
        async with a_site() as site, await RemoteClient.connect(site.run_info()) as client:
            call = asyncio.create_task(client.call("chat.send", agent="echo", text="hi"))
            await site.until(1)
            await site.drop()
            with pytest.raises(ConnectionLost) as caught:
                await call
            assert caught.value.message_id == site.calls[0]["params"]["message_id"]

    run(work())


def test_an_answer_that_may_be_lost_is_not_said_to_be_safe_to_repeat():
    """There ``message_id`` is what the answer is for, not what would make it one and the same."""

    async def work() -> None:
        async with (
            a_site() as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            call = client.call("chat.answer", message_id="m1", text="yes")
            waiting = asyncio.ensure_future(call)
            await site.until(1)
            await site.drop()
            with pytest.raises(ConnectionLost) as lost:
                await waiting
            assert lost.value.message_id is None
            assert "at most once" not in str(lost.value)

    run(work())


def test_the_next_call_connects_again_with_hello_and_token():
    async def work() -> None:
        async with a_site(node_info=lambda s, w, c: answer(w, c, 1)) as site:
            async with await RemoteClient.connect(site.run_info()) as client:
                lost = asyncio.create_task(client.call("agents.list"))
                await site.until(1)
                await site.drop()
                with pytest.raises(ConnectionLost):
                    await lost
                assert await client.call("node.info") == 1
            assert site.after_hello == [{"token": TOKEN}] * 2
            assert len(set(site.nonces)) == 2

    run(work())


def test_a_node_that_restarted_elsewhere_is_found_again():
    async def work() -> None:
        async with a_site(node_info=lambda s, w, c: answer(w, c, "old")) as old:
            new = Site(old.identity, node_info=lambda s, w, c: answer(w, c, "new"))
            await new.start()
            client = await RemoteClient.connect(old.run_info(), locate=new.run_info)
            assert await client.call("node.info") == "old"
            lost = asyncio.create_task(client.call("agents.list"))
            await old.until(2)
            await old.stop()
            with pytest.raises(ConnectionLost):
                await lost
            assert await client.call("node.info") == "new"
            await client.close()
            await new.stop()

    run(work())


def test_another_node_under_the_same_name_is_not_taken_for_it():
    async def work() -> None:
        async with a_site() as old, a_site() as other:
            client = await RemoteClient.connect(old.run_info(), locate=other.run_info)
            lost = asyncio.create_task(client.call("agents.list"))
            await old.until(1)
            await old.stop()
            with pytest.raises(ConnectionLost):
                await lost
            with pytest.raises(NotRunning):
                await client.call("node.info")
            await client.close()
            assert other.nonces == []

    run(work())


def test_closing_fails_what_waits_and_leaves_nothing():
    async def work() -> None:
        async with a_site() as site:
            client = await RemoteClient.connect(site.run_info())
            call = asyncio.create_task(client.call("agents.list"))
            await site.until(1)
            await client.close()
            with pytest.raises(ConnectionLost):
                await call
            with pytest.raises(UsageError, match="closed"):
                await client.call("agents.list")
            await client.close()

    run(work())


def test_pieces_and_whole_answers_have_their_own_verbs():
    async def work() -> None:
        async with a_site() as site, await RemoteClient.connect(site.run_info()) as client:
            with pytest.raises(UsageError, match="pieces"):
                await client.call("chat.stream", agent="echo", text="x")
            with pytest.raises(UsageError, match="at once"):
                client.notices("chat.send", agent="echo", text="x")

    run(work())


# Streams -------------------------------------------------------------------------------


async def read(flow: Any) -> str:
    return "".join([piece["text"] async for piece in flow])


def test_a_stream_gives_its_pieces_and_then_its_result():
    async def stream(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        message_id = call["params"]["message_id"]
        await delta(socket, message_id, 0, "héllo ")
        await delta(socket, message_id, 6, "wörld")
        await delta(socket, message_id, 11, "", done=True)
        await answer(socket, call, {"text": "héllo wörld", "status": "done"})

    async def work() -> None:
        async with (
            a_site(chat_stream=stream) as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            flow = client.notices("chat.stream", agent="echo", text="x")
            pieces = [piece async for piece in flow]
            assert "".join(piece["text"] for piece in pieces) == "héllo wörld"
            assert pieces[-1]["done"] is True
            assert (await flow.result())["status"] == "done"

    run(work())


def test_the_result_of_a_stream_can_be_had_without_reading_it():
    async def stream(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        await delta(socket, call["params"]["message_id"], 0, "abc")
        await answer(socket, call, {"text": "abc"})

    async def work() -> None:
        async with (
            a_site(chat_stream=stream) as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            flow = client.notices("chat.stream", agent="echo", text="x")
            assert await flow.result() == {"text": "abc"}

    run(work())


def test_two_streams_at_once_do_not_mix():
    both: list[tuple[web.WebSocketResponse, dict[str, Any]]] = []

    async def stream(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        both.append((socket, call))
        if len(both) < 2:
            return
        for offset in range(5):
            for _, one in both:
                letter = one["params"]["text"]
                await delta(socket, one["params"]["message_id"], offset, letter)
        for _, one in both:
            await answer(socket, one, {"text": 5 * one["params"]["text"]})

    async def work() -> None:
        async with (
            a_site(chat_stream=stream) as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            texts = await asyncio.gather(
                *(read(client.notices("chat.stream", agent="echo", text=letter)) for letter in "ab")
            )
            assert texts == ["aaaaa", "bbbbb"]

    run(work())


def test_the_replies_to_one_message_do_not_mix():
    """Whoever follows the message hears one reply, whoever names a reply hears that one."""

    async def stream(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        asked.append(call)
        if len(asked) < 2:
            return
        for offset, letters in enumerate(("ax", "by")):
            for reply, letter in zip(("r2", "r1"), letters, strict=True):
                params = {"message_id": "m1", "reply_id": reply, "offset": offset, "text": letter}
                done = {"jsonrpc": "2.0", "method": "chat.delta", "params": {**params, "done": 0}}
                await socket.send_json(done)
        for one in asked:
            named = one["params"]["message_id"] == "r2"
            reply, text = ("r2", "ab") if named else ("r1", "xy")
            result = {"message_id": "m1", "reply_id": reply, "status": "done", "text": text}
            await answer(socket, one, result)

    asked: list[dict[str, Any]] = []

    async def work() -> None:
        async with (
            a_site(chat_stream=stream) as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            whole = client.notices("chat.stream", message_id="m1", offset=0)
            named = client.notices("chat.stream", message_id="r2", offset=0)
            assert await asyncio.gather(read(whole), read(named)) == ["xy", "ab"]

    run(work())


def test_a_stream_adds_up_even_when_no_piece_came():
    async def stream(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        result = {"message_id": "m1", "reply_id": "r1", "status": "done", "text": "hello"}
        await answer(socket, call, result)

    async def work() -> None:
        async with (
            a_site(chat_stream=stream) as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            flow = client.notices("chat.stream", message_id="m1", offset=2)
            assert [piece async for piece in flow] == [
                {"message_id": "m1", "reply_id": "r1", "offset": 2, "text": "llo", "done": True}
            ]

    run(work())


def test_a_stream_that_breaks_goes_on_where_it_was():
    asked: list[dict[str, Any]] = []

    async def stream(site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        asked.append(call["params"])
        message_id = call["params"]["message_id"]
        if len(asked) == 1:
            await delta(socket, message_id, 0, "one ")
            return
        await delta(socket, message_id, 2, "e two")  # overlaps: two points were seen before
        await answer(socket, call, {"text": "one two"})

    async def work() -> None:
        async with a_site(chat_stream=stream) as site:
            async with await RemoteClient.connect(site.run_info()) as client:
                flow = client.notices("chat.stream", agent="echo", text="x")
                assert (await anext(aiter(flow)))["text"] == "one "
                await site.drop()
                assert await read(flow) == "two"
                assert await flow.result() == {"text": "one two"}
            assert asked[1] == {"message_id": asked[0]["message_id"], "offset": 4}

    run(work())


def test_a_stream_that_breaks_before_any_sign_is_asked_again_with_the_same_id():
    asked: list[dict[str, Any]] = []

    async def stream(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        asked.append(call["params"])
        if len(asked) == 2:
            await answer(socket, call, {"text": "done"})

    async def work() -> None:
        async with a_site(chat_stream=stream) as site:
            async with await RemoteClient.connect(site.run_info()) as client:
                flow = client.notices("chat.stream", agent="echo", text="x", deadline_s=30)
                result = asyncio.create_task(flow.result())
                await site.until(1)
                await site.drop()
                assert await result == {"text": "done"}
            first, second = asked
            assert second["message_id"] == first["message_id"]
            assert second["text"] == "x"
            assert second["deadline_s"] <= first["deadline_s"]

    run(work())


def test_a_stream_whose_node_is_gone_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flows, "RETURN_WITHIN_S", 0.2)

    async def stream(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        await delta(socket, call["params"]["message_id"], 0, "one")

    async def work() -> None:
        async with (
            a_site(chat_stream=stream) as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            flow = client.notices("chat.stream", agent="echo", text="x")
            await anext(aiter(flow))
            await site.stop()
            with pytest.raises(NotRunning):
                await read(flow)

    run(work())


def test_a_slow_reader_gets_the_whole_text_in_few_pieces():
    async def stream(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        for offset in range(5000):
            await delta(socket, call["params"]["message_id"], offset, "x")
        await answer(socket, call, {"text": "x" * 5000})

    async def work() -> None:
        async with (
            a_site(chat_stream=stream, node_info=lambda s, w, c: answer(w, c, 1)) as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            flow = client.notices("chat.stream", agent="echo", text="x")
            first = await anext(aiter(flow))
            await client.call("node.info")  # everything before it has arrived
            rest = [piece async for piece in flow]
            assert len(first["text"]) + len(rest[0]["text"]) == 5000
            assert len(rest) == 1

    run(work())


# Watches -------------------------------------------------------------------------------


def test_a_watch_has_its_result_first_and_goes_on_after_a_break():
    asked: list[dict[str, Any]] = []

    async def watch(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        asked.append(call["params"])
        name = f"w{len(asked)}"
        await answer(socket, call, {"watch": name, "cursor": 100})
        begin = call["params"].get("after", 0)
        for seq in range(begin + 1, begin + 3):
            await event(socket, name, seq)

    async def work() -> None:
        async with a_site(chat_watch=watch) as site:
            async with await RemoteClient.connect(site.run_info()) as client:
                flow = client.notices("chat.watch", conversation="c1")
                assert await flow.result() == {"cursor": 100}
                events = aiter(flow)
                seen = [(await anext(events))["seq"] for _ in range(2)]
                await site.drop()
                seen += [(await anext(events))["seq"] for _ in range(2)]
                assert seen == [1, 2, 3, 4]
                flow.close()
                await site.until(3)
                assert site.calls[-1]["method"] == "chat.unwatch"
                assert site.calls[-1]["params"] == {"watch": "w2"}
                assert [piece async for piece in flow] == []
            assert [params.get("after") for params in asked] == [None, 2]

    run(work())


def test_a_watch_of_everything_goes_on_by_the_nodes_cursor():
    asked: list[dict[str, Any]] = []

    async def watch(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        asked.append(call["params"])
        await answer(socket, call, {"watch": "w", "cursor": 100})
        if len(asked) > 1:
            await event(socket, "w", len(asked))

    async def work() -> None:
        async with a_site(chat_watch=watch) as site:
            async with await RemoteClient.connect(site.run_info()) as client:
                flow = client.notices("chat.watch")
                await flow.result()
                await site.drop()
                assert (await anext(aiter(flow)))["cursor"] == 102
                await site.drop()
                assert (await anext(aiter(flow)))["cursor"] == 103
            assert [params.get("after") for params in asked] == [None, 100, 102]

    run(work())


def test_a_reader_too_far_behind_starts_again_where_it_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flows, "EVENTS_HELD_MAX", 5)

    async def watch(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        begin = call["params"].get("after", 0)
        name = f"w{begin}"
        await answer(socket, call, {"watch": name})
        for seq in range(begin + 1, 13):
            await event(socket, name, seq)

    async def work() -> None:
        async with (
            a_site(chat_watch=watch, node_info=lambda s, w, c: answer(w, c, 1)) as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            flow = client.notices("chat.watch", conversation="c1")
            await flow.result()
            await client.call("node.info")  # all twelve have arrived, five were kept
            events = aiter(flow)
            seen = [(await anext(events))["seq"] for _ in range(12)]
            assert seen == list(range(1, 13))

    run(work())


def test_what_comes_while_a_reader_catches_up_does_not_hide_what_it_missed(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(flows, "EVENTS_HELD_MAX", 5)
    sockets: list[web.WebSocketResponse] = []

    async def watch(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        begin = call["params"].get("after", 0)
        await answer(socket, call, {"watch": f"w{begin}"})
        for seq in range(begin + 1, 13 if sockets else 8):
            await event(socket, f"w{begin}", seq)
        sockets.append(socket)

    async def more(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        for seq in range(8, 13) if call["params"] else ():
            await event(socket, "w0", seq)
        await answer(socket, call, 1)

    async def work() -> None:
        async with (
            a_site(chat_watch=watch, node_info=more) as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            flow = client.notices("chat.watch", conversation="c1")
            await flow.result()
            await client.call("node.info")  # seven have arrived, five were kept
            events = aiter(flow)
            seen = [(await anext(events))["seq"] for _ in range(3)]
            await client.call("node.info", more=True)
            seen += [(await anext(events))["seq"] for _ in range(9)]
            assert seen == list(range(1, 13))

    run(work())


def agent(name: str, about: str = "") -> dict[str, Any]:
    return {"id": f"{name}@n", "name": name, "about": about, "live": True}


def test_a_watch_of_agents_tells_after_a_break_what_it_missed():
    pictures = [
        [agent("stays"), agent("leaves"), agent("changes")],
        [agent("stays"), agent("changes", "anew"), agent("comes")],
        [agent("stays"), agent("changes", "anew"), agent("comes"), agent("heard")],
        [agent("stays")],
    ]

    async def watch(site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        number = len([one for one in site.calls if one["method"] == "agents.watch"])
        assert call["params"] == {}
        await answer(socket, call, {"watch": f"w{number}", "agents": pictures[number - 1]})
        if number == 2:
            params = {"watch": "w2", "event": "offered", "agent": agent("heard")}
            await socket.send_json({"jsonrpc": "2.0", "method": "agents.event", "params": params})

    async def work() -> None:
        async with (
            a_site(agents_watch=watch) as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            flow = client.notices("agents.watch")
            assert await flow.result() == {"agents": pictures[0]}

            async def heard(count: int) -> list[tuple[str, str, bool]]:
                events = [await anext(flow) for _ in range(count)]
                rows = [(event["event"], event["agent"]) for event in events]
                return [(event, row["name"], row["live"]) for event, row in rows]

            await site.drop()
            assert await heard(4) == [
                ("withdrawn", "leaves", False),
                ("replaced", "changes", True),
                ("offered", "comes", True),
                ("offered", "heard", True),
            ]
            waiting = asyncio.ensure_future(heard(3))
            await site.drop()
            await site.until(3)  # nothing new: nothing is said
            await site.drop()
            assert await waiting == [
                ("withdrawn", "changes", False),
                ("withdrawn", "comes", False),
                ("withdrawn", "heard", False),
            ]

    run(work())


# Files ---------------------------------------------------------------------------------


def test_a_file_goes_up_in_chunks_and_comes_down_whole():
    import base64
    import hashlib

    kept: dict[str, bytes] = {}

    async def put(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        params = call["params"]
        so_far = kept.get(params["sha256"], b"")
        assert params["offset"] == len(so_far)
        kept[params["sha256"]] = so_far + base64.b64decode(params["chunk"])
        if params["last"]:
            assert hashlib.sha256(kept[params["sha256"]]).hexdigest() == params["sha256"]
        await answer(socket, call, {})

    async def get(_site: Site, socket: web.WebSocketResponse, call: dict[str, Any]) -> None:
        whole = kept[call["params"]["sha256"]]
        begin = call["params"]["offset"]
        chunk = base64.b64encode(whole[begin : begin + 300_000]).decode()
        await answer(socket, call, {"chunk": chunk, "size": len(whole)})

    async def work() -> None:
        async with (
            a_site(blobs_put=put, blobs_get=get) as site,
            await RemoteClient.connect(site.run_info()) as client,
        ):
            for content in (b"", b"small", bytes(range(256)) * 5000):
                file = await put_file(client, content, "a.bin", "application/octet-stream")
                assert file["size"] == len(content)
                assert await get_file(client, file) == content
            kept[file["sha256"]] = b"x" * file["size"]
            with pytest.raises(InternalError, match="arrive"):
                await get_file(client, file)

    run(work())
