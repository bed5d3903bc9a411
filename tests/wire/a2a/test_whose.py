"""Whose tasks are whose: each caller has its own, strangers those whose ids they know."""

from __future__ import annotations

import hashlib

import pytest

from aios_nb.wire.a2a.tasks import place_of
from tests.wire.a2a.stage import answer_of, said, state

NOT_FOUND = -32001


def code(answer):
    return answer["error"]["code"]


@pytest.fixture(scope="module")
def ann(site):
    return site.new_token("ann:")


@pytest.fixture(scope="module")
def bob(site):
    return site.new_token("bob:")


def test_another_caller_finds_neither_task_nor_context(site, ann, bob):
    waiting = site.send("asker", "hi", ann, messageId="whose-1")
    assert state(waiting) == "INPUT_REQUIRED"
    task, context = waiting["id"], waiting["contextId"]
    for other in (bob, None, site.token):
        for method in ("GetTask", "CancelTask", "SubscribeToTask"):
            assert code(site.rpc("asker", method, {"id": task}, other)) == NOT_FOUND
        answer = {"message": said("I am Ann", taskId=task)}
        assert code(site.rpc("asker", "SendMessage", answer, other)) == NOT_FOUND
        listed = site.rpc("asker", "ListTasks", {"contextId": context}, other)["result"]
        assert listed["tasks"] == []
        assert all(
            one["id"] != task
            for one in site.rpc("asker", "ListTasks", {}, other)["result"]["tasks"]
        )
    for other in (bob, None):
        joining = {"message": said("let me in", contextId=context)}
        assert code(site.rpc("parrot", "SendMessage", joining, other)) == -32602
    mine = site.rpc("asker", "GetTask", {"id": task}, ann)["result"]
    assert state(mine) == "INPUT_REQUIRED", "nobody else has answered or cancelled it"
    done = site.send("asker", "Ann", ann, taskId=task, messageId="whose-2")
    assert answer_of(done) == "hello Ann"


def test_the_same_ids_of_two_callers_are_two_tasks(site, ann, bob):
    one = site.send("parrot", "from ann", ann, messageId="same")
    two = site.send("parrot", "from bob", bob, messageId="same")
    three = site.send("parrot", "from nobody", None, messageId="same")
    four = site.send("parrot", "from somebody", None, messageId="same")
    assert len({task["id"] for task in (one, two, three, four)}) == 4
    texts = [answer_of(task) for task in (one, two, three, four)]
    assert texts == ["from ann", "from bob", "from nobody", "from somebody"]


def test_a_repeated_message_is_the_same_task_and_runs_once(site, ann):
    first = site.send("parrot", "once", ann, messageId="again")
    again = site.send("parrot", "once", ann, messageId="again")
    assert again["id"] == first["id"]
    assert again["artifacts"] == first["artifacts"]
    other = site.rpc("parrot", "SendMessage", {"message": said("other", messageId="again")}, ann)
    assert code(other) == -32602
    odd = "an id / that is none of ours " * 20
    assert (
        site.send("parrot", "x", ann, messageId=odd)["id"]
        == (site.send("parrot", "x", ann, messageId=odd)["id"])
    )


def test_a_repeated_answer_is_not_the_answer_to_the_next_question(site, ann):
    asked = site.send("asker", "twice", ann, messageId="q-1")
    answer = {"taskId": asked["id"], "messageId": "q-2"}
    second = site.send("asker", "Ann", ann, **answer)
    again = site.send("asker", "Ann", ann, **answer)
    for task in (second, again):
        assert task["status"]["message"]["parts"][0]["text"] == "how old?"
    done = site.send("asker", "7", ann, taskId=asked["id"], messageId="q-3")
    assert answer_of(done) == "hello Ann 7"
    assert answer_of(site.send("asker", "Ann", ann, **answer)) == "hello Ann 7"


def test_strangers_know_a_task_by_its_id_alone_and_list_nothing(site):
    first = site.send("parrot", "hi", messageId="guess-me")
    second = site.send("parrot", "hi", messageId="guess-me")
    assert "guess-me" not in first["id"]
    ids = [place_of(task["id"]) for task in (first, second)]
    assert ids[0].conversation != ids[1].conversation
    assert site.rpc("parrot", "GetTask", {"id": first["id"]})["result"]["id"] == first["id"]
    assert site.rpc("parrot", "ListTasks", {})["result"]["tasks"] == []
    known = site.rpc("parrot", "ListTasks", {"contextId": first["contextId"]})["result"]
    assert [task["id"] for task in known["tasks"]] == [first["id"]]
    wrong = f"{first['contextId']}:{ids[1].message_id}"
    assert code(site.rpc("parrot", "GetTask", {"id": wrong})) == NOT_FOUND
    more = site.send("parrot", "more", contextId=first["contextId"])
    assert more["contextId"] == first["contextId"]


def test_a_conversation_goes_on_under_its_context_and_is_in_our_log(site, ann):
    first = site.send("parrot", "one", ann, messageId="talk-1")
    second = site.send("parrot", "two", ann, contextId=first["contextId"], messageId="talk-2")
    assert second["contextId"] == first["contextId"]
    rows = site.history(first["contextId"])
    assert [row["text"] for row in rows if row["kind"] == "message"] == ["one", "one", "two", "two"]
    listed = site.rpc("parrot", "ListTasks", {"contextId": first["contextId"]}, ann)["result"]
    assert [task["id"] for task in listed["tasks"]] == [second["id"], first["id"]]
    assert listed["totalSize"] == 2
    page = {"context_id": first["contextId"], "page_size": 1, "history_length": 0}
    listed = site.rpc("parrot", "ListTasks", page, ann)["result"]
    assert [task["id"] for task in listed["tasks"]] == [second["id"]]
    assert "history" not in listed["tasks"][0]
    after = site.rpc("parrot", "ListTasks", page | {"pageToken": listed["nextPageToken"]}, ann)
    assert [task["id"] for task in after["result"]["tasks"]] == [first["id"]]
    assert after["result"]["nextPageToken"] == ""


def test_what_the_owner_asked_from_a_notebook_is_a_task_of_the_owner(site):
    asked = site.call("chat.send", agent="parrot", text="from a cell")
    listed = site.rpc("parrot", "ListTasks", {"includeArtifacts": True}, site.token)["result"]
    task = listed["tasks"][0]
    assert task["contextId"] == asked["conversation"]
    assert answer_of(task) == "from a cell"
    assert site.rpc("poet", "ListTasks", {"status": "TASK_STATE_REJECTED"}, site.token)[
        "result"
    ] == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}


def test_a_client_that_does_not_wait_asks_again_later(site, ann):
    now = {"returnImmediately": True}
    task = site.send("poet", "later", ann, messageId="later", configuration=now)
    assert state(task) in ("SUBMITTED", "WORKING")
    site.reached("later")
    assert state(site.rpc("poet", "GetTask", {"id": task["id"]}, ann)["result"]) == "WORKING"
    busy = {"message": said("hurry", taskId=task["id"])}
    assert code(site.rpc("poet", "SendMessage", busy, ann)) == -32004
    site.open_gate("later")
    done = site.send("poet", "later", ann, messageId="later")
    assert done["id"] == task["id"]
    assert answer_of(done) == "one, two"


def test_files_and_data_go_both_ways(site, ann):
    part = {"raw": "aGk=", "filename": "../a.txt", "mediaType": "text/plain"}
    for token in (ann, None):
        task = site.send("parrot", "", token, parts=[part], messageId="file")
        files = [one for one in task["artifacts"][0]["parts"] if "filename" in one]
        assert [(one["raw"], one["filename"]) for one in files] == [("SEk=", "loud.txt")]
        sent = task["history"][0]["parts"][0]
        assert sent["filename"] == "a.txt"
        assert sent["url"].endswith(f"/blobs/{hashlib.sha256(b'hi').hexdigest()}")
        again = site.rpc("parrot", "GetTask", {"id": task["id"]}, token)["result"]
        assert again["artifacts"] == task["artifacts"]
        assert again["history"][0]["parts"] == task["history"][0]["parts"]
    value = {"a": [1, None, {"message_id": "mine"}]}
    task = site.send("parrot", "", ann, parts=[{"data": value}], message_id="snake", messageId="d")
    (data,) = [one["data"] for one in task["artifacts"][0]["parts"] if "data" in one]
    assert data == {"heard": value}
    bad = {"message": {**said(""), "parts": [{"raw": "no base64!"}]}}
    assert code(site.rpc("parrot", "SendMessage", bad, ann)) == -32602


def test_nothing_is_stored_for_an_agent_that_is_not_there(site):
    content = b"left at the wrong door"
    part = {"raw": "bGVmdCBhdCB0aGUgd3JvbmcgZG9vcg=="}
    params = {"message": {**said(""), "parts": [part]}}
    assert site.rpc("hermit", "SendMessage", params) == {"http": 404}
    sha256 = hashlib.sha256(content).hexdigest()
    with site.http(site.token) as http:
        assert http.get(f"/blobs/{sha256}").status_code == 404
        assert site.rpc("parrot", "SendMessage", params)["result"]
        assert http.get(f"/blobs/{sha256}").content == content
