"""An A2A agent of others is asked like one of ours: with the public SDK on the other side."""

from __future__ import annotations

import asyncio

import pytest

from aios_nb.errors import AgentFailed, NotAllowed
from tests.wire.outside.a2apeers import House, Listener, agent, cable, in_house


@pytest.mark.parametrize("streaming", [True, False])
def test_a_question_is_answered_in_pieces_or_in_one(tmp_path, streaming):
    async def work(house: House):
        async with agent(streaming=streaming) as there:
            run = Listener()
            outcome = await house.ask(there.url, "pieces", run)
            return run, outcome

    run, outcome = in_house(tmp_path, work)

    assert outcome.text == "one two three\n\nthat was all"
    assert outcome.text.startswith("".join(run.heard))
    assert run.heard[:3] == ["one ", "two ", "three"] or not streaming
    assert run.begun


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("message", "at once"),
        ("final", "said in the end"),
        ("note", "all I say is said on the way"),
        ("hello", "you said hello"),
    ],
)
def test_whatever_form_the_answer_has_its_words_arrive(tmp_path, said, answer):
    async def work(house: House):
        async with agent() as there:
            return await house.ask(there.url, said)

    assert in_house(tmp_path, work).text == answer


def test_text_data_and_files_go_there_and_come_back(tmp_path):
    async def work(house: House):
        async with agent() as there:
            file = await house.blobs.put(b"pixels", "in.png", "image/png", "me")
            outcome = await house.ask(there.url, "everything", files=[file], data={"a": [1]})
            sent = there.worker.heard[0].message.parts
            kept = [house.blobs.read(ref.sha256) for ref in outcome.files]
            return outcome, kept, sent

    outcome, kept, sent = in_house(tmp_path, work)

    assert outcome.data == {"sum": 4}
    assert [(ref.name, ref.mime) for ref in outcome.files] == [
        ("t.csv", "text/csv"),
        ("notes.txt", "text/plain"),
    ]
    assert kept == [b"a,b\n", b"my notes"]
    # A file on somebody else's server is not fetched: its address is told.
    assert "out.txt: https://example.com/out.txt" in outcome.text
    assert sent[0].text == "everything"
    assert sent[1].data.struct_value["a"][0] == 1
    assert (sent[2].raw, sent[2].filename, sent[2].media_type) == (b"pixels", "in.png", "image/png")


@pytest.mark.parametrize("streaming", [True, False])
def test_a_question_back_is_asked_here_and_its_answer_goes_on_with_the_task(tmp_path, streaming):
    async def work(house: House):
        async with agent(streaming=streaming) as there:
            run = Listener(["asks blue"])
            outcome = await house.ask(there.url, "asks", run)
            return run, outcome, there.worker.heard

    run, outcome, heard = in_house(tmp_path, work)

    assert run.asked == ["which colour?"]
    assert outcome.text == "painted asks blue"
    assert len({context.task_id for context in heard}) == 1
    assert len({context.message.message_id for context in heard}) == 2


def test_a_conversation_stays_one_over_there_and_callers_never_share_one(tmp_path):
    async def work(house: House):
        async with agent() as there:
            await house.ask(there.url, "a")
            await house.ask(there.url, "b")
            await house.ask(there.url, "c", conversation="c2")
            await house.ask(there.url, "d", caller="b" * 32)
            return [context.context_id for context in there.worker.heard]

    first, second, other, stranger = in_house(tmp_path, work)

    assert first == second
    assert len({first, other, stranger}) == 3


def test_our_cancel_reaches_it(tmp_path):
    async def work(house: House):
        async with agent() as there:
            run = Listener()
            asking = asyncio.create_task(house.ask(there.url, "slow", run))
            await there.worker.working.wait()
            run.cancelled = True
            asking.cancel()
            await there.worker.stopped.wait()
            with pytest.raises(asyncio.CancelledError):
                await asking

    in_house(tmp_path, work)


def test_a_lost_stream_is_no_lost_answer(tmp_path):
    async def work(house: House):
        async with cable() as way, agent(at=way.url) as there:
            way.lead_to(there.url)
            run = Listener()
            asking = asyncio.create_task(house.ask(there.url, "slow", run))
            await there.worker.working.wait()
            await run.hears.wait()
            way.cut()
            there.worker.go_on.set()
            return await asking, run, len(there.worker.heard)

    outcome, run, asked = in_house(tmp_path, work)

    assert outcome.text == "first last"
    assert "".join(run.heard) == "first last"
    assert asked == 1


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("fails", AgentFailed, "it failed: out of paint"),
        ("rejects", AgentFailed, "it does not take this: not my job"),
        ("auth", NotAllowed, "it wants a sign-in first: sign in"),
    ],
)
def test_a_bad_end_is_one_line(tmp_path, said, kind, words):
    async def work(house: House):
        async with agent() as there:
            await house.ask(there.url, said)

    with pytest.raises(kind) as caught:
        in_house(tmp_path, work)
    assert caught.value.message == words
