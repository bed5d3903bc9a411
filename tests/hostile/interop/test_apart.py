"""One caller at another's things, through every other door than the one they came in by."""

from __future__ import annotations

import pytest

from tests.hostile.interop.knocks import modern, rpc, tool
from tests.wire.a2a.stage import said

SECRET = "the cake is in the cellar"


@pytest.fixture(scope="module")
def ann(site):
    """A conversation of hers, by A2A."""
    task = site.send("bell", SECRET, site.new_token("ann:"), messageId="same")
    return task["contextId"], task["id"]


@pytest.mark.parametrize("prefix", [None, "bob:"])
def test_what_one_said_by_a2a_nobody_else_finds_by_any_door(site, ann, prefix):
    context, task = ann
    token = None if prefix is None else site.new_token(prefix)
    uri = f"conversation://{context}"
    summary = {"name": "summarise_conversation", "arguments": {"conversation": context}}
    asked = [
        tool("conversation_history", conversation=context),
        tool("agent_send", agent="bell", text="go on", conversation=context),
        modern("resources/read", {"uri": uri}, uri),
        modern("prompts/get", summary, "summarise_conversation"),
    ]
    calls = [
        ("chat.history", {"conversation": context}),
        ("chat.send", {"agent": "bell", "text": "x", "conversation": context}),
        ("chat.cancel", {"message_id": task.partition(":")[2]}),
        ("chat.stream", {"message_id": task.partition(":")[2]}),
    ]
    tasks = [
        ("GetTask", {"id": task}),
        ("CancelTask", {"id": task}),
        ("SubscribeToTask", {"id": task}),
        ("SendMessage", {"message": said("x", contextId=context)}),
        ("SendMessage", {"message": said("x", taskId=task)}),
    ]
    rung = list(site.rung)
    with site.http(token) as http:
        answers = [http.request(**each) for each in asked]
        answers += [http.post("/rpc", json=rpc(*call)) for call in calls]
        answers += [http.post("/agents/bell/", json=rpc(*call)) for call in tasks]
        listed = http.post("/agents/bell/", json=rpc("ListTasks", {"contextId": context}))
    for answer in answers:
        assert SECRET not in answer.text
        assert "no such" in answer.text or answer.status_code == 401
    assert listed.json()["result"]["tasks"] == []
    assert site.rung == rung


def test_a_private_agent_is_nowhere_to_be_found_and_no_name_is_near_it(site):
    for token in (None, site.new_token("eve:")):
        with site.http(token) as http:
            for name in ("hermit", "hermi", f"hermit@{site.node.node_id}"):
                told = http.request(**tool("agent_card", agent=name)).json()["result"]
                nobody = http.request(**tool("agent_card", agent=f"x{name}")).json()["result"]
                assert told["content"][0]["text"] == nobody["content"][0]["text"].replace(
                    f"x{name}", name
                )
                assert (
                    http.post(f"/agents/{name}/", json=rpc("GetTask", {"id": "x"})).status_code
                    == 404
                )
            doors = [
                tool("agents_list"), tool("agents_search", query="hermit nobody hears"),
                modern("resources/list"), modern("resources/read", {"uri": "hub://catalog"}, "hub://catalog"),
                {"method": "GET", "url": "/.well-known/ard.json"},
                {"method": "GET", "url": "/api/agents"},
                {"method": "POST", "url": "/api/search", "json": {"query": {"text": "hermit"}}},
            ]  # fmt: skip
            for door in doors:
                answer = http.request(**door)
                assert answer.status_code == 200
                assert "hermit" not in answer.text
