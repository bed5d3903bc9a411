"""A task of ours at an A2A agent: sent, listened to, asked back, looked up again, called off."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from aios_nb.envelope import DATA_LIMIT_BYTES, TEXT_LIMIT_BYTES, FileRef, Outcome, Task
from aios_nb.errors import (
    AgentFailed,
    AiosError,
    Busy,
    Cancelled,
    RpcError,
    TooLarge,
    Unreachable,
)
from aios_nb.ports import ContextMemory, Run
from aios_nb.richtext import one_line
from aios_nb.wire.a2a.shapes import State
from aios_nb.wire.outside.cards import interface_of
from aios_nb.wire.outside.events import (
    ENDS,
    WAITS,
    Said,
    TaskStatus,
    TheirMessage,
    bad_end,
    cut,
    question_of,
)
from aios_nb.wire.outside.parts import Answer, Part, content_of, parts_of, text_of
from aios_nb.wire.outside.rpc import INVALID_PARAMS, SAID_CHARS, TASK_NOT_FOUND, Lost, Refusal, Rpc
from aios_nb.wire.places import Place

if TYPE_CHECKING:
    from aios_nb.envelope import Seen
    from aios_nb.wire.outside.a2a import A2aAgent

POLL_FIRST_S, POLL_MAX_S, POLL_GROWTH = 0.1, 5.0, 1.6
POLL_WAIT_S = 20.0
"""One look at a task may take so long."""
NAME_WAIT_S = 10.0
"""For the name of a task that is to be called off."""
ID_CHARS = 512
NOTE_CHARS = 200
QUESTIONS_MAX = 100
_FORGOTTEN = frozenset({TASK_NOT_FOUND, INVALID_PARAMS})
"""How servers say that they do not know a conversation."""
_encode = msgspec.json.Encoder().encode


class A2aCarrier:
    """Carries tasks to one agent. Is a ``ports.Carrier``."""

    def __init__(self, agent: A2aAgent, seen: Seen, memory: ContextMemory) -> None:
        self._agent = agent
        self._seen = seen
        self._memory = memory

    async def carry(self, task: Task, run: Run) -> Outcome:
        await self._agent.confirm(self._seen)
        interface = interface_of(self._seen.details["card"])
        rpc = self._agent.rpc(interface)
        journey = Journey(self._agent, rpc, task, run, self._memory, streaming=interface.streaming)
        return await journey.outcome()


class Journey:
    """One task on its way there and back."""

    def __init__(
        self,
        agent: A2aAgent,
        rpc: Rpc,
        task: Task,
        run: Run,
        memory: ContextMemory,
        *,
        streaming: bool,
    ) -> None:
        self._agent = agent
        self._rpc = rpc
        self._task = task
        self._run = run
        self._memory = memory
        self._streaming = streaming
        # Conversations are named by who opened them: two callers may choose the same name.
        self._conversation = f"{task.caller} {task.conversation}"
        self._context = memory.get(self._conversation)
        self._their_id: str | None = None
        self._state = ""
        self._status = TaskStatus()
        self._answer = Answer()
        self._told: list[str] = []
        """What was streamed to who listens here."""
        self._in_step = False
        """It is all of the answer so far."""
        self._note = ""
        """The last thing it said on the way."""
        self._answered: set[str] = set()
        """Questions of its that have been answered."""
        self._given_up = False
        """Nobody listens any more; only its id is still wanted, to call it off."""

    async def outcome(self) -> Outcome:
        message = self._message(parts_of(self._task, self._agent.blobs), "")
        try:
            while True:
                await self._ask(message)
                if self._state != State.INPUT_REQUIRED:
                    return await self._brought_home()
                message = await self._asked_back()
        except asyncio.CancelledError:
            if self._run.cancelled:  # told to stop, not merely cut
                self._call_off()
            raise
        except RpcError:
            self._call_off()
            raise

    def _call_off(self) -> None:
        if self._their_id is not None and self._state not in ENDS:
            self._agent.finish(self._agent.called_off(self._rpc, self._their_id))

    # There -------------------------------------------------------------------------------

    def _message(self, parts: list[dict[str, Any]], suffix: str) -> dict[str, Any]:
        """The same id whenever this is sent: who knows it need not do it twice."""
        message: dict[str, Any] = {
            "messageId": f"{self._task.reply_id}{suffix}",
            "role": "ROLE_USER",
            "parts": parts,
        }
        if self._context:
            message["contextId"] = self._context
        if self._their_id:
            message["taskId"] = self._their_id
        return message

    async def _ask(self, message: dict[str, Any]) -> None:
        """Send a message, and listen until the task has ended or waits for us."""
        self._state = ""
        self._run.begin()
        try:
            await self._sent(message)
        except Refusal as refusal:
            forgotten = refusal.their_code in _FORGOTTEN and self._their_id is None
            if not forgotten or message.pop("contextId", None) is None:
                raise
            # It may not know the conversation any more. Nothing ran: it can begin a new one.
            self._context = None
            await self._sent(message)
        await self._looked_up()

    async def _sent(self, message: Mapping[str, Any]) -> None:
        sending = asyncio.ensure_future(self._send(message))
        try:
            await asyncio.shield(sending)
        except asyncio.CancelledError:
            if self._run.cancelled and self._their_id is None and not sending.done():
                # It is at work already, but has not said yet by what name it can be stopped.
                self._given_up = True
                self._agent.finish(self._called_off_when_known(sending))
            else:
                sending.cancel()
            raise

    async def _called_off_when_known(self, sending: asyncio.Future[None]) -> None:
        with contextlib.suppress(RpcError, TimeoutError):
            async with asyncio.timeout(NAME_WAIT_S):
                await sending
        self._call_off()

    async def _send(self, message: Mapping[str, Any]) -> None:
        try:
            if not self._streaming:
                # At once, and then looked up: whoever waits can call it off.
                params = {"message": message, "configuration": {"returnImmediately": True}}
                await self._hear(await self._rpc.call("SendMessage", params))
                return
            stream = self._rpc.stream("SendStreamingMessage", {"message": message})
            async with contextlib.aclosing(stream) as events:  # type: ignore[type-var]
                async for event in events:
                    await self._hear(event)
                    if self._is_settled:
                        return
        except Lost as lost:
            if self._their_id is None:
                raise cut(str(lost)) from None

    async def _looked_up(self) -> None:
        """Look at the task until it is settled; the deadline ends the looking."""
        pause_s = POLL_FIRST_S
        while not self._is_settled:
            if self._their_id is None:
                raise AgentFailed("it answered nothing", ran="unknown")
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * POLL_GROWTH, POLL_MAX_S)
            try:
                async with asyncio.timeout(POLL_WAIT_S):
                    found = await self._rpc.call("GetTask", {"id": self._their_id})
            except (Lost, Unreachable, Busy, TimeoutError):
                continue  # it may come back
            except Refusal as refusal:
                if refusal.their_code == TASK_NOT_FOUND:
                    raise cut("it does not know of it any more") from None
                raise
            await self._hear({"task": found})

    async def _asked_back(self) -> dict[str, Any]:
        """Let the person here answer what it asks; the message that tells it."""
        if len(self._answered) >= QUESTIONS_MAX:
            raise AgentFailed("it asks without end", ran="yes")
        said = self._status.message
        question = text_of(said.parts).strip() if said else ""
        answered = question_of(self._status)
        text = await self._run.ask_user(question or "It wants to know more.")
        self._answered.add(answered)
        return self._message([{"text": text}], f".{len(self._answered)}")

    # And back ----------------------------------------------------------------------------

    @property
    def _is_settled(self) -> bool:
        return self._state in ENDS or self._state in WAITS

    async def _hear(self, said: Any) -> None:
        try:
            event = msgspec.convert(said, Said)
        except (msgspec.ValidationError, RecursionError):
            raise AgentFailed("it answered with something that is not A2A", ran="unknown") from None
        if event.message is not None:
            await self._in_context(event.message.context_id)
            self._answer.close(event.message.parts)
            self._state = State.COMPLETED
        elif event.task is not None and await self._is_ours(event.task.id, event.task.context_id):
            if event.task.artifacts:
                self._answer.clear()
            for artifact in event.task.artifacts:
                self._answer.add(artifact, append=False)
            self._reach(event.task.status, event.task.history)
            self._stream(None)
        elif (update := event.status_update) is not None:
            if await self._is_ours(update.task_id, update.context_id):
                self._reach(update.status)
        elif (piece := event.artifact_update) is not None and await self._is_ours(
            piece.task_id, piece.context_id
        ):
            self._stream(self._answer.add(piece.artifact, append=piece.append))

    async def _is_ours(self, their_id: str, context: str) -> bool:
        if not 0 < len(their_id) <= ID_CHARS:
            raise AgentFailed("it names its task in a way that cannot be used", ran="unknown")
        if self._their_id is None:
            self._their_id = their_id
        if self._their_id != their_id:
            return False  # not what we asked
        await self._in_context(context)
        if self._given_up:
            raise Cancelled("nobody waits for it")
        return True

    async def _in_context(self, context: str) -> None:
        if context and context != self._context and len(context) <= ID_CHARS:
            self._context = context
            await self._memory.put(self._conversation, context)

    def _reach(self, status: TaskStatus, history: list[TheirMessage] | None = None) -> None:
        if status.state == State.INPUT_REQUIRED and question_of(status) in self._answered:
            return  # it has not heard the answer yet
        self._state = status.state
        self._status = status
        parts = status.message.parts if status.message else []
        if self._state in ENDS:
            self._answer.close(parts)
            if self._answer.is_empty and history and history[-1].role == "ROLE_AGENT":
                self._answer.close(history[-1].parts)
        elif self._state not in WAITS:
            note = text_of(parts).strip()
            self._note = note or self._note
            named = status.state.removeprefix("TASK_STATE_").lower().replace("_", " ")
            self._run.progress(one_line(note or named, NOTE_CHARS), None)

    def _stream(self, added: str | None) -> None:
        """Pass on what is new at the end; what was said before cannot be unsaid."""
        if added is None:
            text, told = self._answer.text, "".join(self._told)
            self._in_step = text.startswith(told)
            added = text[len(told) :]
        if self._in_step and added:
            self._run.delta(added)
            self._told.append(added)

    async def _brought_home(self) -> Outcome:
        """The answer as one of ours. Raises for every other end than a good one."""
        if self._state != State.COMPLETED:
            said = self._status.message
            raise bad_end(self._state, one_line(text_of(said.parts), SAID_CHARS) if said else "")
        text, data = self._answer.text, self._answer.data
        files = [ref for part in self._answer.files() if (ref := await self._kept(part))]
        if self._answer.is_empty:
            text = self._note
        try:
            fits = len(text.encode()) <= TEXT_LIMIT_BYTES and len(_encode(data)) <= DATA_LIMIT_BYTES
        except UnicodeEncodeError:
            raise AgentFailed("it answered with a text that is none", ran="yes") from None
        if not fits:
            raise AgentFailed("its answer is longer than is taken here", ran="yes")
        return Outcome(text, data, tuple(files))

    async def _kept(self, part: Part) -> FileRef | None:
        """The file of a part, kept here. One that is elsewhere stays there: its link is told."""
        agent, limit = self._agent, self._agent.limits.file_bytes
        if part.raw is not None:
            content = content_of(part, limit)
        else:
            try:
                if not agent.is_home(Place.parse(part.url or "")):
                    return None  # anybody's URL: who wants it may follow it
                content = await agent.file(part.url or "", limit)
            except AiosError:
                return None
        try:
            return await agent.blobs.put(
                content,
                part.filename or "file",
                one_line(part.media_type, 100),
                self._task.agent,
                stranger=self._run.stranger,
            )
        except TooLarge as error:
            raise AgentFailed(f"its file is not taken: {error.message}", ran="yes") from None
