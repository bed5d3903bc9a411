"""A path as people type it: ``~`` is their home, ``~ada`` is Ada's."""

from __future__ import annotations

import os
from pathlib import Path

from aios_nb.errors import UsageError


def expanded(path: str | os.PathLike[str]) -> Path:
    """The path with that home written out; ``UsageError`` where there is none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        whose = Path(path).parts[0]
        if whose == "~":
            raise UsageError("this user has no home folder", hint="HOME may name one") from None
        raise UsageError(
            f"there is no home folder for {whose[:40]}", hint="write the whole path"
        ) from None
