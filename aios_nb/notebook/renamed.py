"""A notebook whose file got another name: its node is called after the path, and would be new.

Beside each node that is called after a notebook stands which file that is: its number on the disk,
which a new name leaves as it is, and ids of its cells, because a disk gives the number of a deleted
file to the next one. Conversations stay with the node; who is told its name has them back.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from aios_nb.errors import HomeError, UsageError
from aios_nb.home import NOTEBOOK_PATH, Home, default_name
from aios_nb.private import replace_private

_SUFFIX = ".notebook"
_CELLS = 32
"""So many are remembered: one that is still there is enough."""
_LOOKED_AT_BYTES = 16 << 20
"""Of a longer notebook only the cell that loads us is known; the node waits for this to be read."""
_CELL_ID = re.compile(r"[\w-]{1,64}", re.ASCII)


class Origin(msgspec.Struct, frozen=True):
    """The notebook of a node."""

    path: str
    file: str
    was: str = ""
    """The node that it had under an earlier path."""
    cells: tuple[str, ...] = ()
    """Ids of cells. Older notebooks have none, and nothing is claimed of these."""


class NotebookFile:
    """The notebook of this kernel, and what is known of it in ``home``.

    ``cell``: the id of one of its cells. A new notebook may not have been saved yet.
    """

    def __init__(self, home: Home, environ: Mapping[str, str], cell: str = "") -> None:
        self._home = home
        self._path = environ.get(NOTEBOOK_PATH, "")
        self._name, _ = default_name(environ)
        self._file = _number(self._path)
        saved = _cells(self._path) if self._file else []
        self._cells = [one for one in (cell, *saved) if _CELL_ID.fullmatch(one)]
        self._beside = home.db_path(self._name).with_suffix(_SUFFIX)

    def earlier_node(self) -> str:
        """The node that it had before it was renamed; empty if it has been the same."""
        known = _read(self._beside)
        if known is not None:  # many an editor saves by a new file in the place of the old one
            was = known.was if self._has_cell_of(known) else ""
        else:
            was = self._moved_from()
        with suppress(OSError, UsageError):  # what else lies there need not be named as a node
            if was and self._home.db_path(was).exists():
                return was
        return ""

    def remember(self, was: str) -> None:
        """The node that is called after it is there now."""
        if self._file:
            with suppress(OSError, HomeError):  # a home that cannot be written; others say so
                origin = Origin(self._path, self._file, was, tuple(self._cells[:_CELLS]))
                replace_private(self._beside, msgspec.json.encode(origin))

    def _moved_from(self) -> str:
        for other in self._home.path.glob(f"*{_SUFFIX}") if self._file else ():
            origin = _read(other)
            if origin is None or origin.file != self._file:
                continue
            if self._has_cell_of(origin) and _is_gone(origin.path):
                return other.stem
        return ""

    def _has_cell_of(self, origin: Origin) -> bool:
        return not set(self._cells).isdisjoint(origin.cells)


def _number(path: str) -> str:
    """Of a file on its disk; empty for a kernel without a notebook."""
    try:
        found = Path(path).stat() if path else None
    except (OSError, ValueError):
        return ""
    is_file = found is not None and stat.S_ISREG(found.st_mode)
    return f"{found.st_dev}:{found.st_ino}" if found and is_file else ""


def _is_gone(path: str) -> bool:
    """Whether there is no such file. Who may not look does not know."""
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def _read(path: Path) -> Origin | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Origin)
    except (OSError, ValueError, RecursionError):
        return None


class _Cell(msgspec.Struct):
    """What is looked at of a cell."""

    id: Any = ""


class _Saved(msgspec.Struct):
    """And of a notebook."""

    cells: list[_Cell] = []


def _cells(path: str) -> list[str]:
    """The ids of its cells as they were saved; none for what is not read as a notebook."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LOOKED_AT_BYTES + 1)
        if len(content) > _LOOKED_AT_BYTES:
            return []
        saved = msgspec.json.decode(content, type=_Saved)
    except (OSError, ValueError, RecursionError):
        return []
    return [cell.id for cell in saved.cells if isinstance(cell.id, str)]
