"""Engine ``inline``: async agents on the node's loop.

Nothing is wrapped around a run: no task, no queue, no timer. The run is driven step by step only to
see what Python does not tell: an agent that holds the loop, or one that will not be cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import types
from collections.abc import AsyncGenerator, Coroutine, Generator
from time import perf_counter
from typing import Any, TypeVar

from aios_nb.agents.context import AsyncContext
from aios_nb.agents.engines import EngineKind, Job, register
from aios_nb.agents.outputs import Answer
from aios_nb.config import Limits

T = TypeVar("T")
log = logging.getLogger("aios_nb.agents")

HOLD_WARN_S = 1.0
"""A step longer than this kept the whole node from answering."""
CANCEL_GRACE_S = 5.0
"""How long a cancelled agent may tidy up before it is asked again."""
CANCEL_TRIES = 3
BREATH_S = 0.01
"""A generator that never waits lets others go on this often."""
CONCURRENCY = 1000
"""Runs at once. One that waits costs a few kB and no thread."""


class InlineEngine:
    """Runs jobs where it is called."""

    def __init__(self, limits: Limits) -> None:
        del limits  # bounded by each agent's slots alone

    def perform(self, job: Job) -> Coroutine[Any, Any, Answer]:
        return in_steps(_answer(job), job)

    async def close(self) -> None:
        """Nothing to stop: each run belongs to the task that awaits it."""


async def _answer(job: Job) -> Answer:
    definition, text = job.definition, job.task.text
    try:
        value = (
            definition.run(text, AsyncContext(job))
            if definition.takes_ctx
            else definition.run(text)
        )
    except StopIteration as error:
        raise Stray from error
    if type(value) is types.CoroutineType:
        value = await value
    answer = Answer()
    if type(value) is str:
        answer.add(value)
    else:
        await finish(value, answer, job)
    return answer


async def finish(value: Any, answer: Answer, job: Job) -> None:
    """Await or iterate what the agent's code returned, and take what comes."""
    if isinstance(value, types.CoroutineType) or inspect.isawaitable(value):
        value = await value
    if isinstance(value, types.AsyncGeneratorType):
        await _drain_async(value, answer, job)
    elif isinstance(value, types.GeneratorType):
        await _drain(value, answer, job)
    else:
        answer.add(value)


async def _drain_async(pieces: AsyncGenerator[Any, None], answer: Answer, job: Job) -> None:
    breath = perf_counter() + BREATH_S
    async with contextlib.aclosing(pieces):
        async for piece in pieces:
            if text := answer.add_piece(piece):
                job.run.delta(text)
            if perf_counter() > breath:
                await asyncio.sleep(0)
                breath = perf_counter() + BREATH_S


async def _drain(pieces: Generator[Any, None, Any], answer: Answer, job: Job) -> None:
    breath = perf_counter() + BREATH_S
    with contextlib.closing(pieces):
        while True:
            try:
                piece = next(pieces)
            except StopIteration as end:
                if text := answer.add(end.value):
                    job.run.delta(text)
                return
            if text := answer.add_piece(piece):
                job.run.delta(text)
            if perf_counter() > breath:
                await asyncio.sleep(0)
                breath = perf_counter() + BREATH_S


class Stray(Exception):
    """The agent let an error escape that would tell its awaiter something else. It is the cause.

    A cancel that nobody asked for, a generator's end that is not this one's: passed on as they are,
    they would end the run without an end, and whoever waits for it would wait for ever.
    """


STRAYS = (asyncio.CancelledError, GeneratorExit, StopIteration)


@types.coroutine
def in_steps(  # noqa: C901 - one loop, as PEP 380 spells "yield from"
    work: Coroutine[Any, Any, T], job: Job
) -> Generator[Any, Any, T]:
    """Like ``await work``, but says so when a step holds the loop, and insists on a cancel."""
    mine = asyncio.current_task()
    thrown: BaseException | None = None
    was_asked = False
    stubborn: _Stubborn | None = None
    try:
        while True:
            began = perf_counter()
            try:
                waited_for = work.send(None) if thrown is None else work.throw(thrown)
            except StopIteration as end:
                if was_asked and _is_cancelled():
                    raise asyncio.CancelledError from None  # it swallowed the cancel
                result: T = end.value
                return result
            except (asyncio.CancelledError, GeneratorExit) as error:
                if _is_meant(error, mine):
                    raise
                raise Stray from error
            finally:
                if perf_counter() - began > HOLD_WARN_S:
                    log.warning(
                        "agent %s held the node's loop for %.1f s; "
                        'use engine="thread" (def instead of async def) or await something',
                        job.task.agent,
                        perf_counter() - began,
                    )
            # Only the node's word counts here: an asyncio.timeout or a TaskGroup inside the agent
            # cancels this task too, for a while, and that is the agent's own affair.
            if isinstance(thrown, asyncio.CancelledError) and job.run.cancelled:
                stubborn = stubborn or _Stubborn(job.task.agent)
                if stubborn.gives_up():
                    # GeneratorExit ends it; RuntimeError says that it ignored even that.
                    with contextlib.suppress(RuntimeError):
                        work.close()
                    raise asyncio.CancelledError
            try:
                yield waited_for
                thrown = None
            except BaseException as error:  # noqa: BLE001 - passed on to the agent, as await does
                thrown = error
                was_asked = was_asked or isinstance(error, asyncio.CancelledError)
    finally:
        if stubborn is not None:
            stubborn.end()


class _Stubborn:
    """Cancels again, after a grace, a run that goes on after its cancel."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._tries = 0
        self._own = 0
        self._task = asyncio.current_task()
        self._timer: asyncio.TimerHandle | None = None

    def gives_up(self) -> bool:
        """Called when the run waits again after a cancel; True when it has had its chances."""
        self._tries += 1
        if self._timer is not None:
            self._timer.cancel()
        if self._tries >= CANCEL_TRIES:
            log.warning("agent %s ignores its cancel and was cut off", self._who)
            return True
        self._timer = asyncio.get_running_loop().call_later(CANCEL_GRACE_S, self._again)
        return False

    def end(self) -> None:
        """Leave the task's count of cancels as others made it."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            for _ in range(self._own):
                self._task.uncancel()

    def _again(self) -> None:
        if self._task is not None:
            self._own += 1
            self._task.cancel()


def _is_meant(error: BaseException, mine: asyncio.Task[Any] | None) -> bool:
    """Whether the run is to end with it: it was cancelled, or closed from outside its task."""
    if isinstance(error, asyncio.CancelledError):
        return _is_cancelled()
    try:
        return asyncio.current_task() is not mine
    except RuntimeError:  # no loop turns: the collector is at work, or the program ends
        return True


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


register(EngineKind(name="inline", make=InlineEngine, concurrency=CONCURRENCY))
