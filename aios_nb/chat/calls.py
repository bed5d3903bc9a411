"""A request and what is known of it: before it is taken, under way, and in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from aios_nb.access import Caller, Principal
from aios_nb.chat.log import Conversation
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


class PlannedRun(msgspec.Struct, frozen=True, array_like=True, gc=False):
    agent: str
    reply_id: str
    queued: bool
    """It had to wait its turn: it has begun only if a ``running`` row says so."""
    idempotent: bool


class CallNote(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is stored beside a request, to go on after a restart. Fields are added at the end."""

    runs: tuple[PlannedRun, ...]
    deadline_ms: int
    kind: Caller
    caller: str
    path: tuple[str, ...]
    max_hops: int

    def to_text(self) -> str:
        return _encode(self).decode()


read_note = msgspec.json.Decoder(CallNote).decode


class Call:
    """A request under way: its runs, and whether it is committed yet."""

    __slots__ = (
        "_waiters", "conversation", "cursor", "key", "message_id", "refusal", "runs", "seq",
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
        self._waiters: list[asyncio.Future[None]] = []

    def wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def committed(self) -> None:
        """Return when the request is in the log; raises why it will not be."""
        while self.seq == 0 and self.refusal is None:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        if self.refusal is not None:
            raise self.refusal

    @property
    def is_over(self) -> bool:
        return all(run.is_over for run in self.runs)

    def check_same(self, request: Request) -> None:
        """A repeat must say the same as what is under way."""
        task = self.runs[0].task if self.runs else None
        _check_same(
            self.message_id,
            request,
            [run.task.agent for run in self.runs],
            (task.text, task.data, task.files) if task else (request.text, None, ()),
        )
        if request.conversation is not None and request.conversation is not self.conversation:
            raise InvalidParams(f"message id {self.message_id} is in another conversation")


def check_same_as_logged(request: Request, event: Event, note: CallNote) -> None:
    """A repeat must say the same as what is in the log."""
    agents = [plan.agent for plan in note.runs]
    _check_same(event.message_id, request, agents, (event.text, event.data, event.files))


def _check_same(
    message_id: str,
    request: Request,
    agents: Sequence[str],
    body: tuple[str, Any, Sequence[FileRef]],
) -> None:
    text, data, files = body
    same = (
        request.text == text
        and [target.id for target in request.targets] == list(agents)
        and _encode(request.data) == _encode(data)
        and [file.sha256 for file in request.files] == [file.sha256 for file in files]
    )
    if not same:
        raise InvalidParams(
            f"message id {message_id} was used for another message",
            hint="use a new message_id for a new message",
        )


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
