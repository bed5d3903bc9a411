"""The routes of A2A behind the same guard as all others, and what outlives a node."""

from __future__ import annotations

import sys

import pytest

from aios_nb.config import Limits
from tests.wire.a2a.stage import Stage, answer_of, said, state

CARD = "/.well-known/agent-card.json"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": said("guarded")}}
PATHS = [("POST", "/agents/parrot/"), ("GET", f"/agents/parrot{CARD}"), ("GET", CARD)]


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_a_foreign_page_or_name_gets_nothing_and_does_nothing(site, method, path):
    port = site.node.url.rpartition(":")[2]
    before = site.call("chat.list", limit=1)
    with site.http(site.token) as http:
        for name, value, status in (
            ("Host", "evil.example", 421),
            ("Origin", "http://evil.example", 403),
            ("Origin", "null", 403),
            ("Origin", f"http://127.0.0.1:{int(port) ^ 1}", 403),
        ):
            body = {"json": CALL} if method == "POST" else {}
            answer = http.request(method, path, headers={name: value}, **body)
            assert answer.status_code == status
            assert "Access-Control-Allow-Origin" not in answer.headers
        assert http.options(path).status_code == 405
    assert site.call("chat.list", limit=1) == before
    with site.http("wrong") as http:
        answer = http.request(method, path, json=CALL)
        assert answer.status_code == 401
        assert "WWW-Authenticate" in answer.headers


def test_a_body_that_is_too_large_is_not_read(site):
    with site.http(site.token) as http:
        answer = http.post("/agents/parrot/", content=b" " * (5 << 20))
    assert answer.status_code == 413


def test_visitors_without_a_token_are_let_in_at_a_pace(tmp_path):
    stage = Stage(tmp_path / "home", name="slow", limits=Limits(open_per_s=1.0))
    try:
        with stage.http() as http:
            seen = [http.get(CARD).status_code for _ in range(5)]
        with stage.http(stage.token) as http:
            assert http.get(CARD).status_code == 200, "who shows a token does not wait for them"
    finally:
        stage.stop()
    assert seen[0] == 200
    assert seen[-1] == 429


def test_streams_are_bounded_and_what_finds_no_room_does_not_run(tmp_path):
    limits = Limits(open_per_s=1e6, open_streams=4)
    stage = Stage(tmp_path / "home", name="narrow", limits=limits)
    body = CALL | {"method": "SendStreamingMessage", "params": {"message": said("held")}}
    try:
        with stage.http() as http, http.stream("POST", "/agents/poet/", json=body) as first:
            lines = first.iter_lines()  # kept: without it the response would be closed
            next(lines)
            stage.reached("held")
            answer = http.post("/agents/poet/", json=body)
            assert answer.json()["error"]["data"][0]["reason"] == "BUSY"
            assert len(stage.gate("held").entered) == 1
            assert stage.send("parrot", "hi")["artifacts"], "asking without a stream works"
            stage.open_gate("held")
    finally:
        stage.stop()


def test_tasks_are_found_again_after_a_restart(tmp_path):
    home = tmp_path / "home"
    stage = Stage(home, name="again")
    token = stage.new_token("keeps:")
    done = stage.send("parrot", "kept", token, messageId="kept")
    cut = stage.send(
        "poet", "cut", token, messageId="cut", configuration={"returnImmediately": True}
    )
    stage.reached("cut")
    stage.stop()
    stage = Stage(home, name="again")
    try:
        found = stage.rpc("parrot", "GetTask", {"id": done["id"]}, token)["result"]
        assert answer_of(found) == "kept"
        assert found["history"][0]["messageId"] == "kept"
        assert stage.send("parrot", "kept", token, messageId="kept")["id"] == done["id"]
        assert state(stage.rpc("poet", "GetTask", {"id": cut["id"]}, token)["result"]) == "FAILED"
    finally:
        stage.stop()


def test_an_agent_of_another_node_is_called_through_ours(tmp_path):
    home = tmp_path / "home"
    far, near = Stage(home, name="far"), Stage(home, name="near")
    try:
        agent = f"parrot@{far.node.node_id}"
        with near.http(near.token) as http:
            card = http.get(f"/agents/{agent}{CARD}").json()
        assert card["supportedInterfaces"][0]["url"] == f"{near.node.url}/agents/{agent}/"
        (identity,) = card["capabilities"]["extensions"]
        assert identity["params"]["agent"] == agent
        assert identity["params"]["node"] == near.node.node_id
        task = near.send(agent, "over there", near.token)
        assert answer_of(task) == "over there"
        again = near.rpc(agent, "GetTask", {"id": task["id"]}, near.token)["result"]
        assert again["artifacts"] == task["artifacts"]
        with near.http() as http:
            assert http.get(f"/agents/{agent}{CARD}").status_code == 404
        assert near.rpc(agent, "GetTask", {"id": task["id"]}) == {"http": 404}
        assert near.rpc(agent, "SendMessage", {"message": said("x")}) == {"http": 404}
    finally:
        near.stop()
        far.stop()


def test_nothing_of_it_is_loaded_before_somebody_comes(tmp_path):
    import subprocess

    program = f"""
import sys
from pathlib import Path
from aios_nb.config import Settings
from aios_nb.node import Node
with Node(Settings(home=Path({str(tmp_path)!r}), name="lazy")):
    print([name for name in sys.modules if name.startswith(("a2a", "aios_nb.wire.a2a"))])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
