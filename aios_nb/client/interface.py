"""What a node is to a program that uses it, wherever it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from aios_nb.envelope import new_id
from aios_nb.errors import UsageError

RESULT_FIRST = {"chat.stream": False, "chat.watch": True, "agents.watch": True}
"""The methods that answer in pieces, and whether the result opens them."""
_CHOOSE_ID = frozenset({"chat.send", "chat.stream"})


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
    if method in _CHOOSE_ID and params.get("message_id") is None:
        return {**params, "message_id": new_id("m")}
    return params


def require_pieces(method: str) -> None:
    if method not in RESULT_FIRST:
        raise UsageError(f"{method} answers at once", hint="use call() for it")


def require_whole(method: str) -> None:
    if method in RESULT_FIRST:
        raise UsageError(f"{method} answers in pieces", hint="use notices() for it")
