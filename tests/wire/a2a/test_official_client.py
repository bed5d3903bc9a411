"""The official A2A client, unmodified, with agents of ours on a real node."""

from __future__ import annotations

import asyncio

import pytest
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError

from tests.wire.a2a.stage import artifact_text, heard, last_state, official, request, run


def test_it_finds_an_agent_checks_its_card_and_streams_its_answer(site):
    async def main():
        async with official(site, "poet") as client:
            events = []
            async for event in client.send_message(request("stream")):
                events.append(event)
                if event.HasField("artifact_update"):
                    await asyncio.to_thread(site.open_gate, "stream")
        return events

    events = run(main())
    assert events[0].task.status.state == TaskState.TASK_STATE_SUBMITTED
    assert events[0].task.history[0].parts[0].text == "stream"
    pieces = [event.artifact_update for event in events if event.HasField("artifact_update")]
    assert pieces[0].artifact.parts[0].text == "one, "
    assert not pieces[0].append
    assert all(piece.append for piece in pieces[1:])
    assert pieces[-1].last_chunk
    notes = [event.status_update.status for event in events if event.HasField("status_update")]
    assert {note.state for note in notes[:-1]} == {TaskState.TASK_STATE_WORKING}
    assert "thinking" in [part.text for note in notes for part in note.message.parts]
    assert notes[-1].state == TaskState.TASK_STATE_COMPLETED
    assert events[-1].HasField("status_update")


def test_it_answers_a_question_of_the_agent(site):
    async def main():
        async with official(site, "asker") as client:
            asked = await heard(client.send_message(request("twice")))
            task = asked[0]["task"]["id"]
            again = await heard(client.send_message(request("Ann", task_id=task)))
            done = await heard(client.send_message(request("7", task_id=task, message_id="3")))
            return asked, again, done, await client.get_task(GetTaskRequest(id=task))

    asked, again, done, task = run(main())
    assert last_state(asked) == last_state(again) == "INPUT_REQUIRED"
    question = asked[-1]["statusUpdate"]["status"]["message"]
    assert question["parts"][0]["text"] == "who are you?"
    assert again[-1]["statusUpdate"]["status"]["message"]["parts"][0]["text"] == "how old?"
    assert last_state(done) == "COMPLETED"
    assert artifact_text(done) == "hello Ann 7"
    said = [message.parts[0].text for message in task.history]
    assert said == ["twice", "who are you?", "Ann", "how old?", "7"]
    assert task.artifacts[0].parts[0].text == "hello Ann 7"


def test_it_cancels_a_task_that_is_at_work(site):
    async def main():
        async with official(site, "poet") as client:
            events = client.send_message(request("cancelled"))
            first = await anext(events)
            await asyncio.to_thread(site.reached, "cancelled")
            task = await client.cancel_task(CancelTaskRequest(id=first.task.id))
            rest = await heard(events)
            with pytest.raises(TaskNotCancelableError):
                await client.cancel_task(CancelTaskRequest(id=first.task.id))
            with pytest.raises(UnsupportedOperationError):
                await heard(client.subscribe(SubscribeToTaskRequest(id=first.task.id)))
        return task, rest

    task, rest = run(main())
    assert task.status.state == TaskState.TASK_STATE_CANCELED
    assert last_state(rest) == "CANCELED"


def test_it_goes_on_where_a_broken_stream_left_off_without_loss(site):
    async def main():
        async with official(site, "poet") as client:
            events = client.send_message(request("broken"))
            first = await anext(events)
            await asyncio.to_thread(site.reached, "broken")
            await events.aclose()  # the connection is gone, in the middle of an answer
            again = client.subscribe(SubscribeToTaskRequest(id=first.task.id))
            also = client.subscribe(SubscribeToTaskRequest(id=first.task.id))
            snapshot = await anext(again)
            await anext(also)
            await asyncio.to_thread(site.open_gate, "broken")
            return snapshot, await heard(again), await heard(also)

    snapshot, again, also = run(main())
    assert snapshot.task.status.state == TaskState.TASK_STATE_WORKING
    for events in (again, also):
        assert artifact_text(events) == "one, two"
        assert last_state(events) == "COMPLETED"


def test_a_subscription_lasts_through_questions_to_the_end(site):
    async def main():
        async with official(site, "asker") as client:
            asked = await heard(client.send_message(request("twice", message_id="sub")))
            task = asked[0]["task"]["id"]
            following = client.subscribe(SubscribeToTaskRequest(id=task))
            first = await anext(following)
            for number, text in enumerate(("Bob", "8")):
                answer = request(text, task_id=task, message_id=f"sub-{number}")
                await heard(client.send_message(answer))
            return first, await heard(following)

    first, rest = run(main())
    assert first.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    question = rest[0]["statusUpdate"]["status"]["message"]
    assert question["parts"][0]["text"] == "how old?"
    assert artifact_text(rest) == "hello Bob 8"
    assert last_state(rest) == "COMPLETED"


def test_it_lists_its_own_tasks_page_by_page_and_finds_no_others(site):
    token = site.new_token("pages:")

    async def main():
        async with official(site, "parrot", token) as client:
            for number in range(3):
                await heard(client.send_message(request(f"n{number}", message_id=f"{number}")))
            pages, after = [], ""
            while not pages or after:
                asked = ListTasksRequest(page_size=2, page_token=after, include_artifacts=True)
                page = await client.list_tasks(asked)
                after = page.next_page_token
                pages.append(page)
            only = ListTasksRequest(context_id=pages[0].tasks[0].context_id, history_length=0)
            with pytest.raises(TaskNotFoundError):
                await client.get_task(GetTaskRequest(id="c1:nothing"))
            return pages, await client.list_tasks(only)

    pages, only = run(main())
    assert [len(page.tasks) for page in pages] == [2, 1]
    assert {page.total_size for page in pages} == {3}
    texts = [task.artifacts[0].parts[0].text for page in pages for task in page.tasks]
    assert texts == ["n2", "n1", "n0"]
    assert [len(task.history) for task in only.tasks] == [0]
    assert not only.tasks[0].artifacts
