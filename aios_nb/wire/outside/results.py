"""What an MCP tool answered, as the outcome of a run: text, data and files.

All of it is data. Text is cleaned, links are named and not followed, pictures and resources become
files under names of ours.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import msgspec

from aios_nb.blobs import safe_name
from aios_nb.envelope import DATA_LIMIT_BYTES, FILES_PER_MESSAGE, TEXT_LIMIT_BYTES, FileRef, Outcome
from aios_nb.errors import AgentFailed, RpcError
from aios_nb.richtext import one_line, plain

if TYPE_CHECKING:
    import mcp_types

    from aios_nb.envelope import Task
    from aios_nb.ports import Blobs, Run

REASON_CHARS = 300
TOLD_CHARS = 20_000
"""Of a failed call's text, as data of the error."""
BLOCKS_MAX = 1000
_MIME = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}", re.ASCII)
_CUT = "\n… (the rest is left out)"


class _File(msgspec.Struct):
    content: bytes
    name: str
    mime: str


async def outcome_of(
    result: mcp_types.CallToolResult, tool: str, task: Task, run: Run, blobs: Blobs
) -> Outcome:
    """The answer. Raises ``AgentFailed`` with the tool's text as data if it says it failed."""
    texts: list[str] = []
    files: list[_File] = []
    for block in result.content[:BLOCKS_MAX]:
        _take(block, texts, files)
    # Cut first: cleaning takes time, and a byte more than fits is enough to see that it was cut.
    text = plain("\n\n".join(part for part in texts if part)[: TEXT_LIMIT_BYTES + 1])
    if result.is_error:
        reason = one_line(text, REASON_CHARS) or "it does not say why"
        raise AgentFailed(
            f"{tool} failed: {reason}",
            hint="these are the tool's own words",
            tool=tool,
            text=text[:TOLD_CHARS],
            ran="yes",
        )
    data = _data(_beyond(result.structured_content, texts))
    if len(files) > FILES_PER_MESSAGE:
        text += f"\n\n({len(files) - FILES_PER_MESSAGE} more files are left out)"
    kept = [await _keep(file, task, run, blobs) for file in files[:FILES_PER_MESSAGE]]
    if not text and data is not None and not kept:
        text = msgspec.json.encode(data).decode()
    return Outcome(_fitting(text), data, tuple(kept))


def _take(block: Any, texts: list[str], files: list[_File]) -> None:
    match block.type:
        case "text":
            texts.append(block.text)
        case "image" | "audio":
            mime = _mime(block.mime_type)
            files.append(_File(_bytes(block.data), _named(block.type, len(files), mime), mime))
        case "resource_link":
            name = one_line(block.title or block.name, 100)
            texts.append(f"{name}: {one_line(str(block.uri), 500)}")
        case "resource":
            found = block.resource
            mime = _mime(found.mime_type or "")
            text = getattr(found, "text", None)
            content = _bytes(found.blob) if text is None else text.encode(errors="replace")
            if text is not None and not found.mime_type:
                mime = "text/plain"
            name = safe_name(unquote(urlsplit(str(found.uri)).path.rstrip("/")))
            if name == "file":
                name = _named("resource", len(files), mime)
            files.append(_File(content, name, mime))


def _bytes(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise AgentFailed("the server sent a file in no readable form", ran="yes") from None


def _mime(said: str) -> str:
    return said.lower() if _MIME.fullmatch(said) else "application/octet-stream"


def _named(kind: str, count: int, mime: str) -> str:
    return f"{kind}-{count + 1}{mimetypes.guess_extension(mime) or '.bin'}"


def _beyond(found: Any, texts: list[str]) -> Any:
    """What it says more than the texts: many servers wrap a text once more as data."""
    return None if len(texts) == 1 and found == {"result": texts[0]} else found


def _data(found: Any) -> Any:
    if found is None:
        return None
    try:
        encoded = msgspec.json.encode(found)
        data = msgspec.json.decode(encoded)
    except (RecursionError, TypeError, ValueError, OverflowError, msgspec.MsgspecError):
        raise AgentFailed("the server's data is in no readable form", ran="yes") from None
    if len(encoded) > DATA_LIMIT_BYTES:
        raise AgentFailed(
            f"the server's data has more than {DATA_LIMIT_BYTES >> 20} MB",
            hint="ask it for less",
            ran="yes",
        )
    return data


async def _keep(file: _File, task: Task, run: Run, blobs: Blobs) -> FileRef:
    try:
        return await blobs.put(
            file.content, file.name, file.mime, task.agent, stranger=run.stranger
        )
    except RpcError as problem:
        raise AgentFailed(
            f"a file of the answer could not be kept: {problem.message}", ran="yes"
        ) from problem


def _fitting(text: str) -> str:
    encoded = text.encode(errors="replace")
    if len(encoded) <= TEXT_LIMIT_BYTES:
        return text
    room = TEXT_LIMIT_BYTES - len(_CUT.encode())
    return encoded[:room].decode(errors="ignore") + _CUT
