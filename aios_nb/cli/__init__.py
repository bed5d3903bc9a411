"""The command line, ``aios-nb``."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; what comes back is the exit code."""
    from aios_nb.cli.app import run

    return run(sys.argv[1:] if argv is None else argv)
