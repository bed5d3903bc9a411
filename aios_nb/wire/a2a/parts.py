"""The parts of A2A messages and artifacts, and what they are with us: text, data and files."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from aios_nb.access import Principal
from aios_nb.config import MB
from aios_nb.envelope import FILES_PER_MESSAGE
from aios_nb.errors import InvalidParams, RpcError, TooLarge
from aios_nb.ports import Blobs
from aios_nb.wire.a2a import refusals
from aios_nb.wire.a2a.shapes import Part

INPUT_MODES = ("text/plain", "application/json", "*/*")
OUTPUT_MODES = ("text/plain", "application/json", "application/octet-stream")
INLINE_BYTES = 8 * MB
"""Files of an answer that go into it; larger ones are fetched from ``/blobs/``, with a token."""
_THREAD_BYTES = 256 * 1024
"""Larger files are read off the loop."""
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+*-]{1,80}(\s*;.{0,200})?", re.ASCII)
_URLSAFE = str.maketrans("-_", "+/")


class Said(msgspec.Struct, frozen=True):
    """A message as our agents get it."""

    text: str
    data: Any = None
    files: Sequence[Any] = ()


class Parts:
    """Reads and writes parts; the bytes of files are in the node's store."""

    def __init__(self, blobs: Blobs, file_bytes: int) -> None:
        self._blobs = blobs
        self._file_bytes = file_bytes

    async def read(self, parts: Sequence[Part], who: Principal) -> Said:
        """What a message says; its files are stored as this caller's."""
        texts: list[str] = []
        values: list[Any] = []
        contents: list[tuple[Part, bytes]] = []
        for part in parts:
            check(part)
            if part.text is not None:
                texts.append(part.text)
            elif part.raw is not None:
                contents.append((part, self._bytes(part.raw)))
            elif part.url is not None:
                raise refusals.content_type("files are not fetched: send them in the message")
            else:
                values.append(part.data)
        if len(contents) > FILES_PER_MESSAGE:
            raise TooLarge(f"a message may carry {FILES_PER_MESSAGE} files at most")
        files = [await self._kept(part, content, who) for part, content in contents]
        data = values[0] if len(values) == 1 else values or None
        return Said("\n".join(texts), data, files)

    def _bytes(self, raw: str) -> bytes:
        if len(raw) > self._file_bytes * 4 // 3 + 4:
            raise TooLarge(f"a file may have {self._file_bytes // MB} MB at most")
        try:
            padded = raw.translate(_URLSAFE).rstrip("=")
            return base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True)
        except (binascii.Error, ValueError):
            raise InvalidParams("raw must be base64") from None

    async def _kept(self, part: Part, content: bytes, who: Principal) -> Any:
        mime = (part.media_type or "").partition(";")[0].strip()
        name = part.filename or "file"
        kept = await self._blobs.put(content, name, mime, who.id, stranger=who.is_stranger)
        return msgspec.to_builtins(kept)

    async def answer(
        self, text: str, data: Any, files: Sequence[Mapping[str, Any]], who: Principal, base: str
    ) -> list[Part]:
        """What an agent answered; small files with their bytes."""
        parts = told(text, data)
        room = INLINE_BYTES
        for file in files:
            room -= file["size"]
            content = await self._content(file, who) if room >= 0 else None
            parts.append(_file(file, base, content))
        return parts

    async def _content(self, file: Mapping[str, Any], who: Principal) -> bytes | None:
        sha256 = file["sha256"]
        if not self._blobs.may_read(sha256, who):
            return None
        try:
            if file["size"] > _THREAD_BYTES:
                return await asyncio.to_thread(self._blobs.read, sha256)
            return self._blobs.read(sha256)
        except (RpcError, OSError):  # it is not kept any more
            return None


def check(part: Part) -> None:
    """Raises for a part that is nothing, several things at once, or not what it says it is."""
    held = (part.text, part.raw, part.url)
    count = sum(one is not None for one in held) + (part.data is not UNSET)
    if count != 1:
        raise InvalidParams("a part has one of text, raw, url and data")
    media_type = part.media_type
    if not media_type:
        return
    if not _MEDIA_TYPE.fullmatch(media_type):
        raise refusals.content_type("not a media type")
    kind = media_type.partition(";")[0].strip().lower()
    if part.text is not None and not kind.startswith("text/"):
        raise refusals.content_type("a text part is text/plain or another text")
    if part.data is not UNSET and kind != "application/json" and not kind.endswith("+json"):
        raise refusals.content_type("a data part is application/json")


def told(
    text: str, data: Any, files: Sequence[Mapping[str, Any]] = (), base: str = ""
) -> list[Part]:
    """Text, data and files as parts; the files by their address."""
    parts = [Part(text=text, media_type="text/plain")] if text else []
    if data is not None:
        parts.append(Part(data=data, media_type="application/json"))
    return [*parts, *(_file(file, base, None) for file in files)]


def _file(file: Mapping[str, Any], base: str, content: bytes | None) -> Part:
    name, mime = file["name"], file["mime"]
    if content is not None:
        return Part(raw=base64.b64encode(content).decode(), filename=name, media_type=mime)
    return Part(url=f"{base}/blobs/{file['sha256']}", filename=name, media_type=mime)
