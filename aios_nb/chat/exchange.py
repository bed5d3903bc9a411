"""The exchange: log the request, run it, stream, log the reply. At most once, whatever dies.

A request is committed before its agent runs and before anyone hears that it was taken. The end of
a run is committed before anyone hears of it. A run that was cut by a crash is known at the next
start by its missing end (``recovery.py``).

One task per run and no other; everything around it happens in the store's commit callbacks.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from aios_nb.access import Principal
from aios_nb.chat.backstage import Backstage
from aios_nb.chat.callers import Callers
from aios_nb.chat.calls import Call, CallNote, PlannedRun, Request, check_size
from aios_nb.chat.conversation import Conversation
from aios_nb.chat.deadlines import Deadlines
from aios_nb.chat.endings import (
    Ended,
    failure_drafts,
    interrupted,
    reply_draft,
    status_draft,
    status_of,
    unreachable,
)
from aios_nb.chat.lanes import Lanes
from aios_nb.chat.log import Draft, Log, Place, no_such
from aios_nb.chat.orphans import Orphans
from aios_nb.chat.reading import Reader
from aios_nb.chat.repeats import Repeats
from aios_nb.chat.runs import Run
from aios_nb.chat.strangers import Pool, Ticket, weight
from aios_nb.config import Limits
from aios_nb.envelope import Event, Kind, Outcome, Status, Task, new_id
from aios_nb.errors import AgentFailed, Busy, DeadlinePassed, NoSuchAgent, RpcError
from aios_nb.ports import Finder, Target
from aios_nb.richtext import one_line
from aios_nb.store import Tx

if TYPE_CHECKING:
    from aios_nb.chat.couriers import Couriers

log = logging.getLogger("aios_nb.chat")
_encode = msgspec.json.Encoder().encode

NOTE_BYTES = 200
"""What is kept beside a request to go on after a restart, roughly."""
QUESTION_CHARS = 200
"""As much of an open question is said to who may not wait behind it."""
END_TRIES = 6
END_PAUSE_S = 0.2
"""A full disk is tried again, twice as long each time: the work is done, only its end is not
written yet."""


class Exchange:
    """Takes requests, runs agents, and keeps the promises above."""

    def __init__(
        self,
        node_id: str,
        the_log: Log,
        reader: Reader,
        callers: Callers,
        finder: Finder,
        strangers: Pool,
        limits: Limits,
    ) -> None:
        self.node_id = node_id
        self._callers = callers
        self._log = the_log
        self._reader = reader
        self._finder = finder
        self._strangers = strangers
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._calls: dict[tuple[int, str], Call] = {}
        self.repeats = Repeats(the_log, reader, callers, self._calls)
        self._open_runs = 0
        self._lost_from: int | None = None
        """The first call whose end could not be stored."""
        self._lanes = Lanes(limits.queue_per_agent_conversation)
        self.deadlines = Deadlines(self._late)
        self.backstage = Backstage(self, the_log, reader, finder)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._retries: dict[Callable[[], None], asyncio.TimerHandle] = {}
        self.files: Couriers | None = None
        """Brings files that are still at the caller's node."""
        self.orphans = Orphans(self._calls)
        self._agents_changed = asyncio.Event()
        self._all_over: asyncio.Future[None] | None = None
        self._closing = False

    # Taking a request --------------------------------------------------------------------

    async def take(self, request: Request) -> Call | list[Ended]:
        """Start a request, or find what became of the same one earlier.

        It may not be committed yet: ``await call.committed()``, or wait for its runs.
        """
        number = self._callers.known(request.principal.id)
        if number is None:
            number = await self._first_call_of(request.principal, request.conversation)
        return self._take(request, number)

    def take_now(self, request: Request) -> Call | list[Ended] | None:
        """The same at once; ``None`` for a caller that was never here."""
        number = self._callers.known(request.principal.id)
        return None if number is None else self._take(request, number)

    def _take(self, request: Request, number: int) -> Call | list[Ended]:
        principal = request.principal
        conversation = request.conversation
        if conversation is not None and conversation.gone:
            raise no_such(conversation.id)
        check_size(request.text, request.data, request.files)
        message_id = request.message_id or new_id("m")
        key = (number, message_id)
        under_way = self._calls.get(key)
        if under_way is not None:
            under_way.check_same(request)
            self.orphans.found(under_way)
            return under_way
        if conversation is not None and message_id in conversation.ids:
            return self.repeats.ended(key, request)
        if self._closing:
            raise Busy("the node is stopping")
        full = self._open_runs + len(request.targets) > self._limits.runs
        stranger = principal.is_stranger
        if (full or stranger) and self._log.has_call(*key):
            return self.repeats.ended(key, request)  # a repeat takes no room
        if full:
            raise Busy("this node is at work on as much as it can take", message_id=message_id)
        if conversation is not None and conversation.holds:
            self._check_lanes(request, conversation, message_id)
        tickets = self._admit(request) if stranger else ()
        if conversation is None:
            conversation = self._log.new(
                principal.id, [target.id for target in request.targets], parent=request.parent
            )
        call = self._plan(request, key, conversation, tickets)
        self._enlist(call)
        stored = functools.partial(self._stored, call)
        self._log.submit(conversation, (self._draft(request, call),), stored)
        return call

    def _stored(self, call: Call, place: Place | None, error: Exception | None) -> None:
        if place is None:
            self._refuse(call, error or Busy("not stored"))
        else:
            self._begin(call, place)

    def _check_lanes(self, request: Request, conversation: Conversation, message_id: str) -> None:
        for target in request.targets:
            if self._lanes.full((conversation.id, target.id)):
                raise Busy(
                    "this agent has enough to do in this conversation",
                    hint="wait for an answer, or open another conversation",
                    conversation=conversation.id,
                    message_id=message_id,
                )
            if not (request.patient or request.principal.is_node):
                self._check_question(conversation, target, message_id)

    def _check_question(self, conversation: Conversation, target: Target, message_id: str) -> None:
        """Who waits for the answer must not wait behind a question that only they can answer."""
        asking = self.backstage.asking(conversation.id, target.id)
        if asking is not None:
            raise Busy(
                f"{target.id.partition('@')[0]} waits for an answer to its question:"
                f" {one_line(asking.question or '', QUESTION_CHARS)}",
                hint='answer it with reply.answer("…"), or open another conversation',
                conversation=conversation.id,
                message_id=message_id,
                asks=asking.task.message_id,
            )

    def _admit(self, request: Request) -> Sequence[Ticket]:
        """What a stranger needs for each run out of the pool they share."""
        size = weight(request.text, request.data, NOTE_BYTES + _size(request.context))
        tickets: list[Ticket] = []
        try:
            for _ in request.targets:
                tickets.append(self._strangers.admit(request.principal.id, size))  # noqa: PERF401
        except Busy:
            for ticket in tickets:
                ticket.refuse()
            raise
        return tickets

    async def _first_call_of(self, principal: Principal, conversation: Conversation | None) -> int:
        if principal.is_stranger:
            self._strangers.check(principal.id)  # before it gets a row of its own
        if conversation is None:
            return await self._callers.number(principal.id)
        conversation.holds += 1  # it must not be forgotten and read again meanwhile
        try:
            return await self._callers.number(principal.id)
        finally:
            conversation.holds -= 1

    def _draft(self, request: Request, call: Call) -> Draft:
        """The request as it goes into the log."""
        principal = request.principal
        note = CallNote(
            call.plans,
            int((time.time() + request.deadline_s) * 1000),
            principal.kind,
            principal.id,
            request.path,
            request.max_hops,
            request.context,
        )
        return Draft(
            call.message_id,
            Kind.MESSAGE,
            request.sender,
            request.text,
            request.data,
            request.files,
            "",
            _first_status(call.plans),
            call.key[0],
            note.to_text(),
            # Another node names its files by their hash, and must show that it has them.
            not principal.is_node,
        )

    def _plan(
        self,
        request: Request,
        key: tuple[int, str],
        conversation: Conversation,
        tickets: Sequence[Ticket],
    ) -> Call:
        """The call with its runs, each in its lane."""
        call = Call(key, conversation)
        now = self._loop.time()
        principal, deadline_s = request.principal, request.deadline_s
        path = request.path or (self.node_id,)
        plans: list[PlannedRun] = []
        for target in request.targets:
            agent, reply_id, timeout_s = target.id, new_id("r"), target.timeout_s
            task = Task(
                agent,
                request.text,
                call.message_id,
                reply_id,
                conversation.theirs or conversation.id,
                request.sender,
                principal.id,
                request.data,
                request.files,
                path,
                request.max_hops,
            )
            own_limit = timeout_s < deadline_s
            deadline = now + (timeout_s if own_limit else deadline_s)
            run = Run(task, target, conversation, principal, deadline, self.backstage)
            run.own_limit = own_limit
            run.patient = request.patient
            run.context = request.context
            if tickets:
                run.ticket = tickets[len(plans)]
            run.turn = self._lanes.enter((conversation.id, agent))
            queued = run.turn is not None
            plans.append(PlannedRun(agent, reply_id, queued, target.idempotent, target.is_remote))
            call.runs.append(run)
        call.plans = tuple(plans)
        return call

    def _enlist(self, call: Call) -> None:
        """Let repeats find it."""
        runs = len(call.runs)
        call.conversation.holds += runs
        self._open_runs += runs
        self._calls[call.key] = call

    def _begin(self, call: Call, place: Place) -> None:
        """The request is committed."""
        call.seq, call.cursor = place
        for run in call.runs:
            run.message_seq = call.seq
            self.deadlines.add(run)
            # Here the context is that of whoever committed, for many at once.
            work = self._loop.create_task(self._work(call, run), context=call.variables.copy())
            self._tasks.add(work)
            work.add_done_callback(self._tasks.discard)
        if not call.runs:
            self._drop(call)
        call.wake()

    def _drop(self, call: Call) -> None:
        """Nothing of it is under way any more."""
        self._calls.pop(call.key, None)
        if self._all_over is not None and not self._calls and not self._all_over.done():
            self._all_over.set_result(None)

    def _refuse(self, call: Call, error: Exception) -> None:
        """The request was not committed: nobody heard of it, nothing runs."""
        self._drop(call)
        self._open_runs -= len(call.runs)
        call.conversation.holds -= len(call.runs)
        self._log.forget_unstored(call.conversation)
        call.refusal = error
        for run in call.runs:
            if run.ticket is not None:
                run.ticket.refuse()
            self._lanes.leave((call.conversation.id, run.task.agent), run.turn)
            run.error = error if isinstance(error, RpcError) else Busy("not stored")
            run.wake()
        call.wake()

    def resume(self, call: Call, event: Event) -> None:
        """After a restart: go on with what had not ended."""
        for run in call.runs:
            if run.principal.is_stranger:
                run.ticket = self._strangers.readmit(run.principal.id)
            run.turn = self._lanes.enter((call.conversation.id, run.task.agent))
        self._enlist(call)
        self._begin(call, (event.seq, event.cursor))

    # Running -----------------------------------------------------------------------------

    async def _work(self, call: Call, run: Run) -> None:
        # From here on it can be cancelled; a task cancelled before its first step would do nothing.
        run.worker = worker = cast("asyncio.Task[None]", asyncio.current_task(self._loop))
        outcome: Outcome | None = None
        error: RpcError | None = None
        began = 0.0
        try:
            if run.stop_reason is not None or run.parked:
                # Told to stop before it was committed.
                raise run.stop_reason or asyncio.CancelledError  # noqa: TRY301
            target = run.target
            if run.turn is not None or target is None:
                target = await self._in_turn(run)
            if not target.is_remote:
                run.status = Status.RUNNING
            began = time.monotonic()
            if run.task.files and self.files is not None and run.conversation.parent is None:
                await self.files.bring(run.task, run.principal)
            outcome = await target.carrier.carry(run.task, run)
        except asyncio.CancelledError:
            error = run.stop_reason or interrupted()
        except RpcError as raised:
            error = raised
        except (KeyboardInterrupt, SystemExit):
            raise  # not an agent's, see its host: the program ends
        except BaseException:
            if asyncio.current_task(self._loop) is not worker:
                raise  # closed from outside: the loop is gone, and nothing can be told any more
            log.exception("running %s for %s", run.task.agent, run.task.message_id)
            error = AgentFailed("the agent could not be run")
        run.worker = None
        self._worked(call, run, outcome, error, time.monotonic() - began if began else 0.0)

    def _worked(
        self,
        call: Call,
        run: Run,
        outcome: Outcome | None,
        error: RpcError | None,
        seconds: float,
    ) -> None:
        """Its agent is done with it, one way or the other."""
        self._callers.count(run.principal.id, seconds)
        if run.ticket is not None:
            run.ticket.done(seconds)
        if run.stop_reason is not None:
            # Told to stop: what it says now is too late.
            self._end(call, run, None, run.stop_reason)
        elif run.parked and outcome is None:
            self._park(call, run)
        else:
            self._end(call, run, outcome, error)

    async def _in_turn(self, run: Run) -> Target:
        """Wait for its turn, and after a restart for its agent; then let the log say it runs."""
        if run.turn is not None:
            await run.turn
        target = run.target
        if target is None:
            run.target = target = await self._hosted_again(run)
            self.backstage.shorten(run, target.timeout_s)
        if not run.seconds_left:
            raise self._too_late(run)
        if not target.is_remote:
            # What waited has begun only when the log says so.
            await self._log.append(run.conversation, status_draft(run, Status.RUNNING))
        return target

    def _park(self, call: Call, run: Run) -> None:
        """Leave it without an end: its host knows it, and the next start goes on with it."""
        self._lost_from = min(self._lost_from or call.cursor, call.cursor)
        self._over(call, run, None, interrupted("the node was stopped; the next start goes on"))

    async def _hosted_again(self, run: Run) -> Target:
        """After a restart: the agent, once it is there."""
        while True:
            try:
                return self._finder.resolve(run.task.agent, run.principal)
            except NoSuchAgent:
                self._agents_changed.clear()
                await self._agents_changed.wait()

    def agents_changed(self) -> None:
        """Let runs that wait for their agent look again."""
        self._agents_changed.set()

    def _end(
        self,
        call: Call,
        run: Run,
        outcome: Outcome | None,
        error: RpcError | None,
        tries: int = 1,
    ) -> None:
        """Commit how a run ended, then tell everyone."""
        drafts: Sequence[Draft]
        if outcome is not None:
            if not outcome.text and run.length:
                outcome = Outcome(run.text, outcome.data, outcome.files)
            drafts = (reply_draft(run, outcome),)
        else:
            error = error or interrupted()
            drafts = failure_drafts(run, error)
        if run.ticket is not None and tries == 1:
            self._strangers.stored(sum(weight(draft.text, draft.data) for draft in drafts))

        ended = functools.partial(self._ended, call, run, outcome, error, tries)
        self._log.submit(run.conversation, drafts, ended)

    def _ended(
        self,
        call: Call,
        run: Run,
        outcome: Outcome | None,
        error: RpcError | None,
        tries: int,
        place: Place | None,
        refused: Exception | None,
    ) -> None:
        if place is not None:
            self._over(call, run, outcome, error)
        elif isinstance(refused, Busy) and tries < END_TRIES and not self._closing:
            again = functools.partial(self._end, call, run, outcome, error, tries + 1)
            self._later(END_PAUSE_S * 2**tries, again)
        else:
            # The next start finds the run without an end, and says so.
            self._lost_from = min(self._lost_from or call.cursor, call.cursor)
            log.error("the end of %s could not be stored: %s", run.task.message_id, refused)
            self._over(call, run, None, interrupted("the end of this could not be stored"))

    def _later(self, pause_s: float, again: Callable[[], None]) -> None:
        """Try again after a pause; at once when the node stops."""

        def now() -> None:
            self._retries.pop(again, None)
            again()

        self._retries[again] = self._loop.call_later(pause_s, now)

    def _over(self, call: Call, run: Run, outcome: Outcome | None, error: RpcError | None) -> None:
        run.question = None
        if outcome is not None:
            run.flush_rest(outcome.text)
            run.outcome, run.status = outcome, Status.DONE
        else:
            error = error or interrupted()
            run.error, run.status = error, status_of(error)
        self.deadlines.remove(run)
        self._lanes.leave((run.conversation.id, run.task.agent), run.turn)
        run.conversation.holds -= 1
        self._open_runs -= 1
        self.repeats.remember(run.task.reply_id, call.key)
        if len(call.runs) == 1 or call.is_over:
            self._drop(call)
        run.wake()

    def _late(self, run: Run) -> None:
        run.stop(self._too_late(run))

    @staticmethod
    def _too_late(run: Run) -> RpcError:
        ran = "unknown" if run.started else "no"
        waits = run.turn is not None and not run.turn.done()
        if run.target is not None and run.target.is_remote and not run.started and not waits:
            return unreachable(run.task.agent, "no answer")
        if run.why_late is not None and (told := run.why_late()) is not None:
            why, hint = told
            return DeadlinePassed(f"the deadline passed: {why}", hint=hint, ran=ran)
        if run.own_limit and run.target is not None:
            limit = f"{run.target.timeout_s:g}"
            return DeadlinePassed(
                f"the agent's own limit of {limit} s passed",
                hint="its author sets it with timeout_s",
                ran=ran,
            )
        return DeadlinePassed("the deadline passed", hint=DeadlinePassed.what_to_do, ran=ran)

    # State and upkeep ----------------------------------------------------------------------

    def runs_in(self, conversation: Conversation) -> list[Run]:
        """What is under way in a conversation."""
        return [
            run
            for call in self._calls.values()
            if call.conversation is conversation
            for run in call.runs
            if not run.is_over
        ]

    def live_statuses(self, conversation_id: str) -> dict[str, dict[str, Status]]:
        """Of what is under way: message id → agent → status."""
        found: dict[str, dict[str, Status]] = {}
        for call in self._calls.values():
            if call.conversation.id == conversation_id:
                for run in call.runs:
                    found.setdefault(call.message_id, {})[run.task.agent] = run.status
        return found

    async def save_progress(self) -> None:
        """Write down how far everything is settled: a restart looks only beyond."""
        upto = self._log.cursor
        for call in self._calls.values():
            if call.cursor:
                upto = min(upto, call.cursor - 1)
        if self._lost_from is not None:
            upto = min(upto, self._lost_from - 1)

        def apply(tx: Tx) -> None:
            tx.execute("INSERT OR REPLACE INTO meta VALUES ('settled_upto', ?)", (upto,))

        await self._log.store.write(apply)

    async def close(self) -> None:
        """Interrupt what runs, log it, and leave no task behind."""
        self._closing = True
        for call in list(self._calls.values()):
            remote = {plan.reply_id for plan in call.plans if plan.remote}
            for run in call.runs:
                if run.task.reply_id in remote:
                    run.parked = True
                    if run.worker is not None:
                        run.worker.cancel()
                else:
                    run.stop(interrupted("the node was stopped"))
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        for again, timer in list(self._retries.items()):
            timer.cancel()
            again()
        if self._calls:
            self._all_over = self._loop.create_future()
            await self._all_over
        self.deadlines.close()
        self.orphans.close()


def _size(context: Sequence[Event] | None) -> int:
    return len(_encode(context)) if context else 0


def _first_status(plans: Sequence[PlannedRun]) -> Status:
    if not plans:
        return Status.DONE  # said to nobody: nothing more will happen
    for plan in plans:
        if plan.queued or plan.remote:
            return Status.ACCEPTED
    return Status.RUNNING
