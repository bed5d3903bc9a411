"""The agents of one node: coming, changing, going, failing, waiting."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from aios_nb.access import Access
from aios_nb.agents import describe
from aios_nb.agents.failure import LINE_LIMIT
from aios_nb.envelope import FILES_PER_MESSAGE, Outcome
from aios_nb.errors import (
    AgentFailed,
    Busy,
    InvalidParams,
    NoSuchAgent,
    NotAllowed,
    Unreachable,
    UsageError,
)
from aios_nb.parts import File


def test_a_hosted_agent_is_a_target_with_a_card(play):
    async def scene(house):
        name = house.add(lambda text: text, name="adder", about="Adds", may_call=["echo"])
        hosted = house.host.get(name)
        assert hosted.id == f"adder@{'a' * 32}"
        assert (hosted.access, hosted.idempotent) == (Access.NETWORK, False)
        assert (hosted.timeout_s, hosted.may_call) == (300.0, ("echo",))
        assert hosted.carrier is house.host
        assert (hosted.card.id, hosted.card.about) == (hosted.id, "Adds")

    play(scene)


def test_replacing_is_live_and_what_runs_finishes_with_the_old_code(play):
    async def scene(house):
        go, started = asyncio.Event(), asyncio.Event()

        async def old(text):
            started.set()
            await go.wait()
            return "old"

        async def new(text):
            return "new"

        house.add(old, name="x", concurrency=1)
        running = house.start("x")
        await started.wait()
        waiting = house.start("x")
        await asyncio.sleep(0)
        house.add(new, name="x")
        assert (await waiting).text == "new"  # it had not begun
        assert (await house.ask("x")).text == "new"
        go.set()
        assert (await running).text == "old"

    play(scene)


def test_withdrawing_ends_the_offer_not_the_run(play):
    async def scene(house):
        go, started = asyncio.Event(), asyncio.Event()

        async def slow(text):
            started.set()
            await go.wait()
            return "done"

        house.add(slow, concurrency=1)
        running = house.start("slow")
        await started.wait()
        waiting = house.start("slow")
        await asyncio.sleep(0)
        house.host.withdraw("slow")
        with pytest.raises(NoSuchAgent):
            await waiting
        with pytest.raises(NoSuchAgent):
            await house.ask("slow")
        with pytest.raises(NoSuchAgent):
            house.host.withdraw("slow")
        go.set()
        assert (await running).text == "done"

    play(scene)


def test_a_wrong_name_offers_the_near_ones(play):
    async def scene(house):
        house.add(lambda text: text, name="adder")
        with pytest.raises(NoSuchAgent, match="did you mean adder"):
            house.host.get("ader")

    play(scene)


def test_a_builtin_cannot_be_withdrawn_and_comes_back_after_its_replacement(play):
    async def scene(house):
        async def builtin(text):
            return "built in"

        async def own(text):
            return "own"

        house.host.host(describe(builtin, name="echo", access="private"), builtin=True)
        assert house.host.listing(builtins=False) == []
        with pytest.raises(UsageError, match="cannot be withdrawn"):
            house.host.withdraw("echo")
        house.add(own, name="echo")
        assert (await house.ask("echo")).text == "own"
        assert not house.host.get("echo").builtin
        house.host.withdraw("echo")
        assert (await house.ask("echo")).text == "built in"
        assert house.host.get("echo").builtin

    play(scene)


def test_no_more_runs_at_once_than_the_agent_allows(play):
    async def scene(house):
        now, most = [0], [0]

        async def works(text):
            now[0] += 1
            most[0] = max(most[0], now[0])
            await asyncio.sleep(0)
            now[0] -= 1

        house.add(works, concurrency=3)
        await asyncio.gather(*(house.ask("works") for _ in range(20)))
        assert most[0] == 3

    play(scene)


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_teams_that_call_each_other_in_a_circle_finish(play, kind):
    """A calls B while B calls A, with one slot each."""

    async def scene(house):
        arrived, both = threading.Barrier(2), asyncio.Barrier(2)

        def make_async(other):
            async def member(text, ctx):
                if text == "leaf":
                    return "leaf"
                await both.wait()
                return await ctx.call(other, "leaf")

            return member

        def make_plain(other):
            def member(text, ctx):
                if text == "leaf":
                    return "leaf"
                arrived.wait(20)
                return ctx.call(other, "leaf")

            return member

        make = make_async if kind == "async" else make_plain
        house.add(make("b"), name="a", concurrency=1)
        house.add(make("a"), name="b", concurrency=1)
        outcomes = await asyncio.gather(house.ask("a", "go"), house.ask("b", "go"))
        assert [o.text for o in outcomes] == ["leaf", "leaf"]
        assert house.host.get("a").running == house.host.get("b").running == 0

    play(scene)


def test_an_agent_that_asks_several_at_once_and_is_asked_back_finishes(play):
    async def scene(house):
        async def leader(text, ctx):
            if text == "again":
                return "again"
            replies = await asyncio.gather(ctx.call("quick", ""), ctx.call("nested", ""))
            return " ".join(replies)

        async def quick(text):
            return "quick"

        async def nested(text, ctx):
            await asyncio.sleep(0)
            return await ctx.call("leader", "again")

        house.add(leader, concurrency=1)
        house.add(quick)
        house.add(nested)
        assert (await house.ask("leader")).text == "quick again"

    play(scene)


def test_waiting_for_a_person_leaves_the_agent_free_for_others(play):
    async def scene(house):
        async def asks(text, ctx):
            return await ctx.ask_user("sure?") if text == "ask" else "free"

        house.add(asks, concurrency=1)
        run = house.run()
        waiting = house.start("asks", "ask", run)
        await run.asked.wait()
        assert (await house.ask("asks")).text == "free"
        run.answer.set_result("yes")
        assert (await waiting).text == "yes"
        assert house.host.get("asks").running == 0

    play(scene)


def test_waiting_for_a_slot_can_be_cancelled(play):
    async def scene(house):
        go, started = asyncio.Event(), asyncio.Event()

        async def slow(text):
            started.set()
            await go.wait()

        house.add(slow, concurrency=1)
        running = house.start("slow")
        await started.wait()
        waiting = house.start("slow")
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go.set()
        await running
        assert house.host.get("slow").running == 0

    play(scene)


@pytest.mark.parametrize("kind", ["async", "thread"])
@pytest.mark.parametrize(
    "error",
    [
        ValueError("boom\nsecret"),
        SystemExit(1),
        KeyboardInterrupt(),
        StopIteration(),
        ExceptionGroup("g", [ValueError("x")]),
    ],
)
def test_a_failing_agent_is_one_line_for_the_caller_and_a_traceback_for_the_author(
    play, caplog, kind, error
):
    async def scene(house):
        async def fails(text):
            raise error

        def fails_too(text):
            raise error

        house.add(fails if kind == "async" else fails_too, name="fails", concurrency=1)
        task = house.task("fails")
        with pytest.raises(AgentFailed) as told:
            await house.host.carry(task, house.run())
        assert told.value.message.startswith("fails failed: ")
        assert "\n" not in told.value.message
        assert "secret" not in told.value.message
        assert told.value.__cause__ is None
        assert task.agent in caplog.text
        assert task.message_id in caplog.text
        assert "Traceback" in caplog.text
        assert "in fails" in caplog.text
        assert house.host.get("fails").running == 0

    with caplog.at_level(logging.ERROR, "aios_nb.agents"):
        play(scene)


def test_a_long_error_is_cut(play):
    async def scene(house):
        async def fails(text):
            raise ValueError("x" * 10_000)

        house.add(fails)
        with pytest.raises(AgentFailed) as told:
            await house.ask("fails")
        assert len(told.value.message) <= LINE_LIMIT

    play(scene)


@pytest.mark.parametrize(
    "error",
    [
        InvalidParams("give two numbers"),
        NotAllowed("not on Sundays"),
        Busy("come back later", retry_after_s=5),
        AgentFailed("no such city", hint="try Berlin"),
    ],
)
def test_an_error_said_on_purpose_reaches_the_caller_as_it_is(play, caplog, error):
    async def scene(house):
        async def picky(text):
            raise error

        house.add(picky)
        with pytest.raises(type(error)) as told:
            await house.ask("picky")
        assert told.value is error

    play(scene)
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("error", [Busy("callee"), NoSuchAgent("callee"), Unreachable("callee")])
def test_an_error_of_another_agent_that_escapes_is_this_agents_failure(play, error):
    """Busy would mean "nothing was taken", and the caller would send the task again."""

    async def scene(house):
        async def callee(text):
            return ""

        async def outer(text, ctx):
            await ctx.call("callee", "")

        async def broken(*args, **kwargs):
            raise error

        house.add(callee)
        house.add(outer)
        run = house.run()
        run.call = broken
        with pytest.raises(AgentFailed, match="outer failed: callee"):
            await house.ask("outer", run=run)

    play(scene)


def test_files_are_stored_in_the_agents_name(play):
    async def scene(house):
        async def draws(text):
            return "here", File(b"content", name="a.txt")

        house.add(draws)
        outcome = await house.ask("draws")
        assert isinstance(outcome, Outcome)
        (ref,) = outcome.files
        assert (ref.name, ref.size) == ("a.txt", 7)
        assert house.blobs.content[ref.sha256] == b"content"
        assert house.blobs.owners[ref.sha256] == house.task("draws").agent

    play(scene)


def test_a_call_may_carry_16_files(play):
    async def scene(house):
        async def inner(text, ctx):
            return len(ctx.files)

        async def outer(text, ctx):
            return await ctx.call("inner", "", files=[File(b"x")] * int(text))

        house.add(inner)
        house.add(outer)
        assert (await house.ask("outer", "16")).data == FILES_PER_MESSAGE
        with pytest.raises(Exception, match="17 files"):
            await house.ask("outer", "17")

    play(scene)


def test_twenty_hosts_leave_nothing_behind(play):
    async def scene(house):
        def works(text):
            return text

        house.add(works)
        await asyncio.gather(*(house.ask("works", str(n)) for n in range(10)))

    for _ in range(20):
        play(scene)


def test_the_owner_is_served_before_strangers_who_came_first(play):
    async def scene(house):
        go, order = asyncio.Event(), []

        async def one(text):
            order.append(text)
            await go.wait()

        house.add(one, name="one", concurrency=1)
        began = house.start("one", "begun")
        await asyncio.sleep(0)
        runs = [began]
        for text in ("stranger 1", "stranger 2", "owner"):
            run = house.run()
            run.stranger = text != "owner"
            runs.append(house.start("one", text, run))
            await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*runs)
        assert order == ["begun", "owner", "stranger 1", "stranger 2"]

    play(scene)


def test_strangers_never_take_an_agents_last_slot(play):
    async def scene(house):
        go, order = asyncio.Event(), []

        async def three(text):
            order.append(text)
            if text != "owner":
                await go.wait()

        house.add(three, name="three", concurrency=3)
        runs = []
        for n in range(10):
            run = house.run()
            run.stranger = True
            runs.append(house.start("three", f"stranger {n}", run))
        await asyncio.sleep(0)
        await house.ask("three", "owner")  # while all strangers are still at it
        assert order == ["stranger 0", "stranger 1", "owner"]
        go.set()
        await asyncio.gather(*runs)
        hosted = house.host.get("three")
        assert (hosted.running, hosted.slots.strangers) == (0, 0)

    play(scene)
