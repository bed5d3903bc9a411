"""The node's log: the last lines, kept in memory. A node never prints."""

from __future__ import annotations

import logging
from collections import deque

LINES_KEPT = 2000


class Journal(logging.Handler):
    """Keeps the last lines of everything logged under ``aios_nb``."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


journal = Journal()


def keep_journal() -> None:
    """Attach it once. With a handler of our own, Python prints nothing by itself."""
    logger = logging.getLogger("aios_nb")
    if journal not in logger.handlers:
        logger.addHandler(journal)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)
