"""Files and folders for a path that is being typed. Looks at one folder, and not for long."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import islice
from pathlib import Path

PATHS = 200
"""So many files of a folder are offered."""
LOOKED_AT = 5000
"""So many of its entries are looked at: who types Tab waits, and 100,000 took 14 s."""
_HOME = "~/"
_NOT_IN_A_LINE = re.compile("[\n-\r\x1c-\x1e\x85\u2028\u2029\ud800-\udfff]")


def paths(begun: str) -> list[str]:
    """Paths that begin so, a folder's with a slash; hidden ones if that is what is typed."""
    folder, slash, start = begun.rpartition("/")
    before = folder + slash
    here = before
    with suppress(OSError, RuntimeError, ValueError):  # no such folder, no such home, no path
        if before.startswith(_HOME):  # of others a name service would have to be asked
            here = f"{Path.home()}/{before.removeprefix(_HOME)}"
        with os.scandir(here or ".") as entries:
            found = [each for each in islice(entries, LOOKED_AT) if _fits(each.name, start)]
        found.sort(key=lambda each: each.name)
        return [f"{before}{each.name}{_slash(each)}" for each in found[:PATHS]]
    return []


def _fits(name: str, start: str) -> bool:
    shown = name.startswith(".") <= start.startswith(".")
    return shown and name.startswith(start) and not _NOT_IN_A_LINE.search(name)


def _slash(entry: os.DirEntry[str]) -> str:
    with suppress(OSError):  # a link that leads round
        return "/" if entry.is_dir() else ""
    return ""
