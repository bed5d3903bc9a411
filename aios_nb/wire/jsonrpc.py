"""JSON-RPC 2.0 to the letter: bytes in, calls out, bytes back. No I/O.

The common request is one decode into ``Call``, with ``params`` and ``id`` left as they came. All
that is odd (batches, wrong types, missing members) takes the slow road in ``_odd``.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from aios_nb.errors import InvalidRequest, ParseError, RpcError

ABSENT = Raw()
"""Stands for a member that was not sent; compare by identity."""
NULL_ID = Raw(b"null")

_ID_STARTS = frozenset(b'"-0123456789n')
"""A string, a number or null. Booleans, arrays and objects start otherwise."""


class Call(msgspec.Struct, gc=False):
    """One request, or a notification when ``id`` is ``ABSENT``. Both raw members are valid JSON."""

    jsonrpc: Literal["2.0"]
    method: str
    params: Raw = ABSENT
    id: Raw = ABSENT

    @property
    def is_notification(self) -> bool:
        return self.id is ABSENT


class Batch(msgspec.Struct):
    """The members of an array; a member that is no request is already its own answer."""

    members: list[Call | bytes]


_call = msgspec.json.Decoder(Call).decode
_raw = msgspec.json.Decoder(Raw).decode
_object = msgspec.json.Decoder(dict[str, Raw]).decode
_array = msgspec.json.Decoder(list[Raw]).decode
_any = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode

# What msgspec raises for bytes that are not JSON; nesting too deep for the stack counts as that.
NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read(body: bytes, batch_calls: int) -> Call | Batch | bytes:
    """The call or calls in a body; or, when there are none, the answer to send."""
    try:
        if not body.isascii():
            body.decode()  # raw members are not looked into: bad UTF-8 must be found here
        call = _call(body)
    except msgspec.ValidationError:
        return _odd(body, batch_calls)
    except NOT_JSON:
        return _not_json()
    if call.id is not ABSENT and bytes(call.id)[0] not in _ID_STARTS:
        return error(NULL_ID, InvalidRequest("id must be a string, a number or null"))
    return call


def result(id_: Raw, value: Any) -> bytes:
    """The response that carries a result."""
    return b'{"jsonrpc":"2.0","result":%b,"id":%b}' % (encode(value), bytes(id_))


def error(id_: Raw, problem: RpcError) -> bytes:
    """The response that carries an error."""
    return b'{"jsonrpc":"2.0","error":%b,"id":%b}' % (encode(problem.to_wire()), bytes(id_))


def notification_head(method: str) -> bytes:
    """What goes before the params of a notification; ``}`` goes after them."""
    return b'{"jsonrpc":"2.0","method":%b,"params":' % encode(method)


def array(answers: list[bytes]) -> bytes:
    """The answer to a batch; nothing at all when it held only notifications."""
    return b"[%b]" % b",".join(answers) if answers else b""


def _not_json() -> bytes:
    return error(NULL_ID, ParseError("this is not JSON in UTF-8"))


def _odd(body: bytes | Raw, batch_calls: int) -> Call | Batch | bytes:
    try:
        start = bytes(_raw(body))[:1]
        if start == b"{":
            return _odd_member(body)
        if start != b"[":
            return error(NULL_ID, InvalidRequest("a request is an object, or an array of them"))
        members = _array(body)
    except NOT_JSON:
        return _not_json()
    if not members:
        return error(NULL_ID, InvalidRequest("the batch is empty"))
    if len(members) > batch_calls:
        return error(
            NULL_ID,
            InvalidRequest(f"a batch holds at most {batch_calls} calls", hint="send several"),
        )
    return Batch([_member(member) for member in members])


def _member(member: Raw) -> Call | bytes:
    try:
        call = _call(member)
    except (msgspec.ValidationError, *NOT_JSON):
        if bytes(member)[:1] == b"{":
            return _odd_member(member)
        return error(NULL_ID, InvalidRequest("a request is an object"))
    if call.id is not ABSENT and bytes(call.id)[0] not in _ID_STARTS:
        return error(NULL_ID, InvalidRequest("id must be a string, a number or null"))
    return call


def _odd_member(member: bytes | Raw) -> bytes:
    """The refusal of an object that is no request, under its own id when that is a valid one."""
    try:
        fields = _object(member)
    except NOT_JSON:
        return _not_json()
    id_ = fields.get("id", NULL_ID)
    if bytes(id_)[0] not in _ID_STARTS:
        return error(NULL_ID, InvalidRequest("id must be a string, a number or null"))
    if _value(fields.get("jsonrpc")) != "2.0":
        return error(id_, InvalidRequest('jsonrpc must be "2.0"'))
    return error(id_, InvalidRequest("method must be a string"))


def _value(raw: Raw | None) -> Any:
    if raw is None:
        return None
    try:
        return _any(raw)
    except NOT_JSON:
        return None
