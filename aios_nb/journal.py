"""The node's log: the last lines, kept in memory. A node never prints."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

LINES_KEPT = 2000


class Journal(logging.Handler):
    """Keeps the last lines of everything logged under ``aios_nb``."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def traceback_of(self, named: str) -> str:
        """The newest line that names it and says where that was; empty when there is none."""
        kept = reversed(list(self.lines))
        return next((line for line in kept if named in line and "\nTraceback " in line), "")


journal = Journal()


_LIBRARIES = ("kademlia", "markdown_it", "mcp", "rpcudp", "sse_starlette")
"""That log what they do for us, at DEBUG and INFO."""


def keep_to_ourselves() -> Callable[[], None]:
    """From now on no line of ours goes to handlers of the program; the result ends that.

    In a notebook ``logging.basicConfig()`` would show them in whatever cell runs.
    """
    logger = logging.getLogger("aios_nb")
    before = logger.propagate
    logger.propagate = False
    quieted = [
        library for library in map(logging.getLogger, _LIBRARIES) if library.level == logging.NOTSET
    ]
    for library in quieted:
        library.setLevel(logging.WARNING)

    def end() -> None:
        logger.propagate = before
        for library in quieted:
            library.setLevel(logging.NOTSET)

    return end


def keep_journal() -> None:
    """Attach it once. With a handler of our own, Python prints nothing by itself."""
    logger = logging.getLogger("aios_nb")
    if journal not in logger.handlers:
        logger.addHandler(journal)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)
