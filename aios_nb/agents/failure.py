"""What a caller may learn of an error in an agent: one line, nothing of the machine."""

from __future__ import annotations

import re
from types import TracebackType

LINE_LIMIT = 300
"""Characters of an error that reach the caller."""

_QUOTED_PATH = re.compile(r"(['\"])(?:file:/+|[A-Za-z]:|~)?[\\/][^'\"]*?([^'\"\\/]*)[\\/]*\1")
_BARE_PATH = re.compile(
    r"(?<![\w.:/\\~-])(?:file:/+|[A-Za-z]:[\\/]|~[\\/]|\.{0,2}/)"
    r"(?:[^\s'\"/\\:,;()]+[\\/]+)+([^\s'\"/\\:,;()]*)"
)
_OURS = ("aios_nb.agents.engines", "aios_nb.agents.host", "aios_nb.agents.inline")
_OURS_TOO = ("aios_nb.agents.threads", "aios_nb.agents.pool", "aios_nb.notebook.engine")


def one_line(text: str, limit: int = LINE_LIMIT) -> str:
    """The first line that says something: no control characters, no folders, cut at ``limit``."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    line = "".join(char if char.isprintable() else " " for char in line)
    line = _QUOTED_PATH.sub(r"\1\2\1", line)
    line = _BARE_PATH.sub(r"\1", line)
    line = " ".join(line.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def explain(error: BaseException) -> str:
    """An exception for a caller: its type and its first line."""
    kind = type(error).__name__
    try:
        text = one_line(str(error))
    except Exception:  # noqa: BLE001 - the author's __str__ may be broken too; the type still says much
        text = ""
    return one_line(f"{kind}: {text}" if text else kind)


def author_traceback(error: BaseException) -> TracebackType | None:
    """The traceback from the first frame that is the author's own."""
    at = error.__traceback__
    while at and at.tb_frame.f_globals.get("__name__") in (*_OURS, *_OURS_TOO):
        at = at.tb_next
    return at or error.__traceback__
