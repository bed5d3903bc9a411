"""The name a program of others gets here."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable

from aios_nb.envelope import NAME
from aios_nb.errors import UsageError

NAME_CHARS = 32
"""Of a name made from a title: it is typed."""
_RUNS = re.compile(r"[^a-z0-9]+")


def chosen(name: str, taken: Callable[[str], bool]) -> str:
    """The name its owner wants. Raises ``UsageError`` if it is none, or somebody's already."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name[:60]!r} is no name for an agent",
            hint="small letters, digits, - and _, at most 48",
        )
    if taken(name):
        raise UsageError(f"there is an agent {name} already", hint="choose another --name")
    return name


def named_after(title: str, kind: str, taken: Callable[[str], bool]) -> str:
    """A free name from what it calls itself; numbered if others have the same."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    slug = _RUNS.sub("-", plain)[:NAME_CHARS].strip("-") or f"{kind}-agent"
    numbered = (f"{slug}-{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([slug], numbered) if not taken(name))
