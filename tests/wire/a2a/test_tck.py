"""What the public A2A test kit looks for, on a node in conformance mode; by hand, without it."""

from __future__ import annotations

import concurrent.futures
import json

import pytest

from tests.wire.a2a.stage import events_of, said, state

CARD = "/.well-known/agent-card.json"


def post(suite, method, params):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    with suite.http() as http:
        return http.post("/agents/tck/", json=body, headers={"A2A-Version": "1.0"})


def send(suite, message_id, **more):
    config = more.pop("configuration", {})
    params = {"message": said("hi", messageId=message_id, **more), "configuration": config}
    return post(suite, "SendMessage", params).json()


def stream(suite, message_id):
    answer = post(suite, "SendStreamingMessage", {"message": said("hi", messageId=message_id)})
    assert answer.headers["Content-Type"] == "text/event-stream"
    return events_of(answer.text)


def test_the_card_of_the_node_is_the_kits_agent(suite, site):
    with suite.http() as http:
        card = http.get(CARD)
    assert card.json()["supportedInterfaces"][0]["url"] == f"{suite.node.url}/agents/tck/"
    assert "max-age=" in card.headers["Cache-Control"]
    assert card.headers["ETag"]
    assert card.headers["Last-Modified"]
    assert card.json()["signatures"]
    with site.http() as http:
        assert http.get(CARD).json()["name"] == "Concierge"
        assert http.get(f"/agents/tck{CARD}").status_code == 404, "only in conformance mode"
        assert http.post("/agents/tck/", json={}).status_code == 404


FILE = {"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"}


@pytest.mark.parametrize(
    ("message_id", "part"),
    [
        ("tck-artifact-text-1", {"text": "Generated text content"}),
        ("tck-artifact-file-1", FILE),
        (
            "tck-artifact-file-url-1",
            {
                "url": "https://example.com/output.txt",
                "filename": "output.txt",
                "mediaType": "text/plain",
            },
        ),
        ("tck-artifact-data-1", {"data": {"key": "value", "count": 42}}),
    ],
)
def test_artifacts(suite, message_id, part):
    task = send(suite, message_id)["result"]["task"]
    assert state(task) == "COMPLETED"
    assert task["artifacts"][0]["parts"] == [part]


def test_messages_states_and_the_unknown(suite):
    done = send(suite, "tck-complete-task-1")["result"]["task"]
    assert done["status"]["message"]["parts"] == [{"text": "Hello from TCK"}]
    message = send(suite, "tck-message-response-1")["result"]["message"]
    assert message["parts"] == [{"text": "Direct message response"}]
    assert message["role"] == "ROLE_AGENT"
    assert state(send(suite, "tck-reject-task-1")["result"]["task"]) == "REJECTED"
    assert state(send(suite, "whatever")["result"]["task"]) == "COMPLETED"
    given = send(suite, "tck-complete-task-2", contextId="their-own")["result"]["task"]
    assert given["contextId"] == "their-own"


def test_a_task_that_needs_input_can_be_answered_or_cancelled(suite):
    task = send(suite, "tck-input-required-1")["result"]["task"]
    assert state(task) == "INPUT_REQUIRED"
    for length, expected in ((0, None), (1, 1), (9, 1)):
        got = post(suite, "GetTask", {"id": task["id"], "history_length": length}).json()
        assert len(got["result"].get("history") or []) == (expected or 0)
    answer = send(suite, "tck-complete-task-3", taskId=task["id"])["result"]["task"]
    assert (answer["id"], state(answer)) == (task["id"], "COMPLETED")
    assert len(answer["history"]) == 2
    assert send(suite, "tck-terminal", taskId=task["id"])["error"]["code"] == -32004
    other = send(suite, "tck-input-required-2")["result"]["task"]
    wrong = send(suite, "tck-mismatch", taskId=other["id"], contextId="wrong")
    assert wrong["error"]["code"] == -32602
    cancelled = post(suite, "CancelTask", {"id": other["id"]}).json()["result"]
    assert state(cancelled) == "CANCELED"
    again = post(suite, "CancelTask", {"id": other["id"]}).json()
    assert again["error"]["code"] == -32002


@pytest.mark.parametrize(
    ("message_id", "pieces"),
    [
        ("tck-stream-001", [{"text": "Stream hello from TCK"}]),
        ("tck-stream-003", [{"text": "Stream task lifecycle"}]),
        ("tck-stream-ordering-001", [{"text": "Ordered output"}]),
        ("tck-stream-artifact-text", [{"text": "Streamed text content"}]),
        ("tck-stream-artifact-file", [FILE]),
        ("tck-stream-artifact-chunked", [{"text": "chunk-1 "}, {"text": "chunk-2"}]),
        ("tck-stream-002", None),
    ],
)
def test_streams_begin_with_the_task_and_end_with_its_end(suite, message_id, pieces):
    events = stream(suite, message_id)
    assert "task" in events[0]
    updates = [event["artifactUpdate"] for event in events if "artifactUpdate" in event]
    states = [state(event["statusUpdate"]) for event in events if "statusUpdate" in event]
    assert [update["artifact"]["parts"][0] for update in updates] == (pieces or [])
    assert [update.get("lastChunk", False) for update in updates][-1:] in ([], [True])
    assert states == (["WORKING", "COMPLETED"] if pieces else ["COMPLETED"])
    assert "statusUpdate" in events[-1]


def test_two_subscribers_hear_the_same_in_the_same_order(suite):
    task = send(suite, "tck-input-required-3")["result"]["task"]["id"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool, suite.http() as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task}}

        def subscribe():
            with http.stream("POST", "/agents/tck/", json=body) as answer:
                lines = answer.iter_lines()
                first = next(lines)
                begun.release()
                return [first, *lines]

        begun = __import__("threading").Semaphore(0)
        listening = [pool.submit(subscribe) for _ in range(2)]
        for _ in listening:
            assert begun.acquire(timeout=30)
        send(suite, "tck-complete-task-4", taskId=task)
        one, two = (events_of("\n".join(heard.result(30))) for heard in listening)
    assert one == two
    assert [next(iter(event)) for event in one] == ["task", "statusUpdate"]
    assert state(one[-1]["statusUpdate"]) == "COMPLETED"


def test_a_client_finds_a_task_again_that_is_still_active(suite):
    now = {"returnImmediately": True}
    task = send(suite, "test-resubscribe-message-id-1", configuration=now)["result"]["task"]
    assert state(task) in ("SUBMITTED", "WORKING")
    events = events_of(post(suite, "SubscribeToTask", {"id": task["id"]}).text)
    assert state(events[0]["task"]) in ("SUBMITTED", "WORKING")
    assert state(events[-1]["statusUpdate"]) == "COMPLETED"
    over = post(suite, "SubscribeToTask", {"id": task["id"]}).json()
    assert over["error"]["code"] == -32004


def test_lists_are_sorted_and_paged(suite):
    for number in range(3):
        send(suite, f"tck-artifact-text-{number}", contextId="listed")
    seen, token = [], ""
    while True:
        params = {"context_id": "listed", "page_size": 2, "page_token": token}
        page = post(suite, "ListTasks", params).json()["result"]
        assert page["totalSize"] == 3
        assert all("artifacts" not in task for task in page["tasks"])
        seen += page["tasks"]
        token = page["nextPageToken"]
        if not token:
            break
    times = [task["status"]["timestamp"] for task in seen]
    assert times == sorted(times, reverse=True)
    assert len({task["id"] for task in seen}) == 3


def test_what_it_does_not_take_is_refused(suite):
    part = {"raw": "dGNr", "mediaType": "application/x-unsupported-tck-type"}
    params = {"message": {**said(""), "parts": [part], "messageId": "tck-send-003"}}
    assert post(suite, "SendMessage", params).json()["error"]["code"] == -32005
    for method, params, code in (
        ("GetTask", {"id": "tck-nonexistent"}, -32001),
        ("CancelTask", {"id": "tck-nonexistent"}, -32001),
        ("SubscribeToTask", {"id": "tck-nonexistent"}, -32001),
        ("SendMessage", {"message": said("x", taskId="tck-nonexistent")}, -32001),
        ("CreateTaskPushNotificationConfig", {"task_id": "t"}, -32003),
        ("GetExtendedAgentCard", {}, -32004),
        ("NonExistentMethod", {}, -32601),
        ("SendMessage", {}, -32602),
    ):
        answer = post(suite, method, params)
        assert answer.headers["Content-Type"] == "application/json"
        assert (json.loads(answer.text)["error"]["code"], method) == (code, method)
