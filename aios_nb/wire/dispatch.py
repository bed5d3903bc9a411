"""Calls methods: finds the row, checks the caller, validates the params, runs, answers.

A handler that returns a plain value is answered without a task or an await: that is the fast road,
and most methods that only look something up take it.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import re
import secrets
from collections.abc import Awaitable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from aios_nb.access import Caller, Principal
from aios_nb.config import Limits
from aios_nb.errors import (
    Cancelled,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    NotAllowed,
    RpcError,
    UsageError,
)
from aios_nb.wire import jsonrpc
from aios_nb.wire.jsonrpc import ABSENT, Call
from aios_nb.wire.methods import METHODS, OPEN, Answers, Handler, Method

if TYPE_CHECKING:
    from aios_nb.ports import Notices

log = logging.getLogger(__name__)

COMPLAINT_CHARS = 160
"""A complaint may quote a name the caller sent; no more of it than this."""

_array = msgspec.json.Decoder(list[Raw]).decode
_object = msgspec.json.Decoder(dict[str, Raw]).decode
_WHERE = re.compile(r"^(?P<what>.*) - at `\$\.?(?P<where>.*)`$", re.DOTALL)


class Bound:
    """A row of the table with the handler that answers it."""

    __slots__ = (
        "_decode", "_empty", "_fields", "_optional", "_other",
        "callers", "handler", "kind", "name", "usage",
    )  # fmt: skip

    def __init__(self, row: Method, handler: Handler | None) -> None:
        self.name = row.name
        self.kind = row.kind
        self.callers = row.callers
        self.handler = handler
        self._decode = msgspec.json.Decoder(row.params).decode
        self._empty = b"[]"
        self._fields: tuple[bytes, ...] | None = None
        self._other: tuple[bytes, ...] = ()
        self._optional: frozenset[str] = frozenset()
        self.usage = f"{row.name} takes a list"
        if isinstance(row.params, type) and issubclass(row.params, msgspec.Struct):
            self._empty = b"{}"
            fields = msgspec.structs.fields(row.params)
            self._fields = tuple(jsonrpc.encode(field.encode_name) for field in fields)
            self._other = tuple(map(jsonrpc.encode, getattr(row.params, "other_order", ())))
            self._optional = frozenset(f.encode_name for f in fields if not f.required)
            shown = ", ".join(f.encode_name if f.required else f.encode_name + "?" for f in fields)
            self.usage = f"{row.name}({shown})"

    def open_to(self, caller: Caller) -> Bound:
        """The same for this kind of caller too."""
        opened = copy.copy(self)
        opened.callers = self.callers | {caller}
        return opened

    def params(self, raw: Raw) -> Any:
        """The validated params. Raises ``InvalidParams``."""
        try:
            return self._decode(self._empty if raw is ABSENT else raw)
        except (msgspec.ValidationError, RecursionError) as problem:
            return self._odd(bytes(raw), problem)

    def _odd(self, raw: bytes, problem: Exception) -> Any:
        """By position: the same object, named in the order of the fields. Or with nulls in it."""
        start = raw[:1]
        if start not in (b"", b"{", b"["):
            message = f"{self.name}: params must be an object or an array"
            raise InvalidParams(message, hint=self.usage)
        if self._fields is None or not start:
            raise self._complaint(problem)
        if start == b"{":
            return self._without_nulls(raw, problem)
        values = _array(raw)
        if len(values) > len(self._fields):
            most = len(self._fields)
            message = f"{self.name}: {len(values)} params given, at most {most} taken"
            raise InvalidParams(message, hint=self.usage)
        raw = _named(self._fields, values)
        try:
            return self._decode(raw)
        except (msgspec.ValidationError, RecursionError) as again:
            if len(values) == len(self._other):
                with contextlib.suppress(msgspec.ValidationError, RecursionError):
                    return self._decode(_named(self._other, values))
            return self._without_nulls(raw, again)

    def _without_nulls(self, raw: bytes, problem: Exception) -> Any:
        """A null where a param may be left out means that it is left out."""
        try:
            members = _object(raw)
        except RecursionError as deep:
            raise self._complaint(deep) from None
        kept = {
            name: value
            for name, value in members.items()
            if name not in self._optional or bytes(value) != b"null"
        }
        if len(kept) == len(members):
            raise self._complaint(problem) from None
        try:
            return self._decode(jsonrpc.encode(kept))
        except (msgspec.ValidationError, RecursionError) as again:
            raise self._complaint(again) from None

    def _complaint(self, problem: Exception) -> InvalidParams:
        if isinstance(problem, RecursionError):
            return InvalidParams(f"{self.name}: params are nested too deeply")
        text = str(problem)
        if found := _WHERE.match(text):
            text = f"{found['where']}: {found['what']}" if found["where"] else found["what"]
        text = text.replace("Object missing required field", "missing")
        text = text.replace("Object contains unknown field", "unknown name")
        text = text.replace("Expected", "expected").replace("`", "")
        return InvalidParams(f"{self.name}: {_one_line(text)}", hint=self.usage)


class Dispatcher:
    """The methods of a node, ready to be called by bytes (``answer``) or by name (``call``)."""

    def __init__(
        self,
        rooms: Mapping[str, object],
        *,
        extra: Iterable[Method] = (),
        limits: Limits | None = None,
    ) -> None:
        """``rooms`` maps the part before the dot to the object whose method bears the rest.

        Raises ``UsageError`` when a row of the table finds no handler.
        """
        self._batch_calls = (limits or Limits()).batch_calls
        self._bound: dict[str, Bound] = {}
        for row in (*METHODS, *extra):
            if row.name in self._bound:
                raise UsageError(f"the method {row.name} is bound twice")
            self._bound[row.name] = Bound(row, _handler(row, rooms))

    def for_anyone(self) -> Dispatcher:
        """The same methods as the doors of other protocols call them: some are open to anyone."""
        opened = copy.copy(self)
        opened._bound = {  # noqa: SLF001 - of our own kind
            name: bound.open_to(Caller.ANYONE) if name in OPEN else bound
            for name, bound in self._bound.items()
        }
        return opened

    def find(self, principal: Principal, name: str) -> Bound:
        """The method of that name. Raises ``MethodNotFound`` or ``NotAllowed``."""
        bound = self._bound.get(name)
        if bound is None:
            raise MethodNotFound(f"no method {_one_line(name)!r}")
        if principal.kind not in bound.callers:
            raise NotAllowed(f"{name} is not open to this caller ({principal.kind})")
        return bound

    def start(self, principal: Principal, call: Call) -> tuple[Bound, Any]:
        """Run a call up to its first await. Raises what the method raises."""
        bound = self.find(principal, call.method)
        params = bound.params(call.params)
        if bound.handler is None:
            raise MethodNotFound(f"{bound.name} is only there on /ws")
        return bound, bound.handler(principal, params)

    async def call(
        self,
        principal: Principal,
        method: str,
        params: Mapping[str, Any] | list[Any] | None = None,
    ) -> Any:
        """The result as builtins, or the method's ``Notices``. Raises ``RpcError``.

        For a client in this process: what is sent goes through JSON, so that it meets the same
        checks as over a socket and nothing is shared by reference.
        """
        try:
            raw = ABSENT if params is None else Raw(jsonrpc.encode(params))
        except (TypeError, ValueError, RecursionError) as problem:
            raise InvalidParams(f"{method}: params are not JSON: {_one_line(problem)}") from None
        try:
            bound, value = self.start(principal, Call("2.0", method, raw, jsonrpc.NULL_ID))
            if hasattr(value, "__await__"):
                value = await value
            if bound.kind is Answers.NOTICES:
                return value
            if hasattr(value, "result_first"):
                value = await _result_only(bound, value)
            return msgspec.to_builtins(value)
        except Exception as problem:
            raise self.explain(method, problem) from problem

    def answer(self, principal: Principal, body: bytes) -> bytes | Awaitable[bytes]:
        """The response to a request body; empty when nothing is to be said."""
        got = jsonrpc.read(body, self._batch_calls)
        if type(got) is Call:
            return self.answer_call(principal, got)
        if type(got) is bytes:
            return got
        return self._answer_batch(principal, got.members)  # type: ignore[union-attr]

    def read(self, body: bytes) -> Call | jsonrpc.Batch | bytes:
        """What a request body asks, or the refusal to send."""
        return jsonrpc.read(body, self._batch_calls)

    def answer_call(self, principal: Principal, call: Call) -> bytes | Awaitable[bytes]:
        """The response to one call, at once where the method allows it."""
        try:
            bound, value = self.start(principal, call)
            if hasattr(value, "__await__") or bound.kind is Answers.NOTICES:
                return self._answer_later(bound, value, call)
            return b"" if call.id is ABSENT else jsonrpc.result(call.id, value)
        except Exception as problem:  # noqa: BLE001 - every failure is answered
            return self.failure(call, problem)

    async def _answer_later(self, bound: Bound, value: Any, call: Call) -> bytes:
        try:
            if hasattr(value, "__await__"):
                value = await value
            if bound.kind is Answers.NOTICES or hasattr(value, "result_first"):
                value = await _result_only(bound, value)
            return b"" if call.id is ABSENT else jsonrpc.result(call.id, value)
        except asyncio.CancelledError:
            if _being_cancelled():
                raise
            return self.failure(call, Cancelled(f"{bound.name} was cancelled"))
        except Exception as problem:  # noqa: BLE001 - every failure is answered
            return self.failure(call, problem)

    def answer_batch(self, principal: Principal, batch: jsonrpc.Batch) -> Awaitable[bytes]:
        """The response to a batch."""
        return self._answer_batch(principal, batch.members)

    async def _answer_batch(self, principal: Principal, members: list[Call | bytes]) -> bytes:
        answers = [
            member if isinstance(member, bytes) else self.answer_call(principal, member)
            for member in members
        ]
        later = [answer for answer in answers if not isinstance(answer, bytes)]
        waited = iter(await asyncio.gather(*later)) if later else iter(())
        ready = [answer if isinstance(answer, bytes) else next(waited) for answer in answers]
        return jsonrpc.array([answer for answer in ready if answer])

    def failure(self, call: Call, problem: Exception) -> bytes:
        """The error response for what a method raised; nothing for a notification."""
        told = self.explain(call.method, problem)
        if call.id is ABSENT:
            return b""
        try:
            return jsonrpc.error(call.id, told)
        except (TypeError, ValueError, RecursionError) as worse:
            return jsonrpc.error(call.id, self.explain(call.method, worse))

    def explain(self, method: str, problem: Exception) -> RpcError:
        """The error a caller may see. What was not meant to happen goes to the log instead."""
        if isinstance(problem, RpcError):
            return problem
        if isinstance(problem, UsageError):
            return InvalidParams(problem.message, hint=problem.hint)
        ref = secrets.token_hex(4)
        log.error("internal error %s in %s", ref, _one_line(method), exc_info=problem)
        return InternalError("internal error", id=ref, hint=f"the node's log has it under {ref}")


async def _result_only(bound: Bound, notices: Notices) -> Any:
    """For a caller that takes no notifications: a stream's end; a watch has none."""
    try:
        if notices.result_first:
            raise InvalidRequest(
                f"{bound.name} needs a stream",
                hint="send Accept: text/event-stream, or use /ws; alone, not in a batch",
            )
        async for _ in notices:
            pass
        return await notices.result()
    finally:
        notices.close()


def _named(names: Iterable[bytes], values: Iterable[Raw]) -> bytes:
    """The object that has these values under these names, as far as both go."""
    pairs = zip(names, values, strict=False)
    return b"{%b}" % b",".join(b"%b:%b" % (name, bytes(value)) for name, value in pairs)


def _handler(row: Method, rooms: Mapping[str, object]) -> Handler | None:
    if row.handler is not None or row.kind is Answers.SOCKET:
        return row.handler
    room, _, verb = row.name.partition(".")
    found: Handler | None = getattr(rooms.get(room), verb, None)
    if found is None:
        raise UsageError(f"nothing answers {row.name}", hint=f"the room {room!r} has no {verb!r}")
    return found


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _one_line(text: object) -> str:
    line = "".join(char if char.isprintable() else " " for char in str(text)[:COMPLAINT_CHARS])
    return " ".join(line.split())
