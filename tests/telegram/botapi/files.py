"""Files: what bots and people sent, by id, and where bots can fetch it."""

from __future__ import annotations

import hashlib
import secrets
import struct
from dataclasses import dataclass, field
from typing import Any

from tests.telegram.botapi.errors import ApiError, bad
from tests.telegram.botapi.settings import FILE_LINK_LIFETIME_S, Settings, Times

PNG = b"\x89PNG\r\n\x1a\n"
DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
)
"""A picture of one pixel."""
JPEG = b"\xff\xd8\xff"
FOLDERS = {"photo": "photos", "document": "documents", "voice": "voice", "audio": "music"}
ENDINGS = {"photo": ".jpg", "voice": ".oga", "audio": ".mp3", "video": ".mp4"}


@dataclass(eq=False)
class Stored:
    """The bytes of a file and what is known about it."""

    kind: str
    data: bytes = field(repr=False)
    name: str
    mime: str
    file_id: str
    unique_id: str
    size: int
    path: str
    path_until: float = 0.0
    smaller: Stored | None = None
    """A photo comes in sizes, the smallest first."""

    def ids(self) -> dict[str, Any]:
        return {
            "file_id": self.file_id,
            "file_unique_id": self.unique_id,
            "file_size": self.size,
        }

    def field(self, **details: Any) -> dict[str, Any]:
        """The field of a message that has this file."""
        if self.kind == "photo":
            width, height = size_of_picture(self.data) or (640, 480)
            full = {**self.ids(), "width": width, "height": height}
            if self.smaller is None:
                return {"photo": [full]}
            return {"photo": [{**self.smaller.ids(), "width": 1, "height": 1}, full]}
        body = {**self.ids(), **{name: value for name, value in details.items() if value}}
        if self.kind in {"voice", "audio", "video", "animation"}:
            body.setdefault("duration", 1)
        if self.kind in {"video", "animation"}:
            body = {"width": 640, "height": 480, **body}
        if self.kind != "voice":
            body["file_name"] = self.name
        return {self.kind: {**body, "mime_type": self.mime}}


class Files:
    """All files of the server."""

    def __init__(self, times: Times, settings: Settings) -> None:
        self._times = times
        self._settings = settings
        self._by_id: dict[str, Stored] = {}

    def store(
        self, kind: str, data: bytes, name: str = "", mime: str = "", size: int | None = None
    ) -> Stored:
        """Keep a file; ``size`` may claim more than the bytes there are, to save memory."""
        size = len(data) if size is None else size
        digest = hashlib.sha256(data).hexdigest()
        number = len(self._by_id)
        default = f"file_{number}{ENDINGS.get(kind, '')}"
        stored = Stored(
            kind=kind,
            data=data,
            name=name or default,
            mime=mime or "application/octet-stream",
            file_id=f"BQAC{secrets.token_urlsafe(30)}",
            unique_id=f"Ag{digest[:14]}",
            size=size,
            path=f"{FOLDERS.get(kind, kind + 's')}/{default}",
        )
        self._by_id[stored.file_id] = stored
        if kind == "photo" and data != DOT:
            stored.smaller = self.store("photo", DOT, size=len(DOT))
        return stored

    def upload(self, kind: str, data: bytes, name: str, mime: str) -> Stored:
        """Keep what a bot sent, within what bots may send."""
        if len(data) > self._settings.upload_bytes:
            raise ApiError(413)
        if not data:
            raise bad("file must be non-empty")
        if kind == "photo":
            most = self._settings.photo_bytes
            if len(data) > most:
                raise bad(
                    f"file of size {len(data)} bytes is too big for a photo;"
                    f" the maximum size is {most} bytes"
                )
            if not data.startswith((PNG, JPEG)):
                raise bad("IMAGE_PROCESS_FAILED")
        return self.store(kind, data, name, mime)

    def find(self, file_id: str) -> Stored:
        if file_id not in self._by_id:
            raise bad("wrong file identifier/HTTP URL specified")
        return self._by_id[file_id]

    def link(self, file_id: str) -> dict[str, Any]:
        """The answer to getFile; the path works for an hour."""
        if file_id not in self._by_id:
            raise bad("invalid file_id" if file_id else "file_id is not specified")
        stored = self._by_id[file_id]
        if stored.size > self._settings.download_bytes:
            raise bad("file is too big")
        stored.path_until = self._times.now() + FILE_LINK_LIFETIME_S
        return {**stored.ids(), "file_path": stored.path}

    def at(self, path: str) -> Stored | None:
        now = self._times.now()
        found = (file for file in self._by_id.values() if file.path == path)
        return next((file for file in found if file.path_until > now), None)


def size_of_picture(data: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG or JPEG."""
    if data.startswith(PNG):
        return struct.unpack(">II", data[16:24])
    at = 2
    while data.startswith(JPEG) and at + 9 < len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + length
    return None
