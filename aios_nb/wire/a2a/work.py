"""What A2A asks of an agent, done by ours: asked through the node's methods, as the caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from aios_nb.access import Caller, Principal
from aios_nb.envelope import ID, now_iso
from aios_nb.errors import InvalidParams, RpcError
from aios_nb.ports import Notices
from aios_nb.wire.a2a import refusals
from aios_nb.wire.a2a.following import Events, follow, once
from aios_nb.wire.a2a.parts import Parts, Said, told
from aios_nb.wire.a2a.shapes import (
    Artifact,
    Message,
    Part,
    Send,
    State,
    Status,
    Task,
    Told,
)
from aios_nb.wire.a2a.tasks import (
    STATES,
    Place,
    View,
    agent_message,
    digest_of,
    message_id_for,
    over,
    place_of,
    views,
)
from aios_nb.wire.dispatch import Dispatcher

DEADLINE_S = 3600.0
"""A2A has none; the agent's own ``timeout_s`` holds as well."""
PAGE_ROWS = 1000
CONVERSATIONS_LISTED = 1000
"""Of a caller, the last used; a task in an older one is found by its id or its context."""
CONVERSATIONS_AT_ONCE = 200
ANSWERS_KNOWN = 1000


class Listed(msgspec.Struct):
    """A task in a listing: in which order, and how to get the whole of it."""

    key: int
    """Larger ones changed later."""
    state: State
    at: str
    whole: Callable[[], Awaitable[Task]]


class Work(Protocol):
    """What is behind an endpoint. Tasks of others are not found."""

    async def send(self, who: Principal, agent: str, asked: Send) -> Told: ...
    async def stream(self, who: Principal, agent: str, asked: Send) -> Events: ...
    async def task(self, who: Principal, agent: str, task_id: str) -> Task: ...
    async def tasks(self, who: Principal, agent: str, context: str | None) -> list[Listed]: ...
    async def cancel(self, who: Principal, agent: str, task_id: str) -> Task: ...
    async def subscribe(self, who: Principal, agent: str, task_id: str) -> Events: ...


class AgentWork:
    """The agents of this node, and those it can reach."""

    def __init__(self, calls: Dispatcher, parts: Parts, url: Callable[[], str]) -> None:
        self._calls = calls
        self._parts = parts
        self._url = url
        self._answered: dict[tuple[str, str, str], str] = {}
        """Which question a message of a client has answered: it may send the same again."""

    # Sending ---------------------------------------------------------------------------------

    async def send(self, who: Principal, agent: str, asked: Send) -> Told:
        if asked.message.task_id:
            view = await self._answer(who, agent, asked, wait=asked.waits)
            return Told(task=await self._whole(view, who))
        said = await self._said(who, agent, asked.message)
        try:
            result = await self._ask(who, agent, asked.message, said, wait=asked.waits)
        except RpcError as error:
            return Told(task=_ended(error, asked.message, said, self._url()))
        return Told(task=await self._settled(who, asked.message, said, result))

    async def stream(self, who: Principal, agent: str, asked: Send) -> Events:
        if asked.message.task_id:
            view = await self._answer(who, agent, asked, wait=False)
            task = await self._whole(view, who)
            return once(task) if view.state.is_final else self._follow(who, task)
        said = await self._said(who, agent, asked.message)
        try:
            result = await self._ask(who, agent, asked.message, said, wait=False)
        except RpcError as error:
            return once(_ended(error, asked.message, said, self._url()))
        task = await self._settled(who, asked.message, said, result)
        return once(task) if task.status.state.is_final else self._follow(who, task)

    async def _said(self, who: Principal, agent: str, message: Message) -> Said:
        if any(part.raw is not None for part in message.parts):
            # Nothing is stored for an agent that is not there, or not for this caller.
            await self._calls.call(who, "agents.card", {"agent": agent})
        return await self._parts.read(message.parts, who)

    async def _ask(
        self, who: Principal, agent: str, message: Message, said: Said, *, wait: bool
    ) -> Mapping[str, Any]:
        params: dict[str, Any] = {
            "agent": agent,
            "text": said.text,
            "wait": wait,
            "deadline_s": DEADLINE_S,
        }
        if (message_id := message_id_for(who, agent, message.message_id)) is not None:
            params["message_id"] = message_id
        if message.context_id:
            if not ID.fullmatch(message.context_id):
                raise InvalidParams("no such context", hint="leave it out to open a new one")
            params["conversation"] = message.context_id
        if said.data is not None:
            params["data"] = said.data
        if said.files:
            params["files"] = said.files
        result: Mapping[str, Any] = await self._calls.call(who, "chat.send", params)
        return result

    async def _settled(
        self, who: Principal, message: Message, said: Said, result: Mapping[str, Any]
    ) -> Task:
        """The task of a call that was taken, without looking into the log."""
        place = Place(result["conversation"], result["message_id"])
        state = STATES[result["status"]]
        status, artifacts = Status(state, timestamp=now_iso()), None
        if state is State.INPUT_REQUIRED:
            status.message = agent_message(place, result["question"], result["text"])
        elif state is State.COMPLETED:
            parts = await self._answered_with(result, who)
            artifacts = [Artifact(result["reply_id"], parts)] if parts else None
        return _task(place, status, message, said, self._url(), artifacts)

    async def _answered_with(self, result: Mapping[str, Any], who: Principal) -> list[Part]:
        text, data, files = result["text"], result["data"], result["files"]
        if not files:
            return told(text, data)
        return await self._parts.answer(text, data, files, who, self._url())

    async def _answer(self, who: Principal, agent: str, asked: Send, *, wait: bool) -> View:
        """Give a task the answer to its question; the task as it is then."""
        message = asked.message
        place = place_of(message.task_id or "")
        view = await self._view(who, agent, place)
        if message.context_id and message.context_id != place.conversation:
            raise InvalidParams("the task is in another context")
        key = (who.id, place.task_id, digest_of(message.message_id))
        question = self._answered.get(key) or view.question_id
        if not question:
            raise refusals.unsupported(
                "the task is over" if view.state.is_final else "the task waits for no message",
                state=view.state,
            )
        said = await self._parts.read(message.parts, who)
        if said.files:
            raise refusals.content_type("an answer is text or data")
        text = said.text or msgspec.json.encode(said.data).decode()
        params = {"message_id": place.message_id, "text": text, "question": question, "wait": wait}
        if key in self._answered and view.state.is_final:
            return view
        try:
            await self._calls.call(who, "chat.answer", params)
        except RpcError as error:
            if over(error) is None:
                raise
        self._answered[key] = question
        if len(self._answered) > ANSWERS_KNOWN:
            del self._answered[next(iter(self._answered))]
        return await self._view(who, agent, place)

    # Following -------------------------------------------------------------------------------

    async def subscribe(self, who: Principal, agent: str, task_id: str) -> Events:
        view = await self._view(who, agent, place_of(task_id))
        if view.state.is_final:
            raise refusals.unsupported("the task is over", state=view.state)
        task = await self._whole(view, who)
        return self._follow(who, task, view.question_id, to_the_end=True)

    def _follow(
        self, who: Principal, task: Task, question: str = "", *, to_the_end: bool = False
    ) -> Events:
        def stream(offset: int, beyond: str) -> Awaitable[Notices]:
            params = {"message_id": place_of(task.id).message_id, "offset": offset}
            asked = {"question": beyond} if beyond else {}
            return self._calls.call(who, "chat.stream", {**params, **asked})

        def rest(result: Mapping[str, Any]) -> Awaitable[list[Part]]:
            return self._answered_with({**result, "text": ""}, who)

        return follow(task, stream, rest, question, to_the_end=to_the_end)

    # Looking ---------------------------------------------------------------------------------

    async def task(self, who: Principal, agent: str, task_id: str) -> Task:
        return await self._whole(await self._view(who, agent, place_of(task_id)), who)

    async def cancel(self, who: Principal, agent: str, task_id: str) -> Task:
        place = place_of(task_id)
        view = await self._view(who, agent, place)
        if view.state.is_final:
            raise refusals.not_cancelable(view.state)
        await self._calls.call(who, "chat.cancel", {"message_id": place.message_id})
        view = await self._view(who, agent, place)
        if view.state is not State.CANCELED:  # it was faster
            raise refusals.not_cancelable(view.state)
        return await self._whole(view, who)

    async def tasks(self, who: Principal, agent: str, context: str | None) -> list[Listed]:
        found: list[View] = []
        if context:
            found = await self._views(who, agent, context) if ID.fullmatch(context) else []
        elif who.kind is not Caller.ANYONE:  # who knows theirs by their ids
            async for conversation in self._conversations(who):
                found += await self._views(who, agent, conversation)
                await asyncio.sleep(0)  # there may be many, and others wait
        return [self._listed(view, who) for view in found]

    def _listed(self, view: View, who: Principal) -> Listed:
        return Listed(view.cursor, view.state, view.at, lambda: self._whole(view, who))

    async def _conversations(self, who: Principal) -> AsyncIterator[str]:
        before: str | None = None
        for _ in range(CONVERSATIONS_LISTED // CONVERSATIONS_AT_ONCE):
            params = {"limit": CONVERSATIONS_AT_ONCE} | ({"before": before} if before else {})
            rows = (await self._calls.call(who, "chat.list", params))["conversations"]
            for row in rows:
                before = row["cursor"]
                if row["parent"] is None:  # else agents talk among themselves
                    yield row["conversation"]
            if len(rows) < CONVERSATIONS_AT_ONCE:
                return

    async def _views(self, who: Principal, agent: str, conversation: str) -> list[View]:
        """What this caller asked of the agent in a conversation; nothing in one of others."""
        rows: list[Mapping[str, Any]] = []
        agents: list[str] = []
        more = True
        while more:
            params = {
                "conversation": conversation,
                "after": rows[-1]["seq"] if rows else 0,
                "limit": PAGE_ROWS,
            }
            try:
                page = await self._calls.call(who, "chat.history", params)
            except InvalidParams:
                return []
            agents = page["agents"]
            rows += page["messages"]
            more = page["more"] and bool(page["messages"])
        return views(rows, conversation, agents, agent, who)

    async def _view(self, who: Principal, agent: str, place: Place) -> View:
        for view in await self._views(who, agent, place.conversation):
            if view.place.message_id == place.message_id:
                return view
        raise refusals.task_not_found()

    async def _whole(self, view: View, who: Principal) -> Task:
        parts = [] if view.reply is None else await self._answered_with(view.reply, who)
        return view.task(self._url(), parts)


def _task(
    place: Place,
    status: Status,
    message: Message,
    said: Said,
    base: str,
    artifacts: list[Artifact] | None = None,
) -> Task:
    task_id, context = place.task_id, place.conversation
    parts = told(said.text, said.data, said.files, base) or [Part(text="")]
    echo = Message(message.message_id, "ROLE_USER", parts, context, task_id)
    return Task(task_id, context, status, artifacts, [echo])


def _ended(error: RpcError, message: Message, said: Said, base: str) -> Task:
    """The task of a call that came to no good end; raises the error of one that was not taken."""
    status = over(error)
    if status is None:
        raise error
    place = Place(str(error.data["conversation"]), str(error.data["message_id"]))
    return _task(place, status, message, said, base)
