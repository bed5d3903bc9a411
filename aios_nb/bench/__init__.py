"""Benchmarks: every number as a ratio to a baseline in the same run."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """``aios-nb bench`` with these options; its exit code."""
    from aios_nb.bench.run import main as run

    return run(argv)
