"""What a running agent may ask of its node: the log, other agents, the person who asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aios_nb.access import owner_of
from aios_nb.chat.calls import Call, Request, check_route, check_size
from aios_nb.chat.endings import outcome_of, status_draft
from aios_nb.chat.log import Draft, Log, Place
from aios_nb.chat.reading import Reader
from aios_nb.chat.runs import Run
from aios_nb.envelope import AgentRow, Event, FileRef, Kind, Outcome, Sender, Status, new_id
from aios_nb.errors import Cancelled, InvalidParams, NoSuchAgent
from aios_nb.ports import Finder, Target

if TYPE_CHECKING:
    from aios_nb.chat.exchange import Exchange

ASK_USER_S = 3600.0
"""A person has this long to answer an agent's question; the deadline waits meanwhile."""


class Backstage:
    """Serves all runs of a node."""

    def __init__(self, exchange: Exchange, log: Log, reader: Reader, finder: Finder) -> None:
        self.loop = asyncio.get_running_loop()
        self._exchange = exchange
        self._log = log
        self._reader = reader
        self._finder = finder
        self._asking: set[Run] = set()

    def asking(self, conversation: str, agent: str) -> Run | None:
        """The run of this agent that waits there for somebody's answer."""
        for run in self._asking:
            if (run.conversation.id, run.task.agent) == (conversation, agent):
                return run
        return None

    def context_of(self, run: Run) -> Sequence[Event]:
        return self._reader.context(run.conversation, run.task.agent, run.message_seq)

    async def search_from(self, run: Run, words: str, limit: int) -> Sequence[AgentRow]:
        return await self._finder.search(words, limit, run.principal)

    async def call_from(
        self, run: Run, agent: str, text: str, data: Any, files: Sequence[FileRef]
    ) -> Outcome:
        """Ask another agent in a child conversation, with the hops and the time that are left."""
        target, trusted = await self._target_for(run, agent)
        path = (*run.task.path, run.task.agent)
        if trusted and target.is_remote:
            # In its owner's name: the nodes before us take no part in it, nor lower its rights.
            path = (self._exchange.node_id, run.task.agent)
        check_route(path, target.id, run.task.max_hops)
        call = await self._exchange.take(
            Request(
                run.principal,
                run.sender,
                (target,),
                text,
                data,
                tuple(files),
                deadline_s=max(0.001, run.seconds_left),
                path=path,
                max_hops=run.task.max_hops,
                parent=run.conversation.id,
            )
        )
        if not isinstance(call, Call):
            raise TypeError("a fresh id was used before")
        child = call.runs[0]
        try:
            await child.settled()
            while not child.is_over:
                asked = child.question_id
                await self._pass_up(run, child)
                await child.settled(asked)
        except BaseException:
            child.stop(Cancelled("its caller was stopped"))
            raise
        return outcome_of(child)

    async def _pass_up(self, run: Run, child: Run) -> None:
        """Its question is for whoever asked us, for as long as it waits for the answer."""
        asked = child.question_id

        def waits() -> bool:
            return not child.is_over and child.question is not None and child.question_id == asked

        async def given_up() -> None:
            while waits():
                await child.changed()

        asking = self.loop.create_task(self.ask_from(run, child.question or ""))
        watching = self.loop.create_task(given_up())
        try:
            await asyncio.wait({asking, watching}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done() and waits():
                await self.answer(child, asking.result(), run.sender)
        finally:
            asking.cancel()
            watching.cancel()
            await asyncio.gather(asking, watching, return_exceptions=True)

    async def _target_for(self, run: Run, agent: str) -> tuple[Target, bool]:
        """With the rights of whoever asked first, unless the agent says it may call this one."""
        mine = (run.target.may_call if run.target is not None else None) or ()
        trusted = agent in mine or agent.partition("@")[0] in mine
        principal = owner_of(self._exchange.node_id) if trusted else run.principal
        try:
            return self._finder.resolve(agent, principal), trusted
        except NoSuchAgent:
            # As whoever asked: a stranger's run must not settle what a name means here.
            return await self._finder.seek(agent, run.principal), trusted

    async def ask_from(self, run: Run, question: str, question_id: str | None = None) -> str:
        """Ask whoever opened this, and wait. The deadline waits too.

        With an id, a question that was asked before a restart is not asked again.
        """
        check_size(question)
        if run.asking is None:
            run.asking = asyncio.Lock()
        async with run.asking:  # one question after another
            asked = answered = None
            if question_id is not None:
                asked, answered = self._reader.question(run.conversation, run.task, question_id)
            if answered is not None:
                return answered
            return await self._ask(run, question, question_id or new_id("q"), known=bool(asked))

    async def _ask(self, run: Run, question: str, question_id: str, *, known: bool) -> str:
        if not known:
            draft = status_draft(run, Status.INPUT_REQUIRED, question, question=question_id)
            await self._log.append(run.conversation, draft)
        left = run.seconds_left
        self._reschedule(run, ASK_USER_S)
        answer: asyncio.Future[str] = self.loop.create_future()
        run.answer = answer
        run.question = question
        run.question_id = question_id
        run.status = Status.INPUT_REQUIRED
        run.wake()
        self._asking.add(run)
        try:
            return await answer
        finally:
            self._asking.discard(run)
            run.question = run.answer = None
            if run.status is Status.INPUT_REQUIRED:
                run.status = Status.RUNNING  # it does not wait for the answer any more
            self._reschedule(run, left)
            run.wake()

    def shorten(self, run: Run, seconds: float) -> None:
        """Let it end at the latest in so many seconds."""
        if run.seconds_left > seconds:
            self._reschedule(run, seconds)

    def _reschedule(self, run: Run, seconds: float) -> None:
        deadlines = self._exchange.deadlines
        deadlines.remove(run)
        run.deadline = self.loop.time() + seconds
        deadlines.add(run)

    async def answer(
        self, run: Run, text: str, sender: Sender, event_id: str | None = None
    ) -> None:
        """Give a waiting run the answer to its question."""
        check_size(text)
        if event_id in run.conversation.ids:
            raise InvalidParams(f"the id {event_id} was used before in this conversation")
        answer = run.answer
        question_id = run.question_id
        if answer is None or answer.done():
            raise InvalidParams(f"message {run.task.message_id} waits for no answer")
        run.answer = None  # taken: a second answer is refused from here on
        told: asyncio.Future[None] = self.loop.create_future()

        def done(place: Place | None, error: Exception | None) -> None:
            # In the moment of the commit, whether or not who answered still waits for it.
            if place is None:
                run.answer = answer
            else:
                run.status = Status.RUNNING
                run.question = None
                run.answered.append(question_id)
                if not answer.done():
                    answer.set_result(text)
            if told.done():
                return
            if error is None:
                told.set_result(None)
            else:
                told.set_exception(error)

        said = Draft(event_id or new_id("m"), Kind.MESSAGE, sender, text, ref=run.task.message_id)
        goes_on = status_draft(run, Status.RUNNING, question=question_id, answer=said.message_id)
        self._log.submit(run.conversation, (said, goes_on), done)
        await told
