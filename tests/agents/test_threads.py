"""Plain functions in threads: streaming, cancel, what is left behind."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from aios_nb.agents import Stopped, threads
from aios_nb.config import Limits
from aios_nb.errors import AgentFailed, Busy, Cancelled, TooLarge
from aios_nb.parts import File


def test_a_function_runs_in_another_thread_while_the_loop_goes_on(play):
    async def scene(house):
        go = threading.Event()

        def waits(text):
            go.wait()
            return threading.current_thread().name

        house.add(waits)
        task = house.start("waits")
        await asyncio.sleep(0)
        go.set()
        assert (await task).text.startswith("aios-agent")

    play(scene)


def test_a_generator_streams_while_it_works(play):
    async def scene(house):
        seen = threading.Event()
        run = house.run()
        original = run.delta

        def delta(text):
            original(text)
            seen.set()

        run.delta = delta

        def talk(text):
            yield "first "
            assert seen.wait(10), "the first piece was not streamed"
            yield {"data": 1}
            yield 2
            return (" last", File(b"x", name="x"))

        house.add(talk)
        outcome = await house.ask("talk", run=run)
        assert outcome.text == run.text == "first 2 last"
        assert outcome.data == {"data": 1}
        assert len(outcome.files) == 1

    play(scene)


def test_many_pieces_need_few_wake_ups(play):
    async def scene(house):
        def talk(text):
            for _ in range(10_000):
                yield "x"

        loop, woken = asyncio.get_running_loop(), []
        wake = loop.call_soon_threadsafe

        def count(callback, *args, **options):
            woken.append(callback)
            return wake(callback, *args, **options)

        loop.call_soon_threadsafe = count
        house.add(talk)
        run = house.run()
        outcome = await house.ask("talk", run=run)
        assert len(outcome.text) == len(run.text) == 10_000
        assert len(woken) < 5_000

    play(scene)


def test_the_context_blocks_and_returns(play):
    async def scene(house):
        async def inner(text):
            return text.upper(), {"n": 1}

        def outer(text, ctx):
            ctx.progress("half", 0.5)
            reply = ctx.call("inner", text)
            assert ctx.messages[0].text == "earlier"
            assert 0 < ctx.deadline <= 60.0
            assert not ctx.cancelled
            assert list(ctx.search("words")) == []
            assert ctx.ask_user("sure?") == "yes"
            return reply

        house.add(inner)
        house.add(outer)
        run = house.run()
        run.answer.set_result("yes")
        outcome = await house.ask("outer", "hi", run)
        assert (outcome.text, outcome.data) == ("HI", {"n": 1})
        assert run.notes == [("half", 0.5)]

    play(scene)


def test_a_question_to_a_person_can_move_the_deadline(play):
    async def scene(house):
        def asks(text, ctx):
            before = ctx.deadline
            ctx.ask_user("?")
            return f"{before < 100} {ctx.deadline > 100}"

        house.add(asks)
        run = house.run()
        task = house.start("asks", run=run)
        await run.asked.wait()
        run.left_s = 500.0
        run.answer.set_result("")
        assert (await task).text == "True True"

    play(scene)


def test_notes_and_pieces_arrive_in_order(play):
    async def scene(house):
        log = []

        def talk(text, ctx):
            for n in range(50):
                yield str(n)
                ctx.progress(str(n))

        run = house.run()
        run.delta = log.append
        run.progress = lambda note, fraction: log.append(note)
        house.add(talk)
        await house.ask("talk", run=run)
        assert log == [str(n) for n in range(50) for _ in "xx"]

    play(scene)


def test_an_error_of_another_agent_reaches_the_thread_as_it_is(play):
    async def scene(house):
        def outer(text, ctx):
            try:
                ctx.call("nobody", text)
            except Exception as error:  # noqa: BLE001
                return type(error).__name__

        house.add(outer)
        assert (await house.ask("outer")).text == "NoSuchAgent"

    play(scene)


def test_a_cancel_stops_python_code_at_its_next_step(play):
    async def scene(house):
        started, stopped = threading.Event(), threading.Event()

        def loops(text, ctx):
            started.set()
            try:
                while True:
                    time.monotonic()
            except Exception:  # noqa: BLE001 - agents often catch too much
                stopped.set()
            except Stopped:
                assert ctx.cancelled
                stopped.set()
                raise

        house.add(loops)
        task = house.start("loops")
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(stopped.wait)

    play(scene)


def test_a_cancel_wakes_an_agent_that_waits_for_another_one_or_for_a_person(play):
    async def scene(house):
        ended = []

        def asks(text, ctx):
            try:
                ctx.ask_user("sure?")
            finally:
                ended.append(ctx.cancelled)

        house.add(asks, concurrency=1)
        run = house.run()
        task = house.start("asks", run=run)
        await run.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await house.host.get("asks").slots.take()
        assert ended == [True]

    play(scene)


def test_the_slot_of_a_cancelled_run_stays_taken_until_its_thread_is_free(play):
    async def scene(house):
        started, release = threading.Event(), threading.Event()

        def stuck(text):
            started.set()
            release.wait()  # in C: an exception cannot reach it
            return text

        house.add(stuck, concurrency=1)
        task = house.start("stuck")
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        hosted = house.host.get("stuck")
        assert hosted.running == 1
        second = house.start("stuck", "second")
        await asyncio.sleep(0)
        assert hosted.slots.waiting == 1
        release.set()
        assert (await second).text == "second"
        assert hosted.running == 0

    play(scene)


def test_a_stop_never_hits_the_next_job_of_the_thread(play):
    async def scene(house):
        def short(text):
            return sum(range(int(text)))

        house.add(short, concurrency=1000)
        rounds = 300
        for n in range(rounds):
            doomed = house.start("short", str(n % 50 * 20))
            for _ in range(n % 4):
                await asyncio.sleep(0)
            doomed.cancel()
            healthy = house.start("short", "10")
            assert (await healthy).text == "45"
            await asyncio.wait([doomed])

    play(scene)


def test_a_stuck_thread_does_not_hold_up_the_close(play, caplog, monkeypatch):
    monkeypatch.setattr(threads, "CLOSE_GRACE_S", 0.05)
    release = threading.Event()
    workers = []

    async def scene(house):
        started = threading.Event()

        def stuck(text):
            workers.append(threading.current_thread())
            started.set()
            release.wait()

        house.add(stuck)
        task = house.start("stuck")
        await asyncio.to_thread(started.wait)
        task.cancel()
        await asyncio.wait([task])

    play(scene, leaves_threads=True)
    assert "stuck in its thread" in caplog.text
    assert all(worker.daemon for worker in workers)
    release.set()
    for worker in workers:
        worker.join(30)
        assert not worker.is_alive()


def test_closing_stops_what_runs_and_says_so_to_who_waits(play):
    async def scene(house):
        started = threading.Event()

        def loops(text):
            started.set()
            while True:
                time.monotonic()

        house.add(loops)
        task = house.start("loops")
        await asyncio.to_thread(started.wait)
        await house.host.close()
        with pytest.raises(Cancelled):
            await task
        with pytest.raises(Busy, match="stopping"):
            await house.ask("loops")

    play(scene)


def test_an_agent_that_ignores_the_stop_is_told_again_and_reported(play, caplog, monkeypatch):
    monkeypatch.setattr(threads, "INSIST_S", 0.001)
    monkeypatch.setattr(threads, "STUCK_AFTER", 3)

    async def scene(house):
        started = threading.Event()
        stops = []

        def deaf(text):
            started.set()
            while len(stops) < 5:
                try:
                    while True:
                        time.monotonic()
                except Stopped:
                    stops.append(True)

        house.add(deaf, concurrency=1)
        task = house.start("deaf")
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await house.host.get("deaf").slots.take()
        assert len(stops) == 5

    play(scene)
    assert "does not stop" in caplog.text


def test_no_more_threads_work_at_once_than_the_node_allows(play):
    async def scene(house):
        lock, now, most = threading.Lock(), [0], [0]
        both, go = threading.Semaphore(0), threading.Event()

        def works(text):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            both.release()
            go.wait()
            with lock:
                now[0] -= 1

        house.add(works, concurrency=100)
        tasks = [house.start("works") for _ in range(10)]
        for _ in range(2):
            await asyncio.to_thread(both.acquire)
        go.set()
        await asyncio.gather(*tasks)
        assert most[0] == 2

    play(scene, Limits(threads=2))


def test_threads_that_wait_for_each_other_do_not_run_out(play):
    async def scene(house):
        def deep(text, ctx):
            n = int(text)
            return ctx.call("deep", str(n - 1)) if n else "bottom"

        house.add(deep, concurrency=1)
        assert (await house.ask("deep", "20")).text == "bottom"

    play(scene, Limits(threads=1))


def test_a_function_that_returns_a_coroutine_or_generator_is_understood(play):
    async def scene(house):
        async def upper(text):
            return text.upper()

        async def pieces(text):
            yield text
            yield text

        def plain(text):
            yield text

        made = {"a": upper, "b": pieces, "c": plain}
        for name, make in made.items():
            house.add(lambda text, make=make: make(text), name=name)
        assert (await house.ask("a", "x")).text == "X"
        assert (await house.ask("b", "x")).text == "xx"
        assert (await house.ask("c", "x")).text == "x"

    play(scene)


def raises(error):
    raise error


def streams_and_raises(error):
    yield "a"
    raise error


@pytest.mark.parametrize("work", [raises, streams_and_raises])
@pytest.mark.parametrize("error", [GeneratorExit, asyncio.CancelledError])
def test_an_error_that_means_something_to_who_awaits_is_the_agents_failure_too(play, work, error):
    async def scene(house):
        house.add(lambda text: work(error), name="odd")
        with pytest.raises(AgentFailed) as failed:
            await house.ask("odd")
        assert failed.value.message == f"odd failed: {error.__name__}"

    play(scene)


def test_an_iterator_at_its_end_is_said_as_it_is(play):
    async def scene(house):
        house.add(lambda text: next(iter([])), name="odd")
        with pytest.raises(AgentFailed) as failed:
            await house.ask("odd")
        assert failed.value.message == "odd failed: StopIteration"

    play(scene)


def test_a_blocking_context_used_on_the_loop_is_one_line_not_a_deadlock(play):
    async def scene(house):
        async def later(ctx):
            return ctx.call("any", "x")

        house.add(lambda text, ctx: later(ctx), name="wrong")
        with pytest.raises(AgentFailed, match="wait for the node inside the node"):
            await house.ask("wrong")

    play(scene)


def test_a_refused_piece_stops_the_generator(play):
    async def scene(house):
        def endless(text):
            while True:
                yield "x"

        house.add(endless)
        run = house.run()
        run.refuse = TooLarge("enough")
        with pytest.raises(TooLarge, match="enough"):
            await house.ask("endless", run=run)
        with pytest.raises(TooLarge, match="1 MB of text"):
            await house.ask("endless")

    play(scene)


def test_strangers_have_half_of_the_threads(play):
    async def scene(house):
        go, began = threading.Event(), asyncio.Semaphore(0)
        loop = asyncio.get_running_loop()
        order = []

        def slow(text):
            order.append(text)
            loop.call_soon_threadsafe(began.release)
            assert go.wait(30)

        for name in ("a", "b", "c"):
            house.add(slow, name=name)
        runs = []
        for name in ("a", "b", "c"):
            run = house.run()
            run.stranger = True
            runs.append(house.start(name, "stranger", run))
        for _ in range(2):
            await began.acquire()
        runs += [house.start(name, "owner") for name in ("a", "b")]
        for _ in range(2):
            await began.acquire()
        assert order == ["stranger", "stranger", "owner", "owner"]
        go.set()
        await asyncio.gather(*runs)
        assert order[4:] == ["stranger"]

    play(scene, Limits(threads=4))
