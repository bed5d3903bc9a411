"""The methods of A2A: what each takes, and what it asks of the work behind an endpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from aios_nb.access import Principal
from aios_nb.errors import InvalidParams, MethodNotFound
from aios_nb.wire.a2a import refusals
from aios_nb.wire.a2a.following import Events
from aios_nb.wire.a2a.shapes import Anything, ListTasks, Send, Shape, State, TaskRef, read
from aios_nb.wire.a2a.work import Listed, Work

PAGE_DEFAULT = 50
_TOKEN_DIGITS = 19

Handler = Callable[[Work, Principal, str, Any], Awaitable[Any]]
STREAMS = frozenset({"SendStreamingMessage", "SubscribeToTask"})
ASKS = frozenset({"SendMessage", "SendStreamingMessage"})
"""These find out by themselves whether the caller may call the agent."""
_OLD = frozenset(
    {"message/send", "message/stream", "agent/getAuthenticatedExtendedCard"}
    | {f"tasks/{verb}" for verb in ("get", "list", "cancel", "resubscribe")}
)
"""What A2A 0.3 called its methods."""


async def call(work: Work, who: Principal, agent: str, method: str, params: Raw) -> Any:
    """The result; or, of a method in ``STREAMS``, its events."""
    found = _METHODS.get(method)
    if found is None:
        if method in _OLD:
            raise refusals.version("this agent speaks A2A 1.0, not 0.3")
        raise MethodNotFound("no such method in A2A 1.0", hint="SendMessage, GetTask and others")
    shape, handler = found
    return await handler(work, who, agent, read(shape, params))


async def _send(work: Work, who: Principal, agent: str, asked: Send) -> Any:
    _no_push(asked)
    told = await work.send(who, agent, asked)
    if told.task is not None and asked.history_length is not None:
        told.task = told.task.with_history(asked.history_length)
    return told


async def _stream(work: Work, who: Principal, agent: str, asked: Send) -> Events:
    _no_push(asked)
    events = await work.stream(who, agent, asked)
    return events if asked.history_length is None else _shorter(events, asked.history_length)


async def _shorter(events: Events, length: int) -> Events:
    async for event in events:
        if event.task is not None:
            event.task = event.task.with_history(length)
        yield event


def _no_push(asked: Send) -> None:
    if asked.configuration is not None and asked.configuration.task_push_notification_config:
        raise refusals.no_push()


async def _get(work: Work, who: Principal, agent: str, asked: TaskRef) -> Any:
    return (await work.task(who, agent, asked.id)).with_history(asked.history_length)


async def _cancel(work: Work, who: Principal, agent: str, asked: TaskRef) -> Any:
    return await work.cancel(who, agent, asked.id)


async def _subscribe(work: Work, who: Principal, agent: str, asked: TaskRef) -> Events:
    return await work.subscribe(who, agent, asked.id)


async def _list(work: Work, who: Principal, agent: str, asked: ListTasks) -> Any:
    """A page of the caller's own tasks, the last changed first."""
    before = _before(asked.page_token)
    after = _moment(asked.status_timestamp_after)
    found = [
        listed
        for listed in await work.tasks(who, agent, asked.context_id)
        if _fits(listed, asked.status, after)
    ]
    found.sort(key=lambda listed: listed.key, reverse=True)
    size = asked.page_size or PAGE_DEFAULT
    rest = [listed for listed in found if before is None or listed.key < before]
    page = rest[:size]
    tasks = [(await one.whole()).with_history(asked.history_length) for one in page]
    if not asked.include_artifacts:
        tasks = [msgspec.structs.replace(task, artifacts=None) for task in tasks]
    return {
        "tasks": tasks,
        "nextPageToken": str(page[-1].key) if len(rest) > len(page) else "",
        "pageSize": size,
        "totalSize": len(found),
    }


def _fits(listed: Listed, status: State | None, after: datetime | None) -> bool:
    if status not in (None, State.UNSPECIFIED, listed.state):
        return False
    return after is None or datetime.fromisoformat(listed.at) >= after


def _before(token: str | None) -> int | None:
    if not token:
        return None
    if not token.isascii() or not token.isdigit() or len(token) > _TOKEN_DIGITS:
        raise InvalidParams("not a page token of ours", hint="send the last nextPageToken")
    return int(token)


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidParams("statusTimestampAfter is not a time of RFC 3339") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


async def _no_push_at_all(_: Work, __: Principal, ___: str, ____: Anything) -> Any:
    raise refusals.no_push()


async def _no_other_card(_: Work, __: Principal, ___: str, ____: Anything) -> Any:
    raise refusals.unsupported("there is no other card than the one at its address")


_METHODS: Mapping[str, tuple[type[Shape], Handler]] = {
    "SendMessage": (Send, _send),
    "SendStreamingMessage": (Send, _stream),
    "GetTask": (TaskRef, _get),
    "ListTasks": (ListTasks, _list),
    "CancelTask": (TaskRef, _cancel),
    "SubscribeToTask": (TaskRef, _subscribe),
    "CreateTaskPushNotificationConfig": (Anything, _no_push_at_all),
    "GetTaskPushNotificationConfig": (Anything, _no_push_at_all),
    "ListTaskPushNotificationConfigs": (Anything, _no_push_at_all),
    "DeleteTaskPushNotificationConfig": (Anything, _no_push_at_all),
    "GetExtendedAgentCard": (Anything, _no_other_card),
}
