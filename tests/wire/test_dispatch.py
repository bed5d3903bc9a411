"""Methods by name and caller, and what happens when they fail."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from aios_nb.access import ANYONE, Caller, Principal
from aios_nb.errors import (
    InternalError,
    InvalidParams,
    MethodNotFound,
    NotAllowed,
    RpcError,
    UsageError,
)
from aios_nb.params import Nothing, Params, Stream
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.methods import METHODS, Answers, Method

SECRET = "a sentence nobody outside may read"
TOKEN_METHODS = {
    "node.info",
    "agents.list",
    "agents.search",
    "agents.card",
    *(row.name for row in METHODS if row.name.startswith(("chat.", "blobs."))),
    "aios.message",
}
LINK_METHODS = {
    "gossip.packet",
    "gossip.sync",
    "node.info",
    "agents.search",
    "agents.card",
    "aios.message",
    "chat.stream",
    "chat.cancel",
    "chat.answer",
    "blobs.get",
}
ALLOWED = {
    Caller.OWNER: {row.name for row in METHODS},
    Caller.TOKEN: TOKEN_METHODS,
    Caller.KNOWN: LINK_METHODS,
    Caller.NODE: LINK_METHODS,
    Caller.ANYONE: set(),
}
OWNER = Principal(Caller.OWNER, "owner")


class Recorder:
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __getattr__(self, verb: str) -> Any:
        if verb.startswith("_"):
            raise AttributeError(verb)
        return lambda principal, params: self.calls.append((verb, principal, params))


def dispatcher(*extra: Method) -> tuple[Dispatcher, Recorder]:
    room = Recorder()
    rooms = dict.fromkeys(
        ("node", "nodes", "tokens", "agents", "hub", "chat", "aios", "blobs", "gossip"), room
    )
    return Dispatcher(rooms, extra=extra), room


@pytest.mark.parametrize("caller", list(Caller))
def test_every_method_is_open_to_exactly_its_callers(row, caller):
    methods, _ = dispatcher()
    principal = Principal(caller, "someone")
    if row.name in ALLOWED[caller]:
        assert methods.find(principal, row.name).name == row.name
    else:
        with pytest.raises(NotAllowed):
            methods.find(principal, row.name)


def test_a_refused_caller_runs_nothing(row):
    methods, room = dispatcher()
    with pytest.raises(NotAllowed):
        asyncio.run(methods.call(ANYONE, row.name, {}))
    assert room.calls == []


CONTRACT = {
    "node.info",
    "node.peers",
    "node.callers",
    "nodes.allow",
    "nodes.block",
    "agents.list",
    "agents.search",
    "agents.watch",
    "agents.withdraw",
    "agents.card",
    "chat.open",
    "chat.send",
    "chat.stream",
    "chat.post",
    "chat.answer",
    "chat.cancel",
    "chat.edit",
    "chat.react",
    "chat.join",
    "chat.leave",
    "chat.rename",
    "chat.delete",
    "chat.export",
    "chat.list",
    "chat.history",
    "chat.watch",
    "aios.message",
}


def test_the_table_has_each_name_once_and_the_whole_contract():
    names = [row.name for row in METHODS]
    assert len(names) == len(set(names))
    assert set(names) >= CONTRACT


def test_a_method_without_a_handler_is_found_out_at_once():
    with pytest.raises(UsageError, match=r"nothing answers node\.info"):
        Dispatcher({})


def test_a_name_cannot_be_bound_twice():
    with pytest.raises(UsageError, match="twice"):
        dispatcher(Method("node.info", Nothing, frozenset(), handler=lambda *_: None))


def test_in_process_calls_take_names_places_or_nothing():
    class Two(Params, frozen=True):
        a: int
        b: str = "b"

    methods, _ = dispatcher(Method("two", Two, frozenset(Caller), handler=lambda _, params: params))

    async def main():
        return [
            await methods.call(OWNER, "two", {"a": 1}),
            await methods.call(OWNER, "two", [1, "c"]),
            await methods.call(OWNER, "node.info"),
        ]

    assert asyncio.run(main()) == [{"a": 1, "b": "b"}, {"a": 1, "b": "c"}, None]


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("nope", {}, MethodNotFound),
        ("agents.search", {}, InvalidParams),
        ("agents.search", {"query": "x", "limit": 0}, InvalidParams),
        ("agents.search", {"query": "x", "other": 0}, InvalidParams),
        ("agents.search", ["x", 1, 2, 3], InvalidParams),
        ("agents.search", {"query": object()}, InvalidParams),
        ("agents.search", {"query": "\ud800"}, InvalidParams),
        ("chat.unwatch", {"watch": "w1"}, MethodNotFound),
    ],
)
def test_in_process_calls_meet_the_same_refusals(method, params, error):
    methods, room = dispatcher()
    with pytest.raises(error):
        asyncio.run(methods.call(OWNER, method, params))
    assert room.calls == []


def test_params_are_not_shared_with_an_in_process_caller():
    class Anything(Params, frozen=True):
        data: Any

    seen = []
    methods, _ = dispatcher(
        Method("keep", Anything, frozenset(Caller), handler=lambda _, p: seen.append(p.data))
    )
    mine = {"list": [1]}
    asyncio.run(methods.call(OWNER, "keep", {"data": mine}))
    mine["list"].append(2)
    assert seen == [{"list": [1]}]


def broken(_: Principal, __: Any) -> Any:
    raise RuntimeError(SECRET)


async def broken_later(_: Principal, __: Any) -> Any:
    raise RuntimeError(SECRET)


def useless(_: Principal, __: Any) -> Any:
    return {"value": object()}


def misused(_: Principal, __: Any) -> Any:
    raise UsageError("no such format", hint="md or json")


def endless(_: Principal, __: Any) -> Any:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    return nested


@pytest.mark.parametrize("handler", [broken, broken_later, useless, endless])
def test_an_unexpected_failure_is_told_by_a_reference_only(handler, caplog):
    methods, _ = dispatcher(Method("m", Nothing, frozenset(Caller), handler=handler))
    body = b'{"jsonrpc":"2.0","method":"m","id":1}'

    async def main() -> bytes:
        answer = methods.answer(OWNER, body)
        return answer if isinstance(answer, bytes) else await answer

    with caplog.at_level(logging.ERROR):
        answer = asyncio.run(main())
    error = msgspec.json.decode(answer)["error"]
    assert error["code"] == InternalError.code
    assert error["message"] == "internal error"
    assert error["data"]["id"] in caplog.text
    assert SECRET.encode() not in answer
    assert caplog.records[0].exc_info


def test_an_unexpected_failure_reaches_an_in_process_caller_as_an_rpc_error(caplog):
    methods, _ = dispatcher(Method("m", Nothing, frozenset(Caller), handler=broken))
    with pytest.raises(InternalError) as caught:
        asyncio.run(methods.call(OWNER, "m"))
    assert SECRET not in str(caught.value)
    assert SECRET in caplog.text


def test_a_wrong_argument_found_by_a_room_is_invalid_params():
    methods, _ = dispatcher(Method("m", Nothing, frozenset(Caller), handler=misused))
    with pytest.raises(InvalidParams, match="no such format") as caught:
        asyncio.run(methods.call(OWNER, "m"))
    assert caught.value.hint == "md or json"


def test_error_data_that_is_not_json_does_not_break_the_answer(caplog):
    def fails(_: Principal, __: Any) -> Any:
        raise RpcError("so it goes", thing=object())

    methods, _ = dispatcher(Method("m", Nothing, frozenset(Caller), handler=fails))
    answer = methods.answer(OWNER, b'{"jsonrpc":"2.0","method":"m","id":1}')
    assert msgspec.json.decode(answer)["error"]["code"] == InternalError.code


def test_a_stream_asked_without_events_gives_its_result_and_is_closed(serving):
    async def main():
        async with serving() as site:
            asking = asyncio.create_task(
                site.rpc(
                    {"jsonrpc": "2.0", "method": "chat.stream", "id": 1, "params": ["e", "hi"]}
                )
            )
            flow = await site.rooms["chat"].flows.get()
            flow.feed("dropped")
            flow.finish()
            answer = await asking
            await flow.closed.wait()
            return answer.json

    assert asyncio.run(main())["result"] == {"text": "hi", "status": "done"}


def test_a_watch_asked_without_events_is_refused_and_closed(serving):
    async def main():
        async with serving() as site:
            answer = await site.rpc({"jsonrpc": "2.0", "method": "chat.watch", "id": 1})
            await (await site.rooms["chat"].flows.get()).closed.wait()
            return answer.json

    assert "text/event-stream" in asyncio.run(main())["error"]["data"]["hint"]


def test_unwatch_is_only_there_on_a_socket(serving):
    assert next(row.kind for row in METHODS if row.name == "chat.unwatch") is Answers.SOCKET

    async def main():
        async with serving() as site:
            body = {"jsonrpc": "2.0", "method": "chat.unwatch", "id": 1, "params": ["w1"]}
            return (await site.rpc(body)).json

    assert asyncio.run(main())["error"]["code"] == MethodNotFound.code


class Sized(Params, frozen=True):
    name: str
    size: int = 7
    extra: int | None = 3


def test_null_for_an_optional_param_means_that_it_was_left_out():
    got: list[Any] = []
    row = Method("x.y", Sized, frozenset({Caller.OWNER}), handler=lambda _, p: got.append(p))
    methods, _ = dispatcher(row)

    def call(params: Any) -> Sized:
        asyncio.run(methods.call(OWNER, "x.y", params))
        return got.pop()

    assert call({"name": "a", "size": None}) == Sized("a")
    assert call(["a", None]) == Sized("a")
    assert call({"name": "a", "extra": None}).extra is None  # where null is a value it stays one
    absent, unknown = {"name": None, "size": None}, {"name": "a", "other": None}
    for wrong in (absent, unknown, {"size": None}, [None]):
        with pytest.raises(InvalidParams):
            call(wrong)
    with pytest.raises(InvalidParams, match="size"):
        call({"name": "a", "size": "x", "extra": None})


@pytest.mark.parametrize("name", [row.name for row in METHODS])
def test_every_method_takes_null_for_each_param_it_does_not_need(name):
    row = next(row for row in METHODS if row.name == name)
    fields = msgspec.structs.fields(row.params)
    bound = dispatcher()[0].find(OWNER, name)
    absent = {field.encode_name: None for field in fields if not field.required}
    needed = [field.encode_name for field in fields if field.required]
    raw = msgspec.Raw(msgspec.json.encode(absent))
    if needed:
        with pytest.raises(InvalidParams, match="missing"):
            bound.params(raw)
    else:
        assert bound.params(raw) == row.params()


# By position ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["echo", "hello"], {"agent": "echo", "text": "hello"}),
        (["m-1", 5], {"message_id": "m-1", "offset": 5}),
        (["m-1", 0], {"message_id": "m-1", "offset": 0}),
        ([None, None, None, "m-1"], {"message_id": "m-1"}),
    ],
)
def test_a_stream_goes_on_by_position_too(given, meant):
    methods, _ = dispatcher()
    bound = methods.find(OWNER, "chat.stream")
    assert bound.params(Raw(json.dumps(given).encode())) == Stream(**meant)


@pytest.mark.parametrize("given", [["echo", -1], ["m-1", 1.5], ["no id", 5], ["m-1", 5, None]])
def test_what_is_neither_a_question_nor_a_place_in_a_reply_is_refused(given):
    methods, _ = dispatcher()
    bound = methods.find(OWNER, "chat.stream")
    with pytest.raises(InvalidParams, match="text: expected str"):
        bound.params(Raw(json.dumps(given).encode()))
