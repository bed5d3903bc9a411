"""Words for a running bridge from other programs of the same user: small files in a folder.

The database has one writer, the bridge. Who makes a code or puts somebody out from another program
leaves a file here, which also works while no bridge runs. What a file says is an offer's hash,
never the code itself.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import time
from pathlib import Path

import msgspec

from aios_bots.core.pairing import Offer

log = logging.getLogger("aios_bots.box")

_FILE_MAX_BYTES = 64 << 10
_SUFFIX = ".json"
_SETTLED_NS = 1_000_000_000


class Word(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to do."""

    offer: Offer | None = None
    """Keep what a code gives."""
    revoke: str = ""
    """This person is let in no more."""
    stop: bool = False
    """The bridge that runs is wanted no more."""


class Box:
    """The folder of one bot's bridge."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = -1

    def put(self, word: Word) -> None:
        """Leave a word; whole or not at all, and for nobody else to read."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{secrets.token_hex(8)}{_SUFFIX}"
        part = self._folder / f".{name}"
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(msgspec.json.encode(word))
        part.replace(self._folder / name)

    def news(self) -> list[tuple[Path, Word]]:
        """What was left and not ``done`` yet. Costs one look at the folder when nothing was."""
        try:
            changed = self._folder.stat().st_mtime_ns
        except OSError:
            return []
        if changed == self._seen:
            return []
        found: list[tuple[Path, Word]] = []
        for path in sorted(self._folder.glob(f"[!.]*{_SUFFIX}")):
            try:
                with path.open("rb") as file:
                    found.append((path, msgspec.json.decode(file.read(_FILE_MAX_BYTES), type=Word)))
            except (OSError, msgspec.DecodeError, UnicodeError) as error:
                log.warning("a word that cannot be read is dropped: %s", error)
                self.done(path)
        if not found and time.time_ns() - changed > _SETTLED_NS:
            self._seen = changed  # a word in the same tick of the file system's clock is no change
        return found

    def forget_stops(self) -> None:
        """A wish to stop was for the bridge that ran then."""
        for path, word in self.news():
            if word.stop:
                self.done(path)

    def done(self, path: Path) -> None:
        """It was done, and is not done again."""
        with contextlib.suppress(OSError):
            path.unlink()
