"""Numbers of the simulations as people type them, checked while the command line is read."""

from __future__ import annotations

import argparse

from aios_nb.people.numbers import number
from aios_nb.sim import NODES_MAX

_NODES_MIN = 5
"""Of a simulated network."""
_WHOLE_END = 2**31


def nodes(text: str) -> int:
    value = number(text)
    if not _NODES_MIN <= value <= NODES_MAX or value % 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of nodes: {_NODES_MIN} to {NODES_MAX}"
        )
    return int(value)


def whole(text: str) -> int:
    value = number(text)
    if not 0 <= value < _WHOLE_END or value % 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(value)


def share(text: str) -> float:
    value = number(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share: 0.25 is a quarter")
    return value
