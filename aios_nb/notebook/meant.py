"""What was meant by a word that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near(wrong: str, right: Iterable[str]) -> str:
    """A hint: what is spelled like it, or all there is."""
    names = list(right)
    close = difflib.get_close_matches(wrong.lower(), names, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return "%aios? lists all" if len(names) > 12 else f"one of {', '.join(names)}"  # noqa: PLR2004
