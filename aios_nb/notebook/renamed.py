"""A notebook whose file got another name: its node is called after the path, and would be new.

Beside each node that is called after a notebook stands which file that is, by its number on the
disk, which a new name leaves as it is. Conversations stay with the node; who is told its name has
them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from aios_nb.errors import HomeError
from aios_nb.home import NOTEBOOK_PATH, Home, default_name
from aios_nb.private import replace_private

_SUFFIX = ".notebook"


class Origin(msgspec.Struct, frozen=True):
    """The notebook of a node."""

    path: str
    file: str
    was: str = ""
    """The node that it had under an earlier path."""


class NotebookFile:
    """The notebook of this kernel, and what is known of it in ``home``."""

    def __init__(self, home: Home, environ: Mapping[str, str]) -> None:
        self._home = home
        self._path = environ.get(NOTEBOOK_PATH, "")
        self._name, _ = default_name(environ)
        self._file = _number(self._path)
        self._beside = home.db_path(self._name).with_suffix(_SUFFIX)

    def earlier_node(self) -> str:
        """The node that it had before it was renamed; empty if it has been the same."""
        known = _read(self._beside)
        if known is not None:
            was = known.was if known.file == self._file else ""
        else:
            was = self._moved_from()
        return was if was and self._home.db_path(was).exists() else ""

    def remember(self, was: str) -> None:
        """The node that is called after it is there now."""
        if self._file:
            with suppress(OSError, HomeError):  # a home that cannot be written; others say so
                origin = Origin(self._path, self._file, was)
                replace_private(self._beside, msgspec.json.encode(origin))

    def _moved_from(self) -> str:
        for other in self._home.path.glob(f"*{_SUFFIX}") if self._file else ():
            origin = _read(other)
            if origin and origin.file == self._file and not Path(origin.path).exists():
                return other.stem
        return ""


def _number(path: str) -> str:
    """Of a file on its disk; empty for a kernel without a notebook."""
    try:
        found = Path(path).stat() if path else None
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}" if found else ""


def _read(path: Path) -> Origin | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Origin)
    except (OSError, msgspec.DecodeError):
        return None
