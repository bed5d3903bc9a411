"""What a message is made of besides its text: files and data, and the reply that carries them."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self, TypeAlias

from aios_nb.envelope import FileRef, Outcome
from aios_nb.errors import TooLarge, UsageError
from aios_nb.tilde import expanded

FILE_LIMIT_BYTES = 20 << 20
"""Largest file of a message."""
_FALLBACK_MIME = "application/octet-stream"


class File:
    """A file to send: ``File("plot.png")`` or ``File(b"...", name="plot.png")``.

    A path is read at once, so what is sent is what was there when it was named.
    """

    __slots__ = ("content", "mime", "name")

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes | bytearray | memoryview,
        *,
        name: str | None = None,
        mime: str | None = None,
    ) -> None:
        if isinstance(source, (bytes, bytearray, memoryview)):
            self.content = bytes(source)
            bare = name or "file" + (mimetypes.guess_extension(mime or "") or ".bin")
        elif isinstance(source, (str, os.PathLike)):
            path = expanded(source)
            self.content = _read(path)
            bare = name or path.name
        else:
            raise UsageError(
                f"a file is made from a path or bytes, not {type(source).__name__}",
                hint='for text use aios.File(text.encode(), name="notes.txt")',
            )
        _check_size(len(self.content), bare)
        self.name = bare
        self.mime = mime or mimetypes.guess_type(bare)[0] or _FALLBACK_MIME

    def __repr__(self) -> str:
        return f"File({self.name!r}, {self.mime}, {len(self.content)} bytes)"


Source: TypeAlias = File | str | os.PathLike[str] | bytes
"""What a file can be made from."""
Files: TypeAlias = Source | Iterable[Source]


def read_files(given: Files) -> list[File]:
    """The files of a message, read now. One may stand by itself."""
    if isinstance(given, (str, bytes, os.PathLike)) or not isinstance(given, Iterable):
        given = (given,)
    return [one if isinstance(one, File) else File(one) for one in given]


class Reply(str):  # noqa: SLOT000 - the public one adds where it came from
    """An answer: a ``str`` that also carries ``data`` and ``files``.

    An agent may return one it got from ``ctx.call``: text, data and files all pass through.
    """

    data: Any
    files: tuple[FileRef, ...]

    def __new__(cls, text: str = "", data: Any = None, files: tuple[FileRef, ...] = ()) -> Self:
        reply = super().__new__(cls, text)
        reply.data = data
        reply.files = files
        return reply

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        """What an agent answered, for the one who asked."""
        return cls(outcome.text, outcome.data, outcome.files)

    def df(self) -> Any:
        """The data as a pandas DataFrame."""
        return as_frame(self.data)


def as_frame(data: Any) -> Any:
    """A pandas DataFrame of ``{columns, rows}``, a list of records, or a dict of columns."""
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError("a table needs pandas", hint="pip install pandas") from None
    if isinstance(data, dict) and isinstance(data.get("columns"), list) and "rows" in data:
        return pd.DataFrame(data["rows"], columns=data["columns"])
    if isinstance(data, (list, dict)) and data:
        try:
            return pd.DataFrame(data)
        except ValueError:
            pass  # ragged columns or bare scalars: said below, in our words
    raise UsageError("this reply has no table", hint="its text is str(reply), its data reply.data")


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        _check_size(size, path.name)
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _check_size(size: int, name: str) -> None:
    if size > FILE_LIMIT_BYTES:
        raise TooLarge(
            f"{name} has {size / (1 << 20):.1f} MB; a file may have {FILE_LIMIT_BYTES >> 20} MB"
        )
