"""JSON-RPC 2.0 on ``/rpc``, row by row, over a real socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from aios_nb.config import Limits
from aios_nb.wire.conformance import CONFORMANCE

PARSE, REQUEST, METHOD, PARAMS = -32700, -32600, -32601, -32602


@pytest.fixture
def ask(serving):
    """The status and the decoded answer (None when empty) to one body."""

    def ask(body: bytes | Any, **options: Any) -> tuple[int, Any]:
        async def main() -> tuple[int, Any]:
            async with serving(conformance=True, extra=CONFORMANCE, **options) as site:
                answer = await site.rpc(body, token=None)
                return answer.status, answer.json if answer.body else None

        return asyncio.run(main())

    return ask


def call(method: str, params: Any = ..., id_: Any = ..., **more: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, **more}
    if params is not ...:
        body["params"] = params
    if id_ is not ...:
        body["id"] = id_
    return body


def code(answer: tuple[int, Any]) -> tuple[int, Any]:
    status, body = answer
    assert status == 200
    assert body.keys() == {"jsonrpc", "error", "id"}
    assert body["jsonrpc"] == "2.0"
    assert isinstance(body["error"]["message"], str)
    assert "\n" not in body["error"]["message"]
    return body["error"]["code"], body["id"]


@pytest.mark.parametrize(
    ("params", "result"),
    [
        ([42, 23], 19),
        ([23, 42], -19),
        ({"subtrahend": 23, "minuend": 42}, 19),
        ({"minuend": 42, "subtrahend": 23}, 19),
    ],
)
def test_params_come_by_position_or_by_name_in_any_order(ask, params, result):
    expected = {"jsonrpc": "2.0", "result": result, "id": 1}
    assert ask(call("subtract", params, 1)) == (200, expected)


@pytest.mark.parametrize(
    "id_", ["1", '""', '"x"', "0", "-7", "1.0", "1e5", "null", "9" * 40, r'"é☃"']
)
def test_the_id_comes_back_as_it_was_sent(serving, id_):
    async def main():
        async with serving(conformance=True, extra=CONFORMANCE) as site:
            body = b'{"id": %b , "method": "get_data", "jsonrpc": "2.0"}' % id_.encode()
            return await site.rpc(body, token=None)

    answer = asyncio.run(main())
    assert answer.body == b'{"jsonrpc":"2.0","result":["hello",5],"id":%b}' % id_.encode()


@pytest.mark.parametrize(
    "body",
    [
        call("update", [1, 2, 3, 4, 5]),
        call("notify_hello", [7]),
        call("foobar"),
        call("subtract", [1]),
        call("subtract", 7),
        call("rpc.secret"),
    ],
)
def test_a_notification_is_never_answered_right_or_wrong(ask, body):
    assert ask(body) == (204, None)


@pytest.mark.parametrize(
    "method", ["foobar", "foo.get", "", "rpc.discover", "rpc.", "chat.nope", "__init__"]
)
def test_an_unknown_or_reserved_method_is_not_found(ask, method):
    assert code(ask(call(method, [], "1"))) == (METHOD, "1")


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("subtract", []),
        ("subtract", [1]),
        ("subtract", [1, 2, 3]),
        ("subtract", {"minuend": 1}),
        ("subtract", {"minuend": 1, "subtrahend": 2, "more": 3}),
        ("subtract", {"minuend": "1", "subtrahend": 2}),
        ("subtract", [True, None]),
        ("get_data", [1]),
        ("get_data", {"a": 1}),
        ("sum", {"a": 1}),
        ("sum", ["x"]),
        ("subtract", 1),
        ("subtract", "x"),
        ("subtract", None),
        ("subtract", True),
    ],
)
def test_wrong_params_are_invalid_and_the_id_is_echoed(ask, method, params):
    assert code(ask(call(method, params, 9))) == (PARAMS, 9)


def test_missing_params_are_invalid_when_some_are_needed(ask):
    assert code(ask(call("subtract", id_=9))) == (PARAMS, 9)


def test_a_complaint_names_the_field_and_how_to_call(ask):
    _, body = ask(call("subtract", {"minuend": 1, "subtrahend": "x"}, 1))
    assert body["error"]["message"] == "subtract: subtrahend: expected int | float, got str"
    assert body["error"]["data"]["hint"] == "subtract(minuend, subtrahend)"


def test_a_complaint_quotes_little_of_what_was_sent_and_on_one_line(ask):
    _, body = ask(call("subtract", {"a\n\x1b[31m" + "b" * 9999: 1}, 1))
    message = body["error"]["message"]
    assert message.isprintable()
    assert len(message) < 250


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b'{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
        b'{"jsonrpc":"2.0","method":"sum","params":[1,],"id":1}',
        b'{"jsonrpc":"2.0","method":"get_data","id":1} x',
        b'{"jsonrpc":"1.0","method":"get_data","id":1',
        b'{"jsonrpc":"2.0","method":"\xff","id":1}',
        b'{"jsonrpc":"2.0","method":"update","params":["\xff"],"id":1}',
        b'{"jsonrpc":"2.0","method":"update","params":["\xed\xa0\x80"],"id":1}',
        b'{"jsonrpc":"2.0","method":"update","params":["\\ud800"],"id":1}',
        b'{"jsonrpc":"2.0","method":"update","params":[NaN],"id":1}',
        b"\xef\xbb\xbf{}",
        b"[" * 20_000 + b"]" * 20_000,
        b"[" * 20_000,
        b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
        b'{"jsonrpc":"2.0","method":"sum","id":1,"params":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'[{"jsonrpc":"2.0","method":"sum","params":[1,2,4],"id":"1"},{"jsonrpc":"2.0","method"]',
    ],
)
def test_what_is_not_json_in_utf_8_is_a_parse_error_with_a_null_id(ask, body):
    assert code(ask(body)) == (PARSE, None)


@pytest.mark.parametrize("body", [b"1", b"null", b'"x"', b"true", b"{}", b"1e999"])
def test_json_that_is_no_request_is_invalid_with_a_null_id(ask, body):
    assert code(ask(body)) == (REQUEST, None)


@pytest.mark.parametrize(
    ("body", "id_"),
    [
        ({"jsonrpc": "2.0", "method": 1, "params": "bar"}, None),
        ({"jsonrpc": "2.0", "method": 1, "id": "a"}, "a"),
        ({"jsonrpc": "2.0", "method": None, "id": 4}, 4),
        ({"jsonrpc": "2.0", "id": 4}, 4),
        ({"method": "get_data", "id": 5}, 5),
        ({"method": "get_data"}, None),
        ({"jsonrpc": "1.0", "method": "get_data", "id": ""}, ""),
        ({"jsonrpc": 2.0, "method": "get_data", "id": 0}, 0),
        ({"jsonrpc": 2, "method": "get_data"}, None),
    ],
)
def test_a_wrong_version_or_method_is_invalid_under_its_own_id(ask, body, id_):
    assert code(ask(body)) == (REQUEST, id_)


@pytest.mark.parametrize("id_", [{}, {"a": 1}, [], [1], True, False])
def test_an_id_of_another_kind_is_invalid_with_a_null_id(ask, id_):
    assert code(ask(call("get_data", id_=id_))) == (REQUEST, None)
    assert code(ask({"jsonrpc": "1.0", "method": "get_data", "id": id_})) == (REQUEST, None)


def test_an_empty_batch_is_one_invalid_request(ask):
    assert code(ask([])) == (REQUEST, None)


@pytest.mark.parametrize(
    "members", [[1], [1, 2, 3], [None, "x"], [[]], [{}], [[call("get_data", id_=1)]]]
)
def test_each_member_that_is_no_request_gets_its_own_error(ask, members):
    status, answers = ask(members)
    assert status == 200
    assert [(a["error"]["code"], a["id"]) for a in answers] == [(REQUEST, None)] * len(members)


def test_the_mixed_batch_of_the_specification(ask):
    _, answers = ask(
        [
            call("sum", [1, 2, 4], "1"),
            call("notify_hello", [7]),
            call("subtract", [42, 23], "2"),
            {"foo": "boo"},
            call("foo.get", {"name": "myself"}, "5"),
            call("get_data", id_="9"),
        ]
    )
    assert [(a["id"], a.get("result", a.get("error", {}).get("code"))) for a in answers] == [
        ("1", 7),
        ("2", 19),
        (None, REQUEST),
        ("5", METHOD),
        ("9", ["hello", 5]),
    ]


def test_a_batch_of_notifications_is_not_answered(ask):
    assert ask([call("notify_sum", [1, 2, 4]), call("notify_hello", [7])]) == (204, None)


def test_a_batch_may_be_full_but_not_fuller(ask):
    limits = Limits(batch_calls=3)
    assert len(ask([call("get_data", id_=1)] * 3, limits=limits)[1]) == 3
    assert code(ask([call("get_data", id_=1)] * 4, limits=limits)) == (REQUEST, None)


def test_slow_and_quick_members_of_a_batch_keep_their_places(serving):
    async def main():
        async with serving() as site:
            asking = asyncio.create_task(
                site.rpc(
                    [
                        call("chat.send", ["echo", "wait"], 1),
                        call("node.info", id_=2),
                        call("chat.send", ["echo", "at once"], 3),
                    ]
                )
            )
            await site.rooms["chat"].entered.wait()
            site.rooms["chat"].gate.set()
            return (await asking).json

    assert [answer["id"] for answer in asyncio.run(main())] == [1, 2, 3]


def test_the_node_s_own_methods_are_closed_to_anyone_in_conformance_mode(ask):
    assert code(ask(call("node.info", id_=1))) == (-32006, 1)
    assert code(ask(call("chat.send", ["echo", "hi"], 1))) == (-32006, 1)


def test_the_fixtures_are_not_there_otherwise(serving):
    async def main():
        async with serving() as site:
            with_token = await site.rpc(call("subtract", [1, 2], 1))
            without = await site.rpc(call("subtract", [1, 2], 1), token=None)
            return with_token, without

    with_token, without = asyncio.run(main())
    assert with_token.json["error"]["code"] == METHOD
    assert without.status == 401


def test_numbers_too_large_for_a_float_are_invalid_params(ask):
    body = b'{"jsonrpc":"2.0","method":"subtract","params":[1e999,1],"id":3}'
    assert code(ask(body)) == (PARAMS, 3)


def test_extra_members_and_white_space_do_no_harm(ask):
    body = b' \n{"jsonrpc" : "2.0", "method":"get_data", "id":1, "extra": {"x": []} }\r\n '
    assert ask(body) == (200, json.loads('{"jsonrpc":"2.0","result":["hello",5],"id":1}'))
