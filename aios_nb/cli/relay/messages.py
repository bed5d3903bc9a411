"""One line of a client: what it is, and which headers go with it over HTTP."""

from __future__ import annotations

import base64
import re
from typing import Any

import msgspec

BODY_MAX_BYTES = 4 << 20
"""What the node takes in one request."""
LINE_MAX_BYTES = 4 * BODY_MAX_BYTES
"""A longer line is not even looked at: its answer cannot say which request it is about."""
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
LOST = -32000
"""What the official SDK also says when a connection is closed."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose ``Mcp-Name`` header repeats a parameter."""
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_WRAPPED = re.compile(r"=\?base64\?.*\?=")
_BREAKS = bytes.maketrans(b"\r\n", b"  ")

Id = str | int | float


class Message(msgspec.Struct, frozen=True):
    """A message as it was written, and what decides where it goes."""

    body: bytes
    method: str | None
    id: Id | None
    params: dict[str, Any]
    version: Any = None
    """Of the later era: what this request says it is. The earlier one agrees once, at its start."""

    def headers(self) -> dict[str, str]:
        """What the later era says beside the body; nothing for the earlier one."""
        if self.version is None or self.method is None:
            return {}
        headers = {
            "MCP-Protocol-Version": _in_header(str(self.version)),
            "Mcp-Method": _in_header(self.method),
        }
        named = self.params.get(_NAMED_BY.get(self.method, ""))
        if isinstance(named, str):
            headers["Mcp-Name"] = _in_header(named)
        return headers


def read(line: bytes) -> Message | bytes:
    """The message, or the answer to a line that is none."""
    try:
        said = msgspec.json.decode(line) if len(line) <= LINE_MAX_BYTES else []
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return failure(None, PARSE_ERROR, "that line is not JSON")
    if not isinstance(said, dict):
        return failure(None, INVALID_REQUEST, "a line is one JSON-RPC message, of 4 MB at most")
    method, number, params = said.get("method"), said.get("id"), said.get("params")
    if isinstance(number, bool) or not isinstance(number, str | int | float | None):
        return failure(None, INVALID_REQUEST, "an id is a text or a number")
    if not isinstance(method, str | None) or (method is None and number is None):
        return failure(number, INVALID_REQUEST, "a message has a method or answers one")
    if len(line) > BODY_MAX_BYTES:
        return failure(number, INVALID_REQUEST, f"a message has {BODY_MAX_BYTES >> 20} MB at most")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    return Message(line, method, number, params, version)


def failure(number: Id | None, code: int, text: str, hint: str | None = None) -> bytes:
    """An error of ours, as a line."""
    error: dict[str, Any] = {"code": code, "message": text}
    if hint:
        error["data"] = {"hint": hint}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "error": error})


def one_line(body: bytes) -> bytes:
    """JSON without line breaks: between tokens they mean nothing, in texts there are none."""
    return body.translate(_BREAKS) if b"\n" in body or b"\r" in body else body


def answer_to(number: Id | None, body: bytes) -> bytes | None:
    """What an HTTP error has as JSON-RPC error, under the id of the request it is about."""
    said = fields(body)
    if not isinstance(said.get("error"), dict) or "code" not in said["error"]:
        return None
    return body if said.get("id") == number else msgspec.json.encode({**said, "id": number})


def fields(body: bytes) -> dict[str, Any]:
    """The fields of an object; none of anything else."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _in_header(value: str) -> str:
    """A value that no header could carry as it is, wrapped as the protocol says."""
    if _PLAIN.fullmatch(value) and not _WRAPPED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode(errors='replace')).decode()}?="
