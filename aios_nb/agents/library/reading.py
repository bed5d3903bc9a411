"""A file as passages."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec

from aios_nb.agents.library import folder
from aios_nb.agents.library.notebooks import notebook
from aios_nb.agents.library.passages import (
    Cutter,
    Passage,
    markdown,
    prose,
    python,
    structured,
    table,
)

TEXT_BYTES = 1 << 20
"""Of a text file; the rest of a longer one is not read."""
NOTEBOOK_BYTES = 10 << 20
"""A longer notebook is left out: half of one says nothing. Mostly pictures, which are not kept."""
_LOOKED_AT_BYTES = 8192
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
_CUTTERS: Mapping[frozenset[str], Cutter] = {
    folder.MARKDOWN: markdown,
    folder.STRUCTURED: structured,
    folder.PYTHON: python,
    folder.TABLES: table,
}
_LINE_END = re.compile("\r\n?|\n")
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class NotText(ValueError):
    """A file that only looks like text by its name."""


def read(path: Path) -> list[Passage]:
    """The passages of a file. Raises ``OSError``, or ``NotText``."""
    ending = folder.suffix(path.name)
    if ending in folder.NOTEBOOKS:
        content = _content(path, NOTEBOOK_BYTES + 1)
        if len(content) > NOTEBOOK_BYTES:
            raise NotText(f"{path.name} is too long")
        try:
            return list(notebook(content))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise NotText(f"{path.name} is no notebook") from error
    cutter = next((cutter for endings, cutter in _CUTTERS.items() if ending in endings), prose)
    # Numbered as editors do: str.splitlines would count form feeds and other rare ones too.
    return list(cutter(_LINE_END.split(text_of(_content(path, TEXT_BYTES)))))


def text_of(content: bytes) -> str:
    """Bytes as text: Unicode, or else Western European. A letter cut in two at the end is left."""
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            return codecs.getincrementaldecoder(encoding)("replace").decode(content)
    if b"\0" in content[:_LOOKED_AT_BYTES]:
        raise NotText("not a text")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _content(path: Path, limit: int) -> bytes:
    """The first bytes of a plain file; not of a link, and without waiting for a pipe."""
    with os.fdopen(os.open(path, _FLAGS), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotText(f"{path.name} is no plain file")
        return file.read(limit)
