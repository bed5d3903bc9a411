"""Streams that end otherwise than they should: a client that dies, a token that is taken back."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable

import httpx
import pytest

from tests.wire.a2a.stage import CEILING_S, answer_of, events_of, said, state


def streaming(text, **message):
    return {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "SendStreamingMessage",
        "params": {"message": said(text, **message)},
    }


def streams_open(site) -> int:
    """How many streams the door has open now."""
    return site.on_loop(lambda: len(_door(site)._streams))


def _door(site):
    server = site.rooms.tokens.on_revoked.__self__  # who ends streams when a token is revoked
    return server._doors["/agents/"]._door


@pytest.fixture
def all_closed(site) -> Callable[[], None]:
    """Waits until no stream is open any more."""

    def wait() -> None:
        done = threading.Event()
        for _ in range(int(CEILING_S / 0.05)):
            if streams_open(site) == 0:
                return
            done.wait(0.05)
        raise AssertionError("a stream stayed open")

    return wait


def test_a_client_that_is_killed_leaves_no_stream_and_its_task_goes_on(site, all_closed):
    body = json.dumps(streaming("killed")).encode()
    host, port = site.node.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=CEILING_S) as raw:
        raw.sendall(
            b"POST /agents/poet/ HTTP/1.1\r\nHost: %b:%b\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % (host.encode(), port.encode(), len(body)) + body
        )
        got = b""
        while b'"one, "' not in got:
            got += raw.recv(65_536)
        # Killed: nothing is said to the other side but that it is over.
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    all_closed()
    data = next(line for line in got.decode().splitlines() if line.startswith("data: "))
    task = json.loads(data[6:])["result"]["task"]["id"]
    site.reached("killed")
    assert state(site.rpc("poet", "GetTask", {"id": task})["result"]) == "WORKING"
    site.open_gate("killed")
    with site.http() as http:
        again = {"jsonrpc": "2.0", "id": 8, "method": "SubscribeToTask", "params": {"id": task}}
        with contextlib.suppress(KeyError):  # it may be over already
            events_of(http.post("/agents/poet/", json=again).text)
    done = site.rpc("poet", "GetTask", {"id": task})["result"]
    assert state(done) == "COMPLETED"
    assert answer_of(done) == "one, two"


def test_a_revoked_token_ends_its_stream_at_once(site, all_closed):
    made = site.call("tokens.create", scope="chat", prefix="gone:")
    with (
        site.http(made["token"]) as http,
        http.stream("POST", "/agents/poet/", json=streaming("revoked")) as answer,
    ):
        lines = answer.iter_lines()
        assert "task" in json.loads(next(lines)[6:])["result"]
        site.reached("revoked")
        site.call("tokens.revoke", id=made["id"])
        with contextlib.suppress(httpx.RemoteProtocolError):
            assert "COMPLETED" not in "".join(lines)
    all_closed()
    site.open_gate("revoked")
    assert site.rpc("poet", "ListTasks", {}, made["token"]) == {"http": 401}


def test_each_event_is_a_response_to_its_request(site):
    with site.http(site.token) as http:
        answer = http.post("/agents/asker/", json=streaming("hi", messageId="enveloped"))
    lines = [json.loads(line[6:]) for line in answer.text.splitlines() if line]
    assert {(line["jsonrpc"], line["id"]) for line in lines} == {("2.0", 7)}
    assert all(len(line["result"]) == 1 for line in lines)
    assert "statusUpdate" in lines[-1]["result"]


def test_what_went_wrong_before_the_first_event_is_plain_json(site):
    with site.http() as http:
        for params in ({"message": said("x", taskId="c1:m1")}, {}):
            body = streaming("x") | {"params": params}
            answer = http.post("/agents/poet/", json=body)
            assert answer.headers["Content-Type"] == "application/json"
            assert answer.json()["error"]["code"] in (-32001, -32602)
        nowhere = http.post("/agents/hermit/", json=streaming("x"))
        assert nowhere.status_code == 404


def test_history_is_as_long_as_was_asked_for_in_a_stream_too(site):
    body = streaming("hi", messageId="short")
    body["params"]["configuration"] = {"historyLength": 0}
    with site.http(site.token) as http:
        events = events_of(http.post("/agents/parrot/", json=body).text)
        assert "history" not in events[0]["task"]
        # The same message again: it is over, and the task is all there is to say.
        (again,) = events_of(http.post("/agents/parrot/", json=body).text)
    assert answer_of(again["task"]) == "hi"


def test_a_reply_that_is_not_streamed_comes_in_one_piece_with_its_data(site):
    body = streaming("", messageId="data", parts=[{"data": {"a": 1}}])
    with site.http(site.token) as http:
        events = events_of(http.post("/agents/parrot/", json=body).text)
    parts = [
        part
        for event in events
        if "artifactUpdate" in event
        for part in event["artifactUpdate"]["artifact"]["parts"]
    ]
    assert [part["data"] for part in parts if "data" in part] == [{"heard": {"a": 1}}]
    assert events[-2]["artifactUpdate"]["lastChunk"]
