"""The parts of an A2A message or artifact: text, data and files, in both directions."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

import msgspec

from aios_nb.config import MB
from aios_nb.envelope import FILES_PER_MESSAGE, Task
from aios_nb.errors import AgentFailed, TooLarge
from aios_nb.ports import Blobs
from aios_nb.richtext import one_line

SENT_FILES_BYTES = 20 * MB
"""All files of one message together: they travel inside of it."""
PARTS_MAX = 10_000
NAME_CHARS = 200
KEPT_BYTES = 64 * MB
"""What one agent may have us hold for one answer."""


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """One of ``text``, ``raw`` (base64), ``url`` and ``data``."""

    text: str | None = None
    raw: str | None = None
    url: str | None = None
    data: Any = msgspec.UNSET
    filename: str = ""
    media_type: str = ""

    @property
    def size(self) -> int:
        return 100 + len(self.text or self.raw or self.url or "")

    @property
    def link(self) -> str:
        """A file that is elsewhere, in words."""
        name = one_line(self.filename, NAME_CHARS)
        return f"{name}: {one_line(self.url or '')}" if name else one_line(self.url or "")


def parts_of(task: Task, blobs: Blobs) -> list[dict[str, Any]]:
    """What the agent is sent of a task. Raises ``TooLarge``."""
    if sum(file.size for file in task.files) > SENT_FILES_BYTES:
        raise TooLarge(
            "these files are too large for an A2A message",
            hint=f"{SENT_FILES_BYTES // MB} MB together is the limit",
        )
    parts: list[dict[str, Any]] = [{"text": task.text}] if task.text else []
    if task.data is not None:
        parts.append({"data": task.data, "mediaType": "application/json"})
    for file in task.files:
        content = base64.b64encode(blobs.read(file.sha256)).decode()
        parts.append({"raw": content, "filename": file.name, "mediaType": file.mime})
    return parts or [{"text": ""}]


def text_of(parts: Iterable[Part]) -> str:
    """The words in these parts; a file that is elsewhere is a line with its address."""
    said = ""
    for part in parts:
        if part.text is not None:
            said += part.text
        elif part.url is not None:
            said += f"\n{part.link}\n" if said else f"{part.link}\n"
    return said


class Artifact(msgspec.Struct, rename="camel"):
    artifact_id: str = ""
    parts: list[Part] = []


class Answer:
    """What an agent has answered so far, in the order in which it began each piece."""

    def __init__(self) -> None:
        self._artifacts: dict[str, list[Part]] = {}
        self._closing: list[Part] = []
        self._size = 0

    def clear(self) -> None:
        self._artifacts.clear()
        self._closing.clear()
        self._size = 0

    def add(self, artifact: Artifact, *, append: bool) -> str | None:
        """Take a piece; the words that it adds at the very end, or None if it changed others."""
        self._count(artifact.parts)
        known = self._artifacts.get(artifact.artifact_id)
        if known is not None and append:
            at_end = next(reversed(self._artifacts)) == artifact.artifact_id
            plain = all(part.url is None for part in artifact.parts)
            known.extend(artifact.parts)
            return text_of(artifact.parts) if at_end and plain else None
        self._artifacts[artifact.artifact_id] = list(artifact.parts)
        return None

    def close(self, parts: list[Part]) -> None:
        """What it said in the end."""
        self._count(parts)
        self._closing = list(parts)

    @property
    def is_empty(self) -> bool:
        return not any(self._all())

    @property
    def text(self) -> str:
        said = [text_of(parts) for parts in self._artifacts.values()]
        closing = text_of(self._closing)
        if closing not in said:
            said.append(closing)
        return "\n\n".join(filter(None, said))

    @property
    def data(self) -> Any:
        """The data part; a list of them if there are several."""
        found = [part.data for part in self._all() if part.data is not msgspec.UNSET]
        return found[0] if len(found) == 1 else found or None

    def files(self) -> list[Part]:
        """The parts that are files. Raises ``AgentFailed`` if they are too many."""
        found = [part for part in self._all() if part.raw is not None or part.url is not None]
        if len(found) > FILES_PER_MESSAGE:
            raise AgentFailed(
                f"it answered with {len(found)} files; {FILES_PER_MESSAGE} are taken", ran="yes"
            )
        return found

    def _all(self) -> Iterable[Part]:
        for parts in (*self._artifacts.values(), self._closing):
            yield from parts

    def _count(self, parts: list[Part]) -> None:
        self._size += sum(part.size for part in parts)
        if self._size > KEPT_BYTES or len(parts) > PARTS_MAX:
            raise AgentFailed("it answers with more than can be held here", ran="yes")


def content_of(part: Part, limit_bytes: int) -> bytes:
    """The bytes of a file that came inside. Raises ``AgentFailed``."""
    text = part.raw or ""
    if len(text) // 4 * 3 > limit_bytes + 2:
        raise AgentFailed(f"a file may have {limit_bytes // MB} MB at most", ran="yes")
    try:
        # Both alphabets are in use, with and without padding.
        return base64.b64decode(text.translate(_STANDARD) + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise AgentFailed("it sent a file that cannot be read", ran="yes") from None


_STANDARD = str.maketrans("-_", "+/")
