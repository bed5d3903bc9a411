"""A request and what is known of it: before it is taken, under way, and in the log."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context
from typing import Any

import msgspec

from aios_nb.access import Caller, Principal
from aios_nb.bell import Bell
from aios_nb.chat.conversation import Conversation
from aios_nb.chat.runs import Run
from aios_nb.envelope import (
    DATA_LIMIT_BYTES,
    DEADLINE_DEFAULT_S,
    FILES_PER_MESSAGE,
    TEXT_LIMIT_BYTES,
    Event,
    FileRef,
    Sender,
)
from aios_nb.errors import InvalidParams, TooLarge
from aios_nb.ports import Target

MAX_HOPS = 8
"""Agents that may stand one behind another when a person asks."""

_encode = msgspec.json.Encoder().encode


class Request(msgspec.Struct, frozen=True, gc=False):
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
    patient: bool = False
    """Nobody waits for the answer: a host that is away is tried until the deadline."""
    context: tuple[Event, ...] | None = None
    """What was said before, from a home elsewhere."""


class PlannedRun(msgspec.Struct, frozen=True, array_like=True, gc=False):
    agent: str
    reply_id: str
    queued: bool
    """It had to wait its turn: it has begun only if a ``running`` row says so."""
    idempotent: bool
    remote: bool = False
    """Its host knows by the id what became of it: asking again is safe."""


class CallNote(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is stored beside a request, to go on after a restart. Fields are added at the end."""

    runs: tuple[PlannedRun, ...]
    deadline_ms: int
    kind: Caller
    caller: str
    path: tuple[str, ...]
    max_hops: int
    context: tuple[Event, ...] | None = None

    def to_text(self) -> str:
        return _encode(self).decode()


read_note = msgspec.json.Decoder(CallNote).decode


class Call:
    """A request under way: its runs, and whether it is committed yet."""

    __slots__ = (
        "_bell", "conversation", "cursor", "key", "message_id", "plans", "refusal", "runs", "seq",
        "variables",
    )  # fmt: skip

    def __init__(self, key: tuple[int, str], conversation: Conversation) -> None:
        self.key = key
        """The caller's number and the message id."""
        self.message_id = key[1]
        self.conversation = conversation
        self.runs: list[Run] = []
        self.seq = self.cursor = 0
        """Its place in the log, 0 before the commit."""
        self.refusal: Exception | None = None
        """Why it was not committed."""
        self.plans: tuple[PlannedRun, ...] = ()
        """All its runs, also those that were over before a restart."""
        self.variables = copy_context()
        """The context of whoever asked: what an agent prints belongs to the cell that asked."""
        self._bell: Bell | None = None

    def wake(self) -> None:
        if self._bell is not None:
            self._bell.ring()

    async def committed(self) -> None:
        """Return when the request is in the log; raises why it will not be."""
        while self.seq == 0 and self.refusal is None:
            if self._bell is None:
                self._bell = Bell()
            await self._bell.wait()
        if self.refusal is not None:
            raise self.refusal

    @property
    def is_over(self) -> bool:
        return all(run.is_over for run in self.runs)

    def check_same(self, request: Request) -> None:
        """A repeat must say the same as what is under way."""
        task = self.runs[0].task if self.runs else None
        body = (task.text, task.data, task.files) if task else (request.text, None, ())
        _check_same(self.message_id, request, self.plans, body)
        if request.conversation is not None and request.conversation is not self.conversation:
            raise InvalidParams(f"message id {self.message_id} is in another conversation")


def check_same_as_logged(request: Request, event: Event, note: CallNote) -> None:
    """A repeat must say the same as what is in the log."""
    _check_same(event.message_id, request, note.runs, (event.text, event.data, event.files))


def _check_same(
    message_id: str,
    request: Request,
    plans: Sequence[PlannedRun],
    body: tuple[str, Any, Sequence[FileRef]],
) -> None:
    text, data, files = body
    same = (
        request.text == text
        and [target.id for target in request.targets] == [plan.agent for plan in plans]
        and _encode(request.data) == _encode(data)
        and [file.sha256 for file in request.files] == [file.sha256 for file in files]
    )
    if not same:
        raise InvalidParams(
            f"message id {message_id} was used for another message",
            hint="use a new message_id for a new message",
        )


def check_said(found: Call | Sequence[Any], agent: str, text: str) -> None:
    """For a repeat whose agent is gone: it must name that agent and say the same."""
    if isinstance(found, Call):
        same = found.runs[0].task.text == text if found.runs else False
        agents = [plan.agent for plan in found.plans]
    else:
        same = all(end.asked == text for end in found)
        agents = [end.agent for end in found]
    if not same or not any(_names(agent, one) for one in agents):
        raise InvalidParams(
            "this message id was used for another message",
            hint="use a new message_id for a new message",
        )


def _names(ref: str, agent: str) -> bool:
    name, _, node = ref.partition("@")
    return agent.partition("@")[0] == name and agent.partition("@")[2].startswith(node)


def check_size(text: str, data: Any = None, files: Sequence[FileRef] = ()) -> None:
    if len(text) > TEXT_LIMIT_BYTES or (
        not text.isascii() and len(text.encode(errors="replace")) > TEXT_LIMIT_BYTES
    ):
        raise TooLarge("a text may have 1 MB at most", hint="send it as a file")
    if data is not None and len(_encode(data)) > DATA_LIMIT_BYTES:
        raise TooLarge("data may have 1 MB at most", hint="send it as a file")
    if len(files) > FILES_PER_MESSAGE:
        raise TooLarge(f"a message may carry {FILES_PER_MESSAGE} files at most")


def check_route(path: Sequence[str], agent: str, max_hops: int) -> None:
    """Refuse a circle, and a chain longer than was allowed."""
    if agent in path:
        raise InvalidParams(
            f"{agent} is already at work on this", hint="agents may not call in a circle"
        )
    if sum("@" in step for step in path) >= max_hops:
        raise InvalidParams(f"the limit of {max_hops} agents one behind another is reached")
