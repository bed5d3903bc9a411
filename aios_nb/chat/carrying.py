"""Carries tasks to agents of other nodes, and brings their answers back.

The same id goes with every attempt, so that the host runs it at most once: a repeat joins the run
there or gets what became of it. A broken link is dialled again and the stream goes on where it
stopped; a host that is away is tried until the deadline (``outbox.py``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from aios_nb.access import Principal
from aios_nb.chat.answers import (
    SAID_CHARS,
    Answer,
    is_end,
    read_answer,
    read_delta,
    retry_after_s,
    told_by,
)
from aios_nb.chat.calls import check_size
from aios_nb.chat.couriers import Couriers, checked
from aios_nb.chat.endings import interrupted, unreachable
from aios_nb.chat.outbox import Attempts
from aios_nb.chat.paper import CONTEXT_JSON_BYTES
from aios_nb.envelope import (
    Content,
    Envelope,
    Event,
    Outcome,
    Party,
    Routing,
    Status,
    Task,
)
from aios_nb.errors import (
    AgentFailed,
    Busy,
    ConnectionLost,
    InvalidParams,
    RpcError,
    Unreachable,
)
from aios_nb.ports import Carrier, Link, Links, Run, Stream

log = logging.getLogger("aios_nb.chat")

QUESTIONS_IN_VAIN = 100
"""A host that asks so often without waiting for the answer is not listened to any longer."""
STOP_S = 10.0
STOP_PAUSES_S = (0.05, 0.5, 2.0)
"""Between the times a host is told to stop, if it does not know yet what."""
_encode = msgspec.json.Encoder().encode


class Carrying:
    """The way to the agents of other nodes."""

    def __init__(self, node_id: str, links: Links, couriers: Couriers) -> None:
        self.node_id = node_id
        self.links = links
        self.couriers = couriers
        self.under_way: dict[str, Task] = {}
        """What other nodes are at work on for us, by the id they know it by."""
        self._stopping: set[asyncio.Task[None]] = set()

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

    def call_off(self, node_id: str, message_id: str) -> None:
        """Tell that node to stop; if it cannot be reached, it gives up by itself after a while."""
        stopping = asyncio.ensure_future(self._call_off(node_id, message_id))
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)

    async def _call_off(self, node_id: str, message_id: str) -> None:
        try:
            async with asyncio.timeout(STOP_S):
                for pause_s in STOP_PAUSES_S:
                    try:
                        link = await self.links.reach(node_id)
                        await link.call("chat.cancel", {"message_id": message_id})
                    except (ConnectionLost, Busy, InvalidParams):
                        # Not taken yet: the first call of a node takes a moment longer there.
                        await asyncio.sleep(pause_s)
                    else:
                        return
        except (RpcError, TimeoutError) as error:
            log.debug("%s was not told to stop: %s", node_id, error)


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
        self._epoch = 0
        self._question: str | None = None
        """The last one it asked."""
        self._in_vain = 0
        """Questions that nobody could have answered."""
        self._muted = False
        """Its host ran it anew: what comes now need not go on where the old text stopped."""
        self._over_there = False
        """Its host says that it has come to its end."""

    async def outcome(self) -> Outcome:
        asking: asyncio.Future[None] | None = None
        try:
            while True:
                answer = await self._answer_beside(asking)
                if asking is not None and not asking.done():
                    asking.cancel()
                    self._in_vain += 1
                if answer.status is not Status.INPUT_REQUIRED:
                    return await self._brought_home(answer)
                self._attempts.heard()
                self._in_vain += answer.question == self._question
                if self._in_vain > QUESTIONS_IN_VAIN:
                    raise AgentFailed("its node asks without waiting for answers")
                self._question = answer.question
                asking = asyncio.ensure_future(self._pass_on(answer))
                asking.add_done_callback(_seen)
        except asyncio.CancelledError:
            if self._run.cancelled:  # told to stop, not merely cut
                self._call_off()
            raise
        except RpcError:
            self._call_off()  # unless that is what the host itself says
            raise
        finally:
            if asking is not None:
                asking.cancel()

    async def _answer_beside(self, asking: asyncio.Future[None] | None) -> Answer:
        """What the host says next, while somebody here may be thinking about its question."""
        if asking is None:
            return await self._answer()
        listening = asyncio.ensure_future(self._answer())
        listening.add_done_callback(_seen)
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
        if self._attempts.delivered and not self._over_there:
            self._carrying.call_off(self._node_id, self._task.reply_id)

    # There -------------------------------------------------------------------------------

    async def _answer(self) -> Answer:
        """What the host says in the end: how it ended, or what it asks."""
        while True:
            link = await self._reach()
            try:
                return await self._listen(self._ask(link))
            except ConnectionLost:
                await self._links.news(self._node_id, self._attempts.pause_s())
            except Busy as busy:
                taken = self._attempts.may_be_taken or busy.data.get("taken") is True
                if is_end(busy) or not (taken or self._run.patient):
                    raise told_by(busy) from busy
                self._over_there = False
                await asyncio.sleep(self._attempts.pause_s(at_least=retry_after_s(busy)))
            except InvalidParams as error:
                if self._attempts.acknowledged and self._over_there and not is_end(error):
                    raise interrupted("its node does not know of it any more") from error
                raise told_by(error) from error
            except RpcError as error:
                raise told_by(error) from error

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
            self._epoch = link.epoch
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
        context = _told(run.messages)
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

    async def _listen(self, stream: Stream) -> Answer:
        try:
            async for delta in stream:
                self._attempts.heard()
                self._hear(delta)
            try:
                answer = read_answer(await stream.result())
            except RpcError:
                self._over_there = True
                raise
            self._over_there = answer.status is Status.DONE
            return answer
        finally:
            stream.close()

    def _hear(self, delta: Any) -> None:
        run = self._run
        heard = read_delta(delta)
        if heard.progress is not None:
            run.progress(heard.progress[:SAID_CHARS], None)
        skip = run.length - heard.offset
        if not self._muted and 0 <= skip < len(heard.text):
            run.delta(heard.text[skip:])

    async def _brought_home(self, answer: Answer) -> Outcome:
        couriers, task = self._carrying.couriers, self._task
        try:
            check_size(answer.text, answer.data)
            files = checked(answer.files, couriers.file_bytes)
        except RpcError as error:
            raise AgentFailed(f"its answer is not taken: {error.message}", ran="yes") from error
        if not files:
            return Outcome(answer.text, answer.data)
        await couriers.fetch(
            self._node_id,
            task.reply_id,
            files,
            task.caller,
            ran="yes",
            stranger=self._run.stranger,
        )
        return Outcome(answer.text, answer.data, files)

    async def _pass_on(self, asked: Answer) -> None:
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
            except Busy as busy:
                await asyncio.sleep(self._attempts.pause_s(at_least=retry_after_s(busy)))
            except RpcError as error:
                raise told_by(error) from error
            else:
                return


def _seen(done: asyncio.Future[Any]) -> None:
    """Two may fail at the same moment, and only one of them is raised."""
    if not done.cancelled():
        done.exception()


def _told(events: Sequence[Event]) -> list[Event]:
    """Messages as another node may see them: what is ours to count stays here.

    The oldest are left out when all together would be more than a node takes.
    """
    told: list[Event] = []
    room = CONTEXT_JSON_BYTES - 2
    for event in reversed(events):
        shown = msgspec.structs.replace(event, conversation="", cursor=0)
        room -= len(_encode(shown)) + 1
        if room < 0:
            break
        told.append(shown)
    return told[::-1]
