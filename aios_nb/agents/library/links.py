"""Where a passage stands, as words and as a link that can be followed."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote, quote_from_bytes

from aios_nb.agents.library.folder import TABLES, suffix
from aios_nb.agents.library.passages import Passage


def place(path: str, passage: Passage, line: int) -> str:
    """For people: ``notes/a.md:12``, or the cell of a notebook."""
    if passage.cell is None:
        return f"{path}:{line}"
    part = "output of cell" if passage.is_output else "cell"
    return f"{path}, {part} {passage.cell}"


def link(path: Path, passage: Passage, line: int, relative_to: Path | None) -> str:
    """The target of a Markdown link, safe to stand between its brackets.

    A page of JupyterLab cannot follow ``file:`` links. It resolves relative ones from the notebook,
    and knows ``#cell-id=`` and, counted from 0, ``#line=``. Elsewhere the whole path is clear.
    """
    if relative_to is None:
        return "file://" + _quoted(str(path))
    near = _quoted(os.path.relpath(path, relative_to))
    if passage.cell is not None:
        return f"{near}#cell-id={quote(passage.cell_id, safe='')}" if passage.cell_id else near
    return near if suffix(path.name) in TABLES else f"{near}#line={line - 1}"


def _quoted(path: str) -> str:
    return quote_from_bytes(os.fsencode(path), safe="/")
