"""Carries tasks to agents of other nodes, and brings their answers back.

The same id goes with every attempt, so that the host runs it at most once: a repeat joins the run
there or gets what became of it. A broken link is dialled again and the stream goes on where it
stopped; a host that is away is tried until the deadline (``outbox.py``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from aios_nb.access import Principal
from aios_nb.chat.couriers import Couriers
from aios_nb.chat.endings import unreachable
from aios_nb.chat.outbox import Attempts
from aios_nb.envelope import (
    Content,
    Envelope,
    Event,
    FileRef,
    Outcome,
    Party,
    Routing,
    Status,
    Task,
)
from aios_nb.errors import (
    AgentFailed,
    Busy,
    Cancelled,
    ConnectionLost,
    DeadlinePassed,
    InvalidParams,
    NoSuchAgent,
    NotAllowed,
    RpcError,
    TooLarge,
    Unreachable,
)
from aios_nb.ports import Carrier, Link, Links, Run, Stream

SAID_CHARS = 1000
"""Of another node's error that is passed on."""
BUSY_MAX_S = 30.0
_READ = frozenset({"ran", "status", "reason", "retry_after_s"})
_THEIRS = frozenset(
    {AgentFailed, Busy, Cancelled, DeadlinePassed, InvalidParams, NoSuchAgent, NotAllowed, TooLarge}
)
"""What a host may say of a task. Anything else is its own trouble."""


class Carrying:
    """The way to the agents of other nodes."""

    def __init__(self, node_id: str, links: Links, couriers: Couriers) -> None:
        self.node_id = node_id
        self.links = links
        self.couriers = couriers
        self.under_way: dict[str, Task] = {}
        """What other nodes are at work on for us, by the id they know it by."""

    def to(self, node_id: str) -> Carrier:
        """Whoever carries tasks to that node."""
        return RemoteCarrier(self, node_id)

    def shares(self, reader: Principal, message_id: str, sha256: str) -> bool:
        """Whether that node may read this file: it came with what the node was asked."""
        task = self.under_way.get(message_id)
        return (
            task is not None
            and task.agent.endswith(f"@{reader.id}")
            and any(file.sha256 == sha256 for file in task.files)
        )


class RemoteCarrier:
    """Carries tasks to one node. Is a ``ports.Carrier``."""

    __slots__ = ("_carrying", "_node_id")

    def __init__(self, carrying: Carrying, node_id: str) -> None:
        self._carrying = carrying
        self._node_id = node_id

    async def carry(self, task: Task, run: Run) -> Outcome:
        trip = Trip(self._carrying, self._node_id, task, run)
        self._carrying.under_way[task.reply_id] = task
        try:
            return await trip.outcome()
        finally:
            self._carrying.under_way.pop(task.reply_id, None)


class Trip:
    """One task on its way there and back, over as many links as it takes."""

    def __init__(self, carrying: Carrying, node_id: str, task: Task, run: Run) -> None:
        self._carrying = carrying
        self._links = carrying.links
        self._node_id = node_id
        self._task = task
        self._run = run
        self._attempts = Attempts()
        self._link: Link | None = None
        self._epoch = 0
        self._question: str | None = None
        """The last one it asked."""
        self._muted = False
        """Its host ran it anew: what comes now need not go on where the old text stopped."""

    async def outcome(self) -> Outcome:
        asking: asyncio.Future[None] | None = None
        try:
            while True:
                answer = await self._answer_beside(asking)
                if asking is not None:
                    asking.cancel()
                if answer.status is not Status.INPUT_REQUIRED:
                    return await self._brought_home(answer)
                self._attempts.heard()
                self._question = answer.question
                asking = asyncio.ensure_future(self._pass_on(answer))
        except asyncio.CancelledError:
            if self._run.cancelled:  # told to stop, not merely cut
                self._call_off()
            raise
        except TooLarge:
            self._call_off()
            raise
        finally:
            if asking is not None:
                asking.cancel()

    async def _answer_beside(self, asking: asyncio.Future[None] | None) -> _Answer:
        """What the host says next, while somebody here may be thinking about its question."""
        if asking is None:
            return await self._answer()
        listening = asyncio.ensure_future(self._answer())
        try:
            both: set[asyncio.Future[Any]] = {listening, asking}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not listening.done():
                asking.result()
            return await listening
        finally:
            listening.cancel()

    def _call_off(self) -> None:
        """Whoever is at work on it over there should stop too."""
        link = self._link
        if self._attempts.delivered and link is not None and link.is_open:
            link.notify("chat.cancel", {"message_id": self._task.reply_id})

    # There -------------------------------------------------------------------------------

    async def _answer(self) -> _Answer:
        """What the host says in the end: how it ended, or what it asks."""
        while True:
            link = await self._reach()
            try:
                return await self._listen(self._ask(link))
            except ConnectionLost:
                await self._links.news(self._node_id, self._attempts.pause_s())
            except Busy as busy:
                if not self._run.patient or self._attempts.acknowledged:
                    raise _told_by(busy) from busy
                await asyncio.sleep(self._attempts.pause_s(at_least=_retry_after_s(busy)))
            except RpcError as error:
                raise _told_by(error) from error

    async def _reach(self) -> Link:
        """A link that works, sooner or later; the deadline ends the waiting."""
        while True:
            try:
                link = await self._links.reach(self._node_id)
            except Unreachable as error:
                reason = str(error.data.get("reason") or "no answer")
                if not self._attempts.may_wait(reason, patient=self._run.patient):
                    raise unreachable(self._task.agent, reason) from error
                await self._links.news(self._node_id, self._attempts.pause_s())
                continue
            if self._epoch and link.epoch != self._epoch and self._run.length:
                self._muted = True
            self._link, self._epoch = link, link.epoch
            return link

    def _ask(self, link: Link) -> Stream:
        """Send it, or go on listening if it is there already."""
        if self._attempts.acknowledged:
            return link.stream("chat.stream", self._place())
        stream = link.stream("aios.message", {"envelope": self._envelope(), "stream": True})
        self._attempts.sent()
        self._run.begin()
        return stream

    def _place(self) -> Mapping[str, Any]:
        offset = 0 if self._muted else self._run.length
        place = {"message_id": self._task.reply_id, "offset": offset}
        return place if self._question is None else {**place, "question": self._question}

    def _envelope(self) -> Envelope:
        task, run = self._task, self._run
        context = [_told(event) for event in run.messages]
        return Envelope(
            sender=Party(task.sender.id, task.sender.type, node_id=self._carrying.node_id),
            recipient=Party(task.agent, "agent", node_id=self._node_id),
            message_type="request",
            content=Content(
                task=task.text,
                data=task.data,
                files=list(task.files) or None,
                context=context or None,
            ),
            message_id=task.reply_id,
            conversation_id=task.conversation,
            routing=Routing(
                path=list(task.path),
                max_hops=task.max_hops,
                deadline_ms=max(1, int(run.seconds_left * 1000)),
            ),
        )

    # And back ----------------------------------------------------------------------------

    async def _listen(self, stream: Stream) -> _Answer:
        try:
            async for delta in stream:
                self._attempts.heard()
                self._hear(delta)
            return _read(await stream.result())
        finally:
            stream.close()

    def _hear(self, delta: Any) -> None:
        run = self._run
        try:
            offset, text, note = int(delta["offset"]), str(delta["text"]), delta.get("progress")
        except (KeyError, TypeError, ValueError):
            raise AgentFailed("its node answers in a way that is not understood") from None
        if note is not None:
            run.progress(str(note), None)
        skip = run.length - offset
        if not self._muted and 0 <= skip < len(text):
            run.delta(text[skip:])

    async def _brought_home(self, answer: _Answer) -> Outcome:
        if answer.files:
            task = self._task
            await self._carrying.couriers.fetch(
                self._node_id,
                task.reply_id,
                answer.files,
                task.caller,
                stranger=self._run.stranger,
            )
        return Outcome(answer.text, answer.data, tuple(answer.files))

    async def _pass_on(self, asked: _Answer) -> None:
        """Let the person here answer what the agent there asks."""
        text = await self._run.ask_user(asked.text, asked.question)
        said = {"message_id": self._task.reply_id, "text": text, "wait": False}
        while True:
            link = await self._reach()
            try:
                await link.call("chat.answer", {**said, "question": asked.question})
            except ConnectionLost:
                await self._links.news(self._node_id, self._attempts.pause_s())
            except InvalidParams:
                return  # it ended meanwhile; who listens hears how
            except RpcError as error:
                raise _told_by(error) from error
            else:
                return


class _Answer(msgspec.Struct):
    """What a host answers, by either method."""

    status: Status
    text: str = ""
    data: Any = None
    files: list[FileRef] = []
    question: str | None = None


class _Fields(msgspec.Struct):
    """The part of an answer that is read, of an envelope or of ``chat.stream``."""

    content: Content | None = None
    status: str = ""
    text: str = ""
    data: Any = None
    files: list[FileRef] | None = None
    question: str | None = None


def _read(result: Any) -> _Answer:
    try:
        fields = msgspec.convert(result, _Fields)
        content = fields.content
        if content is not None:
            said = str(content.status)
            status = Status.DONE if said == "success" else Status(said)
            return _Answer(
                status, str(content.result), content.data, content.files or [], content.question
            )
        return _Answer(
            Status(fields.status), fields.text, fields.data, fields.files or [], fields.question
        )
    except (msgspec.ValidationError, ValueError):
        raise AgentFailed("its node answers in a way that is not understood") from None


def _told_by(error: RpcError) -> RpcError:
    """Another node's error as ours: its kind, one line, and what we know how to read."""
    said = error.message[:SAID_CHARS]
    hint = None if error.hint is None else str(error.hint)[:SAID_CHARS]
    data = {key: value for key, value in error.data.items() if _is_short(key, value)}
    if type(error) not in _THEIRS:
        return AgentFailed(f"its node answered: {said}", hint=hint, **data)
    return type(error)(said, hint=hint, **data)


def _is_short(key: str, value: Any) -> bool:
    return key in _READ and isinstance(value, (str, int, float)) and len(str(value)) < SAID_CHARS


def _retry_after_s(busy: Busy) -> float:
    wait_s = busy.data.get("retry_after_s")
    return min(max(float(wait_s), 0.0), BUSY_MAX_S) if isinstance(wait_s, (int, float)) else 0.0


def _told(event: Event) -> Event:
    """A message as another node may see it: what is ours to count stays here."""
    return msgspec.structs.replace(event, conversation="", cursor=0)
