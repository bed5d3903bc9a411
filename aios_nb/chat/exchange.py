"""The exchange: log the request, run it, stream, log the reply. At most once, whatever dies.

A request is committed before its agent runs and before anyone hears that it was taken. The end of
a run is committed before anyone hears of it. A run that was cut by a crash is found at the next
start by its missing end, and becomes ``interrupted``; only runs that had not begun, and agents
declared ``idempotent``, go on.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Sequence
from typing import Any

import msgspec

from aios_nb.access import Caller, Principal
from aios_nb.chat.log import Conversation, Draft, DuplicateCall, Log
from aios_nb.chat.reading import Reader
from aios_nb.chat.runs import Deadlines, Lanes, Run
from aios_nb.config import Limits
from aios_nb.envelope import (
    DATA_LIMIT_BYTES,
    DEADLINE_DEFAULT_S,
    FILES_PER_MESSAGE,
    TEXT_LIMIT_BYTES,
    AgentRow,
    Event,
    FileRef,
    Kind,
    Outcome,
    Sender,
    Status,
    Task,
    new_id,
)
from aios_nb.errors import (
    AgentFailed,
    Busy,
    Cancelled,
    DeadlinePassed,
    InvalidParams,
    NoSuchAgent,
    RpcError,
    TooLarge,
    from_wire,
)
from aios_nb.ports import Finder, Target
from aios_nb.store import Tx

log = logging.getLogger("aios_nb.chat")

MAX_HOPS = 8
"""Agents that may stand one behind another when a person asks."""
ASK_USER_S = 3600.0
"""A person has this long to answer an agent's question; the deadline waits meanwhile."""
COMMIT_TRIES = 5

_encode = msgspec.json.Encoder().encode


class PlannedRun(msgspec.Struct, frozen=True):
    agent: str
    reply_id: str
    queued: bool = False
    """It had to wait its turn: it has begun only if a ``running`` row says so."""
    idempotent: bool = False


class CallNote(msgspec.Struct, frozen=True):
    """What is stored beside a request, to know a repeat and to go on after a restart."""

    body: str
    runs: tuple[PlannedRun, ...]
    deadline_ms: int
    kind: Caller
    caller: str
    path: tuple[str, ...] = ()
    max_hops: int = MAX_HOPS


_decode_note = msgspec.json.Decoder(CallNote).decode


class Call:
    """A request that is under way: its runs, and who asked."""

    __slots__ = ("accepted", "body", "conversation", "cursor", "key", "message_id", "runs", "seq")

    def __init__(
        self,
        key: tuple[int, str],
        body: str,
        conversation: Conversation,
        accepted: Awaitable[Any] | None,
    ) -> None:
        self.key = key
        self.message_id = key[1]
        self.body = body
        self.conversation = conversation
        self.accepted = accepted
        """Done when the request is committed."""
        self.runs: list[Run] = []
        self.seq = self.cursor = 0


class Ended(msgspec.Struct, frozen=True):
    """A run that ended earlier, as the log tells it."""

    conversation: str
    message_id: str
    reply_id: str
    agent: str
    outcome: Outcome | None
    error: RpcError | None


class Request(msgspec.Struct, frozen=True):
    """A request before it is taken."""

    principal: Principal
    sender: Sender
    targets: Sequence[Target]
    text: str
    data: Any = None
    files: tuple[FileRef, ...] = ()
    conversation: Conversation | None = None
    message_id: str | None = None
    deadline_s: float = DEADLINE_DEFAULT_S
    path: tuple[str, ...] = ()
    max_hops: int = MAX_HOPS
    parent: str | None = None


class Exchange:
    """Takes requests, runs agents, and keeps the promises above."""

    def __init__(
        self, node_id: str, the_log: Log, reader: Reader, finder: Finder, limits: Limits
    ) -> None:
        self._node_id = node_id
        self._log = the_log
        self._reader = reader
        self._finder = finder
        self._limits = limits
        self._calls: dict[tuple[int, str], Call] = {}
        self._open_runs = 0
        self._lanes = Lanes(limits.queue_per_agent_conversation)
        self._deadlines = Deadlines(self._late)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._agents_changed: asyncio.Event = asyncio.Event()
        self._closing = False
        self.seconds: dict[str, tuple[int, float, int]] = {}
        """caller → calls, seconds, last (unix ms), since the counters were last written down."""

    # Taking a request --------------------------------------------------------------------

    async def take(self, request: Request) -> Call | list[Ended]:
        """Commit a request and start it, or find what became of the same one earlier."""
        check_size(request.text, request.data, request.files)
        principal = request.principal
        number = await self._log.caller_number(principal.id)
        message_id = request.message_id or new_id("m")
        key = (number, message_id)
        body = _body(request)
        under_way = self._calls.get(key)
        if under_way is not None:
            return await self._join(under_way, request, body)
        if self._closing:
            raise Busy("the node is stopping")
        conversation = request.conversation
        if conversation is not None and message_id in conversation.ids:
            return self._find_ended(number, message_id, body, conversation)
        if self._open_runs + len(request.targets) > self._limits.runs:
            raise Busy("this node is at work on as much as it can take")
        if conversation is None:
            conversation = self._log.new(
                principal.id, [target.id for target in request.targets], parent=request.parent
            )
        lanes = [(conversation.id, target.id) for target in request.targets]
        if any(self._lanes.full(lane) for lane in lanes):
            raise Busy(
                "this agent has enough to do in this conversation",
                hint="wait for an answer, or open another conversation",
            )
        turns = [self._lanes.enter(lane) for lane in lanes]
        call = self._plan(request, key, body, conversation)
        note = self._note(request, call, turns)
        queued = any(turn is not None for turn in turns)
        draft = Draft(
            message_id,
            Kind.MESSAGE,
            request.sender,
            request.text,
            request.data,
            request.files,
            status=Status.ACCEPTED if queued or not turns else Status.RUNNING,
            caller=number,
            call=_encode(note),
        )
        self._calls[key] = call
        self._open_runs += len(call.runs)
        call.accepted = committing = self._log.append(conversation, draft)
        try:
            events = await asyncio.shield(committing)
        except asyncio.CancelledError:
            # The asker is gone, the commit is not: go on as if it had waited.
            committing.add_done_callback(lambda done: self._after_commit(call, turns, done))
            raise
        except DuplicateCall:
            self._drop(call)
            return self._find_ended(number, message_id, body, request.conversation)
        except BaseException:
            self._drop(call)
            raise
        self._begin(call, turns, events)
        return call

    def _plan(
        self, request: Request, key: tuple[int, str], body: str, conversation: Conversation
    ) -> Call:
        call = Call(key, body, conversation, None)
        now = asyncio.get_running_loop().time()
        for target in request.targets:
            task = Task(
                target.id,
                request.text,
                call.message_id,
                new_id("r"),
                conversation.id,
                request.sender,
                request.principal.id,
                request.data,
                request.files,
                request.path or (self._node_id,),
                request.max_hops,
            )
            deadline = now + min(request.deadline_s, target.timeout_s)
            call.runs.append(Run(task, target, conversation, request.principal, deadline, self))
        return call

    def _note(
        self, request: Request, call: Call, turns: Sequence[Awaitable[None] | None]
    ) -> CallNote:
        return CallNote(
            call.body,
            tuple(
                PlannedRun(
                    run.task.agent, run.task.reply_id, turn is not None, target.idempotent
                )
                for run, turn, target in zip(call.runs, turns, request.targets, strict=True)
            ),
            int((time.time() + request.deadline_s) * 1000),
            request.principal.kind,
            request.principal.id,
            request.path,
            request.max_hops,
        )

    def _after_commit(
        self, call: Call, turns: Sequence[Awaitable[None] | None], done: asyncio.Future[list[Event]]
    ) -> None:
        if done.cancelled() or done.exception() is not None:
            self._drop(call)
        else:
            self._begin(call, turns, done.result())

    def _begin(
        self, call: Call, turns: Sequence[Awaitable[None] | None], events: list[Event]
    ) -> None:
        call.seq, call.cursor = events[0].seq, events[0].cursor
        for run, turn in zip(call.runs, turns, strict=True):
            run.message_seq = call.seq
            self._deadlines.add(run)
            run.worker = self._spawn(self._work(call, run, turn))

    def _drop(self, call: Call) -> None:
        """Forget a request that was not committed."""
        for run in call.runs:
            self._lanes.leave((call.conversation.id, run.task.agent))
        self._open_runs -= len(call.runs)
        self._calls.pop(call.key, None)
        if call.conversation.n == 0:
            self._log.forget(call.conversation)

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Repeats -----------------------------------------------------------------------------

    async def _join(self, call: Call, request: Request, body: str) -> Call:
        _check_same(call.body, body, call.message_id)
        if request.conversation is not None and request.conversation is not call.conversation:
            raise InvalidParams(f"message id {call.message_id} is in another conversation")
        if call.accepted is not None:
            await asyncio.shield(asyncio.ensure_future(call.accepted))
        return call

    def _find_ended(
        self, number: int, message_id: str, body: str | None, conversation: Conversation | None
    ) -> list[Ended]:
        rows = self._log.store.read(
            "SELECT e.conversation, e.seq, e.call, c.id FROM events e"
            " LEFT JOIN conversations c ON c.n = e.conversation"
            " WHERE e.caller = ? AND e.message_id = ?",
            (number, message_id),
        )
        if not rows:
            raise InvalidParams(
                f"message id {message_id} is taken in this conversation",
                hint="use a new message_id for a new message",
            )
        n, seq, blob, conversation_id = rows[0]
        note = _decode_note(blob)
        if body is not None:
            _check_same(note.body, body, message_id)
        if conversation_id is None:
            raise InvalidParams(f"message {message_id} was in a conversation that is deleted")
        if conversation is not None and conversation.id != conversation_id:
            raise InvalidParams(f"message id {message_id} is in another conversation")
        return [
            self._ended(conversation_id, message_id, plan, self._reader.outcome(n, seq, plan.reply_id))
            for plan in note.runs
        ]

    def _ended(
        self, conversation_id: str, message_id: str, plan: PlannedRun, rows: list[Event]
    ) -> Ended:
        outcome: Outcome | None = None
        error: RpcError | None = None
        for row in rows:
            if row.kind is Kind.STATUS and row.status is not None and row.status.is_final:
                error = from_wire(row.data["error"])
            elif row.kind is Kind.MESSAGE and row.status is Status.DONE:
                outcome = Outcome(row.text, row.data, row.files)
        if outcome is None and error is None:
            # Its end could not be written (a full disk); the next start will say so in the log.
            error = _interrupted()
        return Ended(conversation_id, message_id, plan.reply_id, plan.agent, outcome, error)

    def find(self, principal: Principal, message_id: str) -> Call | list[Ended]:
        """A caller's earlier call, under way or over."""
        number = self._log.known_caller(principal.id)
        if number is not None:
            call = self._calls.get((number, message_id))
            if call is not None:
                return call
            if self._log.has_call(number, message_id):
                return self._find_ended(number, message_id, None, None)
        raise InvalidParams(f"no such message: {message_id}", hint="ids are per caller")

    # Running -----------------------------------------------------------------------------

    async def _work(self, call: Call, run: Run, turn: Awaitable[None] | None) -> None:
        outcome: Outcome | None = None
        error: RpcError | None = None
        began = 0.0
        try:
            if turn is not None:
                await turn
            target = run.target or await self._hosted_again(run)
            if turn is not None or run.target is None:
                run.target = target
                await self._log.append(
                    run.conversation, _status(run, Status.RUNNING, {"reply_id": run.task.reply_id})
                )
            run.started = True
            run.status = Status.RUNNING
            began = time.monotonic()
            outcome = await target.carrier.carry(run.task, run)
        except asyncio.CancelledError:
            error = run.stop_reason or _interrupted()
            me = asyncio.current_task()
            if me is not None:
                me.uncancel()
        except RpcError as raised:
            error = raised
        except Exception:
            log.exception("running %s for %s", run.task.agent, run.task.message_id)
            error = AgentFailed("the agent could not be run")
        if outcome is not None and run.stop_reason is not None:
            outcome, error = None, run.stop_reason  # it was told to stop; what it says now is late
        self._count(run, time.monotonic() - began if began else 0.0)
        await self._finish(call, run, outcome, error)

    async def _hosted_again(self, run: Run) -> Target:
        """After a restart: the agent, once it is there."""
        while True:
            try:
                return self._finder.resolve(run.task.agent, run.principal)
            except NoSuchAgent:
                self._agents_changed.clear()
                await self._agents_changed.wait()

    def agents_changed(self) -> None:
        """Tell runs that wait for their agent to look again."""
        self._agents_changed.set()

    async def _finish(
        self, call: Call, run: Run, outcome: Outcome | None, error: RpcError | None
    ) -> None:
        drafts: list[Draft] = []
        task = run.task
        if outcome is not None:
            text = outcome.text or run.text
            outcome = Outcome(text, outcome.data, outcome.files)
            drafts.append(
                Draft(
                    task.reply_id,
                    Kind.MESSAGE,
                    run.sender,
                    text,
                    outcome.data,
                    outcome.files,
                    ref=task.message_id,
                    status=Status.DONE,
                )
            )
            status = Status.DONE
        else:
            assert error is not None
            status = _status_of(error)
            if run.length:  # what was said before it broke is part of the conversation
                drafts.append(
                    Draft(
                        task.reply_id,
                        Kind.MESSAGE,
                        run.sender,
                        run.text,
                        ref=task.message_id,
                        status=status,
                    )
                )
            drafts.append(
                _status(
                    run,
                    status,
                    {"reply_id": task.reply_id, "error": error.to_wire()},
                    error.message,
                )
            )
        try:
            await self._commit_end(run, drafts)
        except RpcError as refused:
            outcome, error, status = None, refused, Status.FAILED
        if outcome is not None and outcome.text and len(outcome.text) > run.length:
            run.flush_rest(outcome.text)
        run.outcome, run.error, run.status, run.question = outcome, error, status, None
        self._deadlines.remove(run)
        self._lanes.leave((run.conversation.id, task.agent))
        self._open_runs -= 1
        if all(other.is_over for other in call.runs):
            self._calls.pop(call.key, None)
        run.wake()

    async def _commit_end(self, run: Run, drafts: list[Draft]) -> None:
        """Store the end of a run. A full disk is tried again for a while: the work is done."""
        for attempt in range(COMMIT_TRIES):
            writing = self._log.append(run.conversation, *drafts)
            try:
                while True:
                    try:
                        await asyncio.shield(writing)
                        return
                    except asyncio.CancelledError:
                        if writing.cancelled() or run.stop_reason is None:
                            raise
            except Busy:
                if attempt == COMMIT_TRIES - 1 or self._closing:
                    raise
                await asyncio.sleep(0.2 * 2**attempt)

    def _late(self, run: Run) -> None:
        ran = "unknown" if run.started else "no"
        run.stop(DeadlinePassed("the deadline passed", hint="ask for more time", ran=ran))

    def _count(self, run: Run, seconds: float) -> None:
        calls, total, _ = self.seconds.get(run.principal.id, (0, 0.0, 0))
        self.seconds[run.principal.id] = (calls + 1, total + seconds, int(time.time() * 1000))

    # What a running agent may ask (runs.Backstage) -----------------------------------------

    def context_of(self, run: Run) -> Sequence[Event]:
        return self._reader.context(run.conversation, run.message_seq)

    async def search_from(self, run: Run, words: str, limit: int) -> Sequence[AgentRow]:
        return self._finder.search(words, limit, run.principal)

    async def call_from(
        self, run: Run, agent: str, text: str, data: Any, files: Sequence[FileRef]
    ) -> Outcome:
        """Ask another agent in a child conversation, with the hops and time that are left."""
        target = self._target_for(run, agent)
        path = (*run.task.path, run.task.agent)
        check_route(path, target.id, run.task.max_hops)
        taken = await self.take(
            Request(
                run.principal,
                run.sender,
                [target],
                text,
                data,
                tuple(files),
                deadline_s=max(0.001, run.seconds_left),
                path=path,
                max_hops=run.task.max_hops,
                parent=run.conversation.id,
            )
        )
        assert isinstance(taken, Call)  # its id is new
        child = taken.runs[0]
        try:
            await child.settled()
            while not child.is_over:
                assert child.question is not None
                await self.answer(child, await self.ask_from(run, child.question), run.sender)
                await child.settled()
        except asyncio.CancelledError:
            child.stop(Cancelled("its caller was stopped"))
            raise
        return outcome_of(child)

    def _target_for(self, run: Run, agent: str) -> Target:
        """With the rights of whoever asked first, unless the agent says it may call this one."""
        mine = (run.target.may_call if run.target is not None else None) or ()
        if agent in mine or agent.split("@")[0] in mine:
            owner = Principal(Caller.OWNER, f"owner@{self._node_id}")
            return self._finder.resolve(agent, owner)
        return self._finder.resolve(agent, run.principal)

    async def ask_from(self, run: Run, question: str) -> str:
        """Ask whoever opened this, and wait. The deadline waits too."""
        check_size(question, None, ())
        await self._log.append(
            run.conversation,
            _status(run, Status.INPUT_REQUIRED, {"reply_id": run.task.reply_id}, question),
        )
        loop = asyncio.get_running_loop()
        left = run.seconds_left
        self._reschedule(run, ASK_USER_S)
        run.answer = loop.create_future()
        run.question = question
        run.status = Status.INPUT_REQUIRED
        run.wake()
        try:
            return await run.answer
        finally:
            run.question = run.answer = None
            self._reschedule(run, left)

    def _reschedule(self, run: Run, seconds: float) -> None:
        self._deadlines.remove(run)
        run.deadline = asyncio.get_running_loop().time() + seconds
        self._deadlines.add(run)

    async def answer(self, run: Run, text: str, sender: Sender) -> int:
        """Give a waiting run the answer to its question; returns its place in the log."""
        check_size(text, None, ())
        future = run.answer
        if future is None or future.done():
            raise InvalidParams(f"message {run.task.message_id} waits for no answer")
        run.answer = None  # taken: a second answer is refused from here on
        try:
            events = await self._log.append(
                run.conversation,
                Draft(new_id("m"), Kind.MESSAGE, sender, text, ref=run.task.message_id),
                _status(run, Status.RUNNING, {"reply_id": run.task.reply_id}),
            )
        except BaseException:
            run.answer = future
            raise
        run.status = Status.RUNNING
        run.question = None
        if not future.done():
            future.set_result(text)
        return events[0].seq

    # State and upkeep ----------------------------------------------------------------------

    def live_statuses(self, conversation: Conversation) -> dict[str, Status]:
        """message id → status, for what is under way."""
        return {
            run.task.message_id: run.status
            for call in self._calls.values()
            if call.conversation is conversation
            for run in call.runs
            if not run.is_over
        }

    def runs_in(self, conversation: Conversation) -> list[Run]:
        return [
            run
            for call in self._calls.values()
            if call.conversation is conversation
            for run in call.runs
            if not run.is_over
        ]

    async def recover(self) -> None:
        """Settle what the last life of this node left open."""
        upto = int(self._log.meta("settled_upto") or 0)
        rows = self._log.store.read(
            "SELECT e.cursor, e.caller, e.call, c.id FROM events e JOIN conversations c"
            " ON c.n = e.conversation WHERE e.cursor > ? AND e.caller IS NOT NULL"
            " ORDER BY e.cursor",
            (upto,),
        )
        for cursor, number, blob, conversation_id in rows:
            conversation = self._log.get(conversation_id)
            if conversation is not None:
                await self._recover_call(cursor, number, _decode_note(blob), conversation)

    async def _recover_call(
        self, cursor: int, number: int, note: CallNote, conversation: Conversation
    ) -> None:
        event = self._reader.at(cursor)
        call = Call((number, event.message_id), note.body, conversation, None)
        call.seq, call.cursor = event.seq, event.cursor
        left_s = note.deadline_ms / 1000 - time.time()
        now = asyncio.get_running_loop().time()
        for plan in note.runs:
            ends = self._reader.outcome(conversation.n, event.seq, plan.reply_id)
            if any(row.status is not None and row.status.is_final for row in ends):
                continue
            task = Task(
                plan.agent,
                event.text,
                event.message_id,
                plan.reply_id,
                conversation.id,
                event.sender,
                note.caller,
                event.data,
                event.files,
                note.path or (self._node_id,),
                note.max_hops,
            )
            principal = Principal(note.kind, note.caller)
            run = Run(task, None, conversation, principal, now + max(0.0, left_s), self)
            run.message_seq = event.seq
            began = not plan.queued or any(row.status is Status.RUNNING for row in ends)
            if began and not plan.idempotent:
                error = _interrupted()
                await self._log.append(
                    conversation,
                    _status(
                        run,
                        Status.INTERRUPTED,
                        {"reply_id": plan.reply_id, "error": error.to_wire()},
                        error.message,
                    ),
                )
                continue
            run.started = began
            call.runs.append(run)
        if call.runs:
            self._calls[call.key] = call
            self._open_runs += len(call.runs)
            for run in call.runs:
                turn = self._lanes.enter((conversation.id, run.task.agent))
                self._deadlines.add(run)
                run.worker = self._spawn(self._work(call, run, turn))

    def settled_upto(self) -> int:
        """Every call up to this cursor is over, and its end is in the log."""
        floor = self._log.cursor
        for call in self._calls.values():
            if call.cursor:
                floor = min(floor, call.cursor - 1)
        return floor

    async def save_progress(self) -> None:
        """Write down how far everything is settled, and who called how much."""
        upto = self.settled_upto()
        counted, self.seconds = self.seconds, {}

        def apply(tx: Tx) -> None:
            tx.execute("INSERT OR REPLACE INTO meta VALUES ('settled_upto', ?)", (upto,))
            for caller, (calls, seconds, last_at) in counted.items():
                tx.execute(
                    "UPDATE callers SET calls = calls + ?, seconds = seconds + ?, last_at = ?"
                    " WHERE id = ?",
                    (calls, seconds, last_at, caller),
                )

        await self._log.store.write(apply)

    async def close(self) -> None:
        """Interrupt what runs, log it, and leave no task behind."""
        self._closing = True
        for call in list(self._calls.values()):
            for run in call.runs:
                run.stop(_interrupted("the node was stopped"))
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self._deadlines.close()


def outcome_of(run: Run) -> Outcome:
    """What the agent answered; raises what it ended with instead."""
    if run.error is not None:
        raise with_ids(run.error, run.task)
    assert run.outcome is not None
    return run.outcome


def with_ids(error: RpcError, task: Task) -> RpcError:
    """A fresh copy of an error that names what it is about."""
    return type(error)(
        error.message,
        hint=error.hint,
        **{
            **error.data,
            "conversation": task.conversation,
            "message_id": task.message_id,
            "reply_id": task.reply_id,
            "status": _status_of(error).value,
        },
    )


def check_route(path: Sequence[str], agent: str, max_hops: int) -> None:
    """Refuse a loop, and a chain longer than was allowed."""
    if agent in path:
        raise InvalidParams(
            f"{agent} is already at work on this", hint="agents may not call in a circle"
        )
    hops = sum("@" in step for step in path)
    if hops >= max_hops:
        raise InvalidParams(f"the limit of {max_hops} agents one behind another is reached")


def check_size(text: str, data: Any, files: Sequence[FileRef]) -> None:
    if len(text) > TEXT_LIMIT_BYTES or (
        not text.isascii() and len(text.encode(errors="replace")) > TEXT_LIMIT_BYTES
    ):
        raise TooLarge("a text may have 1 MB at most", hint="send it as a file")
    if data is not None and len(_encode(data)) > DATA_LIMIT_BYTES:
        raise TooLarge("data may have 1 MB at most", hint="send it as a file")
    if len(files) > FILES_PER_MESSAGE:
        raise TooLarge(f"a message may carry {FILES_PER_MESSAGE} files at most")


def _status_of(error: RpcError) -> Status:
    if isinstance(error, Cancelled):
        return Status.CANCELLED
    if error.data.get("status") == Status.INTERRUPTED:
        return Status.INTERRUPTED
    return Status.FAILED


def _interrupted(why: str = "the node stopped while the agent was at work") -> AgentFailed:
    return AgentFailed(
        why,
        hint="it may have done part of its work; send it again with a new id if that is safe",
        status=Status.INTERRUPTED.value,
        ran="unknown",
    )


def _status(run: Run, status: Status, data: dict[str, Any], text: str = "") -> Draft:
    return Draft(
        new_id("s"),
        Kind.STATUS,
        run.sender,
        text,
        data,
        ref=run.task.message_id,
        status=status,
    )


def _body(request: Request) -> str:
    """The same message has the same body: agents, text, data, files."""
    form = _encode(
        (
            [target.id for target in request.targets],
            request.text,
            request.data,
            [file.sha256 for file in request.files],
        )
    )
    return hashlib.sha256(form).hexdigest()[:32]


def _check_same(stored: str, body: str, message_id: str) -> None:
    if stored != body:
        raise InvalidParams(
            f"message id {message_id} was used for another message",
            hint="use a new message_id for a new message",
        )
