"""What is refused, with the codes and reasons of A2A."""

from __future__ import annotations

import json

import pytest

from aios_nb.errors import (
    AgentFailed,
    Busy,
    DeadlinePassed,
    InvalidParams,
    NoSuchAgent,
    NotAllowed,
    RpcError,
    TooLarge,
    Unreachable,
)
from aios_nb.wire import translated
from tests.wire.a2a.stage import said, state

DOMAIN = "a2a-protocol.org"


def refused(answer):
    """Code and reason of an error response."""
    error = answer["error"]
    assert isinstance(error["message"], str)
    (info,) = error["data"]
    assert info["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    assert all(isinstance(value, str) for value in info["metadata"].values())
    return error["code"], info["reason"], info["domain"]


@pytest.mark.parametrize(
    ("method", "params", "code", "reason"),
    [
        ("GetTask", {"id": "c1:m1"}, -32001, "TASK_NOT_FOUND"),
        ("GetTask", {"id": "no such task"}, -32001, "TASK_NOT_FOUND"),
        ("CancelTask", {"id": "c1:m1"}, -32001, "TASK_NOT_FOUND"),
        ("SubscribeToTask", {"id": "c1:m1"}, -32001, "TASK_NOT_FOUND"),
        ("SendMessage", {"message": said("x", taskId="c1:m1")}, -32001, "TASK_NOT_FOUND"),
        (
            "CreateTaskPushNotificationConfig",
            {"task_id": "t", "url": "https://example.com"},
            -32003,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        (
            "SendMessage",
            {
                "message": said("x"),
                "configuration": {"taskPushNotificationConfig": {"url": "https://example.com"}},
            },
            -32003,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        ("GetExtendedAgentCard", {}, -32004, "UNSUPPORTED_OPERATION"),
        (
            "SendMessage",
            {"message": {**said(""), "parts": [{"text": "x", "mediaType": "image/png"}]}},
            -32005,
            "CONTENT_TYPE_NOT_SUPPORTED",
        ),
        (
            "SendMessage",
            {"message": {**said(""), "parts": [{"url": "http://169.254.169.254/"}]}},
            -32005,
            "CONTENT_TYPE_NOT_SUPPORTED",
        ),
        ("SendMessage", {}, -32602, "INVALID_PARAMS"),
        ("SendMessage", {"message": {**said("x"), "parts": []}}, -32602, "INVALID_PARAMS"),
        ("SendMessage", {"message": {**said("x"), "messageId": ""}}, -32602, "INVALID_PARAMS"),
        ("SendMessage", {"message": {**said("x"), "role": "user"}}, -32602, "INVALID_PARAMS"),
        ("SendMessage", {"message": {**said(""), "parts": [{}]}}, -32602, "INVALID_PARAMS"),
        ("SendMessage", {"message": said("x", contextId="c-made-up")}, -32602, "INVALID_PARAMS"),
        ("SendMessage", {"message": said("x", contextId="a/b c")}, -32602, "INVALID_PARAMS"),
        ("GetTask", {}, -32602, "INVALID_PARAMS"),
        ("GetTask", {"id": "c1:m1", "historyLength": -1}, -32602, "INVALID_PARAMS"),
        ("ListTasks", {"pageSize": 0}, -32602, "INVALID_PARAMS"),
        ("ListTasks", {"page_size": 101}, -32602, "INVALID_PARAMS"),
        ("ListTasks", {"pageToken": "x"}, -32602, "INVALID_PARAMS"),
        ("ListTasks", {"status": "TASK_STATE_BORED"}, -32602, "INVALID_PARAMS"),
        ("ListTasks", {"statusTimestampAfter": "soon"}, -32602, "INVALID_PARAMS"),
        ("ListTasks", [], -32602, "INVALID_PARAMS"),
        ("Dance", {}, -32601, "METHOD_NOT_FOUND"),
        ("message/send", {"message": {}}, -32009, "VERSION_NOT_SUPPORTED"),
    ],
)
def test_the_error_table(site, method, params, code, reason):
    assert refused(site.rpc("parrot", method, params)) == (code, reason, DOMAIN)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700),
        (b"[" * 20_000, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":' + b"[" * 20_000, -32700),
        (b"1", -32600),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"GetTask"}', -32600),
        (b'{"jsonrpc":"2.0","method":"SendMessage","params":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":3}', -32602),
    ],
)
def test_what_is_no_request_is_answered_in_one_line(site, body, code):
    with site.http() as http:
        answer = http.post(
            "/agents/parrot/", content=body, headers={"Content-Type": "application/json"}
        )
    assert answer.status_code == 200
    assert refused(answer.json())[0] == code
    assert "Traceback" not in answer.text


def test_only_json_is_taken(site):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"})
    with site.http() as http:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data"):
            headers = {"Content-Type": kind} if kind else {}
            answer = http.post("/agents/parrot/", content=body, headers=headers)
            assert (answer.status_code, answer.content) == (415, b"")
        for kind in ("application/json; charset=utf-8", "application/a2a+json"):
            answer = http.post("/agents/parrot", content=body, headers={"Content-Type": kind})
            assert answer.json()["result"]["tasks"] == []
        assert http.get("/agents/parrot/").status_code == 405


def test_the_version_is_ours_or_none(site):
    for version in ("1.0", "1.0.1", "1", ""):
        answer = site.rpc("parrot", "ListTasks", {}, **{"A2A-Version": version})
        assert answer["result"]["tasks"] == []
    for version in ("99.0", "0.3", "one", "10.0"):
        answer = site.rpc("parrot", "ListTasks", {}, **{"A2A-Version": version})
        assert refused(answer) == (-32009, "VERSION_NOT_SUPPORTED", DOMAIN)


def test_an_agent_that_fails_leaves_a_failed_task_that_says_why_in_one_line(site):
    task = site.send("grump", "hi")
    assert state(task) == "FAILED"
    assert task["status"]["message"]["parts"][0]["text"].isprintable()
    assert "Traceback" not in json.dumps(task)
    again = site.rpc("grump", "GetTask", {"id": task["id"]})["result"]
    assert state(again) == "FAILED"
    assert again["status"]["message"]["parts"] == task["status"]["message"]["parts"]


def test_a_message_for_a_task_that_wants_none_is_refused(site):
    task = site.send("parrot", "hi")
    late = {"message": said("more", taskId=task["id"])}
    assert refused(site.rpc("parrot", "SendMessage", late))[0] == -32004
    assert refused(site.rpc("parrot", "CancelTask", {"id": task["id"]}))[0] == -32002
    assert refused(site.rpc("parrot", "SubscribeToTask", {"id": task["id"]}))[0] == -32004
    elsewhere = {"message": said("more", taskId=task["id"], contextId="another")}
    assert refused(site.rpc("parrot", "SendMessage", elsewhere))[0] == -32602
    other = {"message": said("more", taskId=task["id"])}
    assert refused(site.rpc("poet", "SendMessage", other))[0] == -32001, "another agent's task"


# Our errors in the words of others -------------------------------------------------------------


def test_every_error_that_travels_has_words_in_both_protocols():
    kinds = set(RpcError.__subclasses__())
    assert kinds <= set(translated.TABLE)
    for kind in kinds:
        code, message, (info,) = translated.for_a2a(kind("it went wrong", hint="do this"))
        assert message == "it went wrong (do this)"
        assert -32099 <= code <= -32001 or -32700 <= code <= -32600
        assert info["reason"].isupper()


def test_what_a_model_can_act_on_is_a_tool_result_and_not_a_protocol_error():
    for error in (NoSuchAgent, AgentFailed, DeadlinePassed, Busy, TooLarge, Unreachable):
        assert translated.for_mcp(error("no")) == (None, translated.told(error("no")))
    assert translated.for_mcp(InvalidParams("no", hint="so"))[0] is None
    assert translated.for_mcp(ValueError("inside")) == (-32603, "internal error")


def test_long_and_hostile_words_become_one_short_line():
    error = AgentFailed("x\x1b[31m\n" * 500, note="a\nb", deep={"not": "shown"}, retry_after_s=1.5)
    _, message, (info,) = translated.for_a2a(error)
    assert len(message) == translated.TEXT_CHARS
    assert message.isprintable()
    assert info["metadata"] == {"note": "a b", "retry_after_s": "1.5"}
    assert translated.for_a2a(KeyError("inside"))[:2] == (-32603, "internal error")
    assert translated.for_a2a(NotAllowed("no"))[0] == -32004
