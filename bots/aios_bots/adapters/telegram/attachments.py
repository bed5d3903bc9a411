"""The files of a message. Names and types are chosen by whoever sent it, so they prove nothing."""

from __future__ import annotations

import re
from typing import Any

from aios_bots.core.model import Attachment
from aios_nb.richtext import one_line

NAME_MAX_CHARS = 128
_KINDS = {
    # "document" comes last: an animation is named as one too, for old programs.
    "animation": ("animation.mp4", "video/mp4"),
    "audio": ("audio.mp3", "audio/mpeg"),
    "video": ("video.mp4", "video/mp4"),
    "video_note": ("video.mp4", "video/mp4"),
    "voice": ("voice.ogg", "audio/ogg"),
    "document": ("file", "application/octet-stream"),
}
_MIME = re.compile(r"[\w.+-]{1,64}/[\w.+-]{1,64}", re.ASCII)
_SEPARATORS = re.compile(r"[\\/:\0]")


def files_of(message: dict[str, Any]) -> tuple[Attachment, ...]:
    """The file that a message carries: one, or none."""
    sizes = message.get("photo")
    if isinstance(sizes, list):
        shown = [size for size in sizes if isinstance(size, dict) and size.get("file_id")]
        if shown:
            return (_attachment(max(reversed(shown), key=_largeness), "photo.jpg", "image/jpeg"),)
    sticker = message.get("sticker")
    if isinstance(sticker, dict) and sticker.get("file_id"):
        return (_attachment(sticker, *_sticker(sticker)),)
    for field, (name, mime) in _KINDS.items():
        found = message.get(field)
        if isinstance(found, dict) and found.get("file_id"):
            return (_attachment(found, name, mime),)
    return ()


def safe_name(name: Any, instead: str) -> str:
    """The last part of a name, as one line; what could lead elsewhere is no name."""
    if not isinstance(name, str):
        return instead
    last = one_line(_SEPARATORS.split(name)[-1], NAME_MAX_CHARS).strip(". ")
    return last or instead


def _attachment(file: dict[str, Any], name: str, mime: str) -> Attachment:
    said, size = file.get("mime_type"), file.get("file_size")
    return Attachment(
        ref=str(file["file_id"]),
        name=safe_name(file.get("file_name"), name),
        mime=said if isinstance(said, str) and _MIME.fullmatch(said) else mime,
        size=size if isinstance(size, int) and size > 0 else 0,
    )


def _largeness(size: dict[str, Any]) -> tuple[int, int]:
    """The largest is the picture, the others are small views of it."""
    width, height, given = (size.get(name) for name in ("width", "height", "file_size"))
    area = width * height if isinstance(width, int) and isinstance(height, int) else 0
    return area, given if isinstance(given, int) else 0


def _sticker(sticker: dict[str, Any]) -> tuple[str, str]:
    if sticker.get("is_video"):
        return "sticker.webm", "video/webm"
    if sticker.get("is_animated"):
        return "sticker.tgs", "application/gzip"
    return "sticker.webp", "image/webp"
