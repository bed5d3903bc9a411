"""What a node is to a program that uses it, wherever it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

import msgspec

from aios_nb.config import KB, Limits
from aios_nb.envelope import new_id
from aios_nb.errors import InvalidParams, TooLarge, UsageError

RESULT_FIRST = {"chat.stream": False, "chat.watch": True, "agents.watch": True}
"""The methods that answer in pieces, and whether the result opens them."""
CHOOSE_ID = frozenset({"chat.send", "chat.stream", "chat.post"})
"""Whose ``message_id`` names what is asked here; elsewhere it names something said before."""
PARAMS_MAX_BYTES = Limits().body_bytes - 4 * KB
"""A node takes no larger request; the rest is for what stands around the params."""


class Flow(Protocol):
    """Notifications of one call, in order, and its result."""

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]: ...
    async def __anext__(self) -> dict[str, Any]: ...

    async def result(self) -> Any:
        """A watch has it at once; a stream when the last piece has come."""

    def close(self) -> None:
        """Stop listening. What runs, runs on."""


class SiteClient(Protocol):
    """A node, to a program that uses it."""

    @property
    def node_id(self) -> str: ...
    @property
    def name(self) -> str: ...

    async def call(self, method: str, /, **params: Any) -> Any:
        """The result of one method, as plain dicts and lists; an ``RpcError`` when it fails."""

    def notices(self, method: str, /, **params: Any) -> Flow:
        """The notifications of a stream or a watch; nothing is sent before the first ``await``."""

    async def close(self) -> None: ...


def prepared(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """With an id of our own, so that asking twice never runs an agent twice."""
    if method in CHOOSE_ID and params.get("message_id") is None:
        return {**params, "message_id": new_id("m")}
    return params


def encoded(method: str, params: dict[str, Any]) -> bytes:
    """The params as JSON. Raises ``InvalidParams`` or ``TooLarge`` for what no node takes."""
    try:
        data = msgspec.json.encode(params)
    except (TypeError, ValueError, RecursionError) as problem:
        said = " ".join(str(problem).split())
        raise InvalidParams(
            f"{method}: params are not JSON: {said}", hint="plain dicts, lists, texts and numbers"
        ) from problem
    if len(data) > PARAMS_MAX_BYTES:
        raise TooLarge(
            f"{method}: a call has {Limits().body_bytes >> 20} MB at most", hint=TooLarge.what_to_do
        )
    return data


def require_pieces(method: str) -> None:
    if method not in RESULT_FIRST:
        raise UsageError(f"{method} answers at once", hint="use call() for it")


def require_whole(method: str) -> None:
    if method in RESULT_FIRST:
        raise UsageError(f"{method} answers in pieces", hint="use notices() for it")
    if method == "chat.unwatch":
        raise UsageError(
            "a watch is ended by whoever opened it", hint="close() what notices() gave"
        )


def closed_early() -> UsageError:
    """For the result of a flow that was closed before it had one."""
    return UsageError("this was closed before its result came", hint="ask notices() for a new one")
