"""Which files of a folder are read: text that its owner wrote, and nothing outside."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from itertools import islice
from pathlib import Path, PurePath

import msgspec

ENTRIES_MAX = 100_000
"""Files and folders that are looked at; who names ``/`` does not wait for all of it."""

NOTEBOOKS = frozenset({".ipynb"})
MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".qmd", ".rmd"})
STRUCTURED = frozenset({".rst"})
TABLES = frozenset({".csv", ".tsv"})
PYTHON = frozenset({".py", ".pyi"})
PROSE = frozenset(
    {".adoc", ".bib", ".cfg", ".ini", ".jl", ".js", ".log", ".org", ".r", ".scala", ".sh", ".sql"}
    | {".tex", ".text", ".toml", ".ts", ".txt", ".yaml", ".yml"}
)
READ = NOTEBOOKS | MARKDOWN | STRUCTURED | TABLES | PYTHON | PROSE

_MADE_BY_PROGRAMS = frozenset(
    {"__pycache__", "node_modules", "site-packages", "bower_components", "lost+found"}
)
_ENVIRONMENT_MARKS = frozenset({"pyvenv.cfg", "conda-meta"})

Stamp = tuple[int, int, int]
"""Changes whenever a file does: its size, and when its content and its entry changed."""


class Survey(msgspec.Struct):
    """What there is to read."""

    files: dict[str, Stamp]
    """By path inside the folder; those near its top first."""
    complete: bool = True
    """False when there was more than may be looked at."""
    closed: int = 0
    """Folders inside that cannot be opened."""


def suffix(path: str) -> str:
    return PurePath(path).suffix.lower()


def survey(folder: Path, files_max: int, avoid: frozenset[Path] = frozenset()) -> Survey:
    """What can be read in a folder. Raises ``OSError`` if the folder itself cannot be.

    Links are not followed: what they lead to inside is found in its own place, and what they lead
    to outside is not ours to read.
    """
    found = Survey({})
    waiting = deque([""])
    left = ENTRIES_MAX
    while waiting and found.complete:
        inside = waiting.popleft()
        try:
            entries = _entries(folder / inside, left)
        except OSError:
            if not inside:
                raise
            found.closed += 1
            continue
        left -= len(entries)
        if inside and not _ENVIRONMENT_MARKS.isdisjoint(entries):
            continue
        for name in sorted(name for name in entries if not name.startswith(".")):
            path = f"{inside}/{name}" if inside else name
            if not _is_folder(entries[name]):
                _take(found, path, entries[name], files_max)
            elif name not in _MADE_BY_PROGRAMS and folder / path not in avoid:
                waiting.append(path)
        found.complete = found.complete and left > 0
    return found


def _entries(folder: Path, limit: int) -> dict[str, os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return {entry.name: entry for entry in islice(entries, limit)}


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _take(found: Survey, path: str, entry: os.DirEntry[str], files_max: int) -> None:
    if suffix(entry.name) not in READ:
        return
    with contextlib.suppress(OSError):
        if entry.is_file(follow_symlinks=False):
            if len(found.files) >= files_max:
                found.complete = False
                return
            seen = entry.stat(follow_symlinks=False)
            found.files[path] = (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
