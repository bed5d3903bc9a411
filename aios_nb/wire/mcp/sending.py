"""``agent_send``: one question to an agent, with its progress, its questions and its end.

A client that stops waiting stops the run. An agent that asks back reaches the person through the
client where the client can do that: at once (older clients) or by asking the client to call again
with the answer (newer ones). Where it cannot, the question is the result, and the next
``agent_send`` in that conversation answers it.
"""

from __future__ import annotations

import asyncio
import contextlib
from base64 import b64encode
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from aios_nb.access import Principal
from aios_nb.envelope import ID, new_id
from aios_nb.errors import Cancelled, InvalidParams, RpcError
from aios_nb.richtext import PlainStream, plain
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.doors import Facts
from aios_nb.wire.mcp import asking, words

if TYPE_CHECKING:
    from aios_nb.ports import Blobs
    from aios_nb.wire.mcp.tools import Send

DEADLINE_S = 300.0
STRANGER_DEADLINE_S = 60.0
REMEMBERED = 2000
"""Open questions, and agents that were met before."""
INLINE_BYTES = 1 << 20
INLINE_FILES = 4
"""Pictures and sounds of an answer that go with it; the rest is named."""


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a newer client carries for us until it calls again. Sealed, and bound to the call."""

    message_id: str = ""
    question: str = ""
    met: str = ""
    """The agent whose first use was to be confirmed."""


_read_state = msgspec.json.Decoder(State).decode


class Sending:
    """Asks agents in the name of MCP clients."""

    def __init__(self, calls: Dispatcher, facts: Facts, blobs: Blobs) -> None:
        self._calls = calls
        self._facts = facts
        self._blobs = blobs
        self._open: OrderedDict[tuple[str, str], tuple[str, str]] = OrderedDict()
        """Questions that were given out as results: caller and conversation → message, question."""
        self._met: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Who has used or confirmed which agent."""
        self._stopping: set[asyncio.Task[Any]] = set()
        self.leaving = False
        """The node stops: what runs is cut by the chat room, not by us."""

    async def send(self, ctx: Any, caller: Principal, args: Send, params: Any) -> dict[str, Any]:
        """The result of the tool. Raises ``RpcError``."""
        state = _state(params.request_state)
        given = asking.given(params.input_responses)
        if state.message_id:
            return await self._go_on(ctx, caller, state, given)
        note = ""
        if not caller.is_stranger and (caller.id, args.agent) not in self._met:
            told = await self._meet(ctx, caller, args.agent, state, given)
            if not isinstance(told, str):
                return told
            note = told
        conversation = None if args.conversation is UNSET else args.conversation or None
        if conversation is not None and self._open:
            waiting = self._open.pop((caller.id, conversation), None)
            if waiting is not None:
                return await self._answer(ctx, caller, *waiting, args.text, note)
        message_id = new_id("m")
        asked: dict[str, Any] = {
            "agent": args.agent,
            "text": args.text,
            "message_id": message_id,
            "deadline_s": STRANGER_DEADLINE_S if caller.is_stranger else DEADLINE_S,
        }
        if conversation is not None:
            asked["conversation"] = conversation
        try:
            if asking.wants_progress(ctx):
                result = await self._follow(ctx, caller, asked)
            else:
                result = await self._calls.call(caller, "chat.send", asked)
            return await self._told(ctx, caller, result, note)
        except asyncio.CancelledError:
            self._stop(caller, message_id)
            raise

    async def close(self) -> None:
        if self._stopping:
            await asyncio.wait(self._stopping)

    # First contact ----------------------------------------------------------------------------

    async def _meet(
        self, ctx: Any, caller: Principal, agent: str, state: State, given: asking.Given
    ) -> str | dict[str, Any]:
        """A note to show, empty mostly; or the result that asks whether to go on.

        An agent of another node that was never used from here is somebody's program elsewhere:
        who asks should know that their words go there.
        """
        told = await self._calls.call(caller, "agents.card", {"agent": agent})
        agent_id = str(told["card"]["id"])
        far = agent_id.rpartition("@")[2] != self._facts.node_id
        if not far or told.get("used"):
            self._remember_met(caller, agent)
            return ""
        signed = "its card is signed" if told["verified"] else "its card is NOT verified"
        question = (
            f"{words.line(agent_id)} is an agent of another node that was not used from here"
            f" before; {signed}. Send your message there?"
        )
        if state.met == agent_id:
            answer = given.confirmed()
        elif asking.can_ask_now(ctx):
            answer = await asking.confirm_now(ctx, question)
        elif asking.can_ask_later(ctx):
            return asking.confirm_later(question, msgspec.json.encode(State(met=agent_id)).decode())
        else:
            self._remember_met(caller, agent)
            return f"First use of {agent_id}, an agent of another node; {signed}."
        if not answer:
            raise Cancelled("not sent: it was not confirmed", hint="nothing was sent")
        self._remember_met(caller, agent)
        return ""

    def _remember_met(self, caller: Principal, agent: str) -> None:
        self._met[caller.id, agent] = None
        while len(self._met) > REMEMBERED:
            self._met.popitem(last=False)

    # Questions --------------------------------------------------------------------------------

    async def _go_on(
        self, ctx: Any, caller: Principal, state: State, given: asking.Given
    ) -> dict[str, Any]:
        """A newer client has called again."""
        answer = given.answer()
        if answer is not None:
            with contextlib.suppress(InvalidParams):  # it was answered before: this is a repeat
                return await self._answer(ctx, caller, state.message_id, state.question, answer, "")
        if given.refused():
            await self._calls.call(caller, "chat.cancel", {"message_id": state.message_id})
            raise Cancelled("the question was not answered", hint="the agent was stopped")
        # Not an answer to this question: what the agent wants to know, or has said, is told again.
        notices = await self._calls.call(caller, "chat.stream", {"message_id": state.message_id})
        result = msgspec.to_builtins(await notices.result())
        return await self._told(ctx, caller, result, "")

    async def _answer(
        self,
        ctx: Any,
        caller: Principal,
        message_id: str,
        question: str,
        text: str,
        note: str,
        offset: int = 0,
    ) -> dict[str, Any]:
        said = {"message_id": message_id, "text": text, "question": question}
        try:
            if asking.wants_progress(ctx):
                await self._calls.call(caller, "chat.answer", {**said, "wait": False})
                beyond = {"message_id": message_id, "question": question, "offset": offset}
                result = await self._follow(ctx, caller, beyond)
            else:
                result = await self._calls.call(caller, "chat.answer", said)
            return await self._told(ctx, caller, result, note)
        except asyncio.CancelledError:
            self._stop(caller, message_id)
            raise

    async def _told(
        self, ctx: Any, caller: Principal, result: dict[str, Any], note: str
    ) -> dict[str, Any]:
        """The result of the tool; if the agent asks something, its answer first."""
        if result["status"] != "input_required":
            return self._shown(caller, result, note)
        message_id, question_id = result["message_id"], result["question"]
        question = plain(result["text"])
        if asking.can_ask_now(ctx):
            answer = await asking.ask_now(ctx, question)
            if answer is None:
                await self._calls.call(caller, "chat.cancel", {"message_id": message_id})
                raise Cancelled("the question was not answered", hint="the agent was stopped")
            return await self._answer(ctx, caller, message_id, question_id, answer, note)
        if asking.can_ask_later(ctx):
            state = State(message_id, question_id)
            return asking.ask_later(question, msgspec.json.encode(state).decode())
        self._open[caller.id, result["conversation"]] = (message_id, question_id)
        while len(self._open) > REMEMBERED:
            self._open.popitem(last=False)
        how = f"Answer it with agent_send in conversation {result['conversation']}."
        return self._shown(caller, result, f"{note} The agent asks a question. {how}".strip())

    # Running ----------------------------------------------------------------------------------

    async def _follow(self, ctx: Any, caller: Principal, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a run, each piece of it told as it comes."""
        notices = await self._calls.call(caller, "chat.stream", params)
        shown, count = PlainStream(), 0
        try:
            async for delta in notices:
                note = "" if delta.progress is UNSET else plain(delta.progress)
                if piece := shown.feed(delta.text) or note:
                    count += 1  # it must grow, and nobody knows how long the answer will be
                    await ctx.session.report_progress(count, None, piece)
            return msgspec.to_builtins(await notices.result())  # type: ignore[no-any-return]
        finally:
            notices.close()

    def _stop(self, caller: Principal, message_id: str) -> None:
        """Nobody waits any more."""
        if self.leaving:
            return
        task = asyncio.get_running_loop().create_task(self._stopped(caller, message_id))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    async def _stopped(self, caller: Principal, message_id: str) -> None:
        with contextlib.suppress(RpcError):  # it was never taken, or is over
            await self._calls.call(caller, "chat.cancel", {"message_id": message_id})

    # Showing ----------------------------------------------------------------------------------

    def _shown(self, caller: Principal, result: dict[str, Any], note: str) -> dict[str, Any]:
        text = plain(result["text"])
        told = {
            "conversation": result["conversation"],
            "message_id": result["message_id"],
            "status": result["status"],
            "text": text,
        }
        content: list[dict[str, Any]] = [{"type": "text", "text": text}]
        if note:
            told["note"] = note
            content.append({"type": "text", "text": note})
        if result["data"] is not None:
            told["data"] = result["data"]
            if not text:
                content[0]["text"] = words.encode(result["data"]).decode()
        if result["files"]:
            told["files"] = result["files"]
            content += self._pictures(caller, result["files"])
        return {"content": content, "structuredContent": told}

    def _pictures(self, caller: Principal, files: list[dict[str, Any]]) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = []
        for file in files:
            kind = file["mime"].partition("/")[0]
            small = file["size"] <= INLINE_BYTES and len(shown) < INLINE_FILES
            if not self._blobs.may_read(file["sha256"], caller):
                continue
            if small and kind in ("image", "audio"):
                data = b64encode(self._blobs.read(file["sha256"])).decode()
                shown.append({"type": kind, "data": data, "mimeType": file["mime"]})
            else:
                shown.append(
                    {
                        "type": "resource_link",
                        "uri": f"{self._facts.url()}/blobs/{file['sha256']}",
                        "name": words.line(file["name"], 200),
                        "mimeType": file["mime"],
                        "size": file["size"],
                    }
                )
        return shown


def _state(text: str | None) -> State:
    if text is None:
        return State()
    try:
        state = _read_state(text)
    except msgspec.DecodeError:
        raise InvalidParams("this requestState is not from agent_send") from None
    if state.message_id and not ID.fullmatch(state.message_id):
        raise InvalidParams("this requestState is not from agent_send")
    return state
