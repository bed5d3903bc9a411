"""Async agents on the node's loop."""

from __future__ import annotations

import asyncio
import contextvars
import logging

import pytest

from aios_nb.agents import inline
from aios_nb.errors import AgentFailed, Cancelled, TooLarge
from aios_nb.parts import File


def test_an_async_function_answers(play):
    async def scene(house):
        async def hello(text):
            await asyncio.sleep(0)
            return f"hello {text}"

        house.add(hello)
        assert (await house.ask("hello", "you")).text == "hello you"

    play(scene)


def test_a_run_that_never_waits_makes_no_task_and_leaves_the_loop_alone(play):
    async def scene(house):
        tasks = []

        async def who(text):
            tasks.append(asyncio.current_task())
            return text

        house.add(who)
        await house.ask("who")
        assert tasks == [asyncio.current_task()]

    play(scene)


def test_an_async_generator_streams_text_and_keeps_the_rest(play):
    async def scene(house):
        async def talk(text):
            yield "one "
            await asyncio.sleep(0)
            yield 2
            yield None
            yield {"three": 3}
            yield File(b"4", name="four.txt")

        run = house.run()
        house.add(talk)
        outcome = await house.ask("talk", run=run)
        assert run.pieces == ["one ", "2"]
        assert outcome.text == "one 2"
        assert outcome.data == {"three": 3}
        assert [f.name for f in outcome.files] == ["four.txt"]

    play(scene)


def test_a_plain_function_may_ask_to_run_inline(play):
    async def scene(house):
        def pieces(text):
            yield "a"
            return ("b", {"c": 1})

        house.add(lambda text: text.upper(), name="quick", engine="inline")
        house.add(pieces, engine="inline")
        assert (await house.ask("quick", "x")).text == "X"
        outcome = await house.ask("pieces")
        assert (outcome.text, outcome.data) == ("ab", {"c": 1})

    play(scene)


def test_the_context_gives_what_the_request_had_and_the_nodes_services(play):
    async def scene(house):
        async def inner(text):
            return text.upper(), {"n": 1}, File(b"x", name="x.txt")

        async def outer(text, ctx):
            ctx.progress("half", 0.5)
            reply = await ctx.call("inner", text)
            assert ctx.read(reply.files[0]) == b"x"
            assert ctx.messages[0].text == "earlier"
            assert (ctx.deadline, ctx.cancelled) == (60.0, False)
            assert ctx.caller == ctx.sender.id
            assert ctx.conversation == "c1"
            assert (ctx.data, ctx.files) == (None, ())
            assert await ctx.search("words", 3) == []
            return reply

        house.add(inner)
        house.add(outer)
        run = house.run()
        outcome = await house.ask("outer", "hi", run)
        assert (outcome.text, outcome.data) == ("HI", {"n": 1})
        assert [f.name for f in outcome.files] == ["x.txt"]
        assert run.notes == [("half", 0.5)]

    play(scene)


def test_data_and_files_travel_with_a_call(play):
    async def scene(house):
        async def inner(text, ctx):
            return f"{ctx.data['x']} {ctx.read(ctx.files[0]).decode()}"

        async def outer(text, ctx):
            return await ctx.call("inner", text, {"x": (1, 2)}, [File(b"file", name="f")])

        house.add(inner)
        house.add(outer)
        assert (await house.ask("outer")).text == "[1, 2] file"
        assert list(house.blobs.owners.values()) == [house.task("outer").agent]

    play(scene)


def test_a_cancel_reaches_the_agent_and_its_tidying_up_is_awaited(play):
    async def scene(house):
        started, tidied = asyncio.Event(), asyncio.Event()

        async def slow(text):
            try:
                started.set()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                tidied.set()

        house.add(slow, concurrency=1)
        task = house.start("slow")
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert tidied.is_set()
        assert house.host.get("slow").running == 0

    play(scene)


def test_a_cancelled_generator_is_closed(play):
    async def scene(house):
        closed, started = asyncio.Event(), asyncio.Event()

        async def talk(text):
            try:
                yield "a"
                started.set()
                await asyncio.Event().wait()
            finally:
                closed.set()

        house.add(talk)
        task = house.start("talk")
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert closed.is_set()

    play(scene)


def test_an_agent_that_swallows_its_cancel_and_answers_is_cancelled_all_the_same(play):
    async def scene(house):
        started = asyncio.Event()

        async def deaf(text):
            try:
                started.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0)
            return "too late"

        house.add(deaf)
        task = house.start("deaf")
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    play(scene)


def test_an_agent_that_goes_on_and_on_after_its_cancel_is_cut_off(play, monkeypatch, caplog):
    monkeypatch.setattr(inline, "CANCEL_GRACE_S", 0.0)

    async def scene(house):
        started = asyncio.Event()

        async def stubborn(text):
            while True:
                try:
                    started.set()
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    pass

        house.add(stubborn)
        run = house.run()
        task = house.start("stubborn", run=run)
        await started.wait()
        run.cancelled = True
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelling() == 1  # ours alone: the counts of others are left as they were
        assert house.host.get("stubborn").running == 0

    play(scene)
    assert "ignores its cancel" in caplog.text


def test_a_deadline_inside_the_agent_is_its_own_affair(play, monkeypatch):
    monkeypatch.setattr(inline, "CANCEL_GRACE_S", 0.0)

    async def scene(house):
        async def careful(text):
            try:
                async with asyncio.timeout(0):
                    try:
                        await asyncio.Event().wait()
                    finally:
                        for _ in range(5):
                            await asyncio.sleep(0)
            except TimeoutError:
                await asyncio.sleep(0)
                return "in time"

        house.add(careful)
        assert (await house.ask("careful")).text == "in time"

    play(scene)


def test_a_stray_cancel_is_the_agents_failure_not_ours(play):
    async def scene(house):
        async def confused(text):
            future = asyncio.get_running_loop().create_future()
            future.cancel()
            await future

        house.add(confused)
        with pytest.raises(AgentFailed, match="CancelledError"):
            await house.ask("confused")

    play(scene)


async def ends_its_generator(text):
    raise GeneratorExit


async def streams_and_ends_its_generator(text):
    yield "a"
    raise GeneratorExit


async def awaits_one_that_ends_its_generator(text):
    await asyncio.create_task(ends_its_generator(text))


def plain_and_ends_its_generator(text):
    raise GeneratorExit


def plainly_streams_and_ends_its_generator(text):
    yield "a"
    raise GeneratorExit


def plain_and_at_the_end(text):
    return next(iter([]))


@pytest.mark.parametrize(
    ("agent", "error"),
    [
        (ends_its_generator, "GeneratorExit"),
        (streams_and_ends_its_generator, "GeneratorExit"),
        (awaits_one_that_ends_its_generator, "GeneratorExit"),
        (plain_and_ends_its_generator, "GeneratorExit"),
        (plainly_streams_and_ends_its_generator, "GeneratorExit"),
        (plain_and_at_the_end, "StopIteration"),
    ],
)
def test_an_error_that_means_something_to_who_awaits_is_the_agents_failure_too(play, agent, error):
    async def scene(house):
        house.add(agent, name="odd", engine="inline")
        with pytest.raises(AgentFailed) as failed:
            await house.start("odd")
        assert failed.value.message == f"odd failed: {error}"

    play(scene)


def test_a_run_that_is_closed_from_outside_just_ends(play):
    async def scene(house):
        tidied = []

        async def slow(text):
            try:
                await asyncio.Event().wait()
            finally:
                tidied.append(text)

        house.add(slow)
        run = house.ask("slow", "here")
        run.send(None)
        # As when the loop was closed over it: no task of its own is at work.
        await asyncio.create_task(_close(run))
        assert tidied == ["here"]
        assert house.host.get("slow").running == 0

    play(scene)


async def _close(run):
    run.close()


def test_holding_the_loop_is_said_in_the_log(play, monkeypatch, caplog):
    monkeypatch.setattr(inline, "HOLD_WARN_S", 0.0)

    async def scene(house):
        async def busy(text):
            return text

        house.add(busy)
        await house.ask("busy")

    with caplog.at_level(logging.WARNING, "aios_nb.agents"):
        play(scene)
    assert 'use engine="thread"' in caplog.text
    assert "busy@" in caplog.text


def test_a_generator_that_never_waits_lets_others_go_on(play, monkeypatch):
    monkeypatch.setattr(inline, "BREATH_S", 0.0)

    async def scene(house):
        seen = []

        async def chatter(text):
            for n in range(3):
                seen.append(n)
                yield "x"

        house.add(chatter)
        task = house.start("chatter")
        await asyncio.sleep(0)
        assert 0 < len(seen) < 3
        await task

    play(scene)


def test_a_refused_piece_ends_the_run(play):
    async def scene(house):
        closed = []

        async def talk(text):
            try:
                while True:
                    yield "x"
            finally:
                closed.append(True)

        house.add(talk)
        run = house.run()
        run.refuse = Cancelled("this run is over")
        with pytest.raises(Cancelled):
            await house.ask("talk", run=run)
        assert closed

    play(scene)


def test_endless_text_is_stopped_at_the_limit(play):
    async def scene(house):
        async def endless(text):
            while True:
                yield "x" * 100_000

        house.add(endless)
        with pytest.raises(TooLarge, match="1 MB of text"):
            await house.ask("endless")

    play(scene)


def test_context_variables_of_the_caller_are_there(play):
    variable = contextvars.ContextVar("variable")

    async def scene(house):
        async def reads(text):
            return variable.get()

        def reads_too(text):
            return variable.get()

        house.add(reads)
        house.add(reads_too)
        variable.set("here")
        assert (await house.ask("reads")).text == "here"
        assert (await house.ask("reads_too")).text == "here"

    play(scene)
