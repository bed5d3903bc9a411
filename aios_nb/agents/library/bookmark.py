"""Which folder was named, remembered from one start of the node to the next."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from aios_nb.errors import HomeError
from aios_nb.private import read_private, replace_private

log = logging.getLogger("aios_nb.agents")

_FILE_BYTES_MAX = 16_384


class _Page(msgspec.Struct):
    folder: str


class Bookmark:
    """Kept in a small file, or in memory only. What cannot be read or kept is said in the log."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    def read(self) -> Path | None:
        if self._file is None:
            return None
        try:
            content = read_private(self._file, limit_bytes=_FILE_BYTES_MAX)
            return Path(msgspec.json.decode(content, type=_Page).folder)
        except FileNotFoundError:
            return None
        except (HomeError, msgspec.MsgspecError) as error:
            log.warning("the librarian's folder is forgotten: %s", error)
            return None

    def write(self, folder: Path | None) -> None:
        if self._file is None:
            return
        try:
            if folder is None:
                self._file.unlink(missing_ok=True)
            else:
                replace_private(self._file, msgspec.json.encode(_Page(str(folder))))
        except (HomeError, OSError, UnicodeEncodeError) as error:
            log.warning("the librarian's folder will be forgotten: %s", error)
