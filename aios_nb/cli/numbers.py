"""Numbers as people type them, checked while the command line is read."""

from __future__ import annotations

import argparse
import math

from aios_nb.sim import NODES_MAX

_PORT_MAX = 0xFFFF
_COUNT_MAX = 200
"""The limit of ``agents.search``."""
_DAY_S = 86_400
_NODES_MIN = 5
"""Of a simulated network."""
_WHOLE_END = 2**31


def port(text: str) -> int:
    number = _number(text)
    if not 0 <= number <= _PORT_MAX or number % 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 0 to {_PORT_MAX}")
    return int(number)


def count(text: str) -> int:
    number = _number(text)
    if not 1 <= number <= _COUNT_MAX or number % 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 1 and {_COUNT_MAX}")
    return int(number)


def nodes(text: str) -> int:
    number = _number(text)
    if not _NODES_MIN <= number <= NODES_MAX or number % 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of nodes: {_NODES_MIN} to {NODES_MAX}"
        )
    return int(number)


def whole(text: str) -> int:
    number = _number(text)
    if not 0 <= number < _WHOLE_END or number % 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(number)


def share(text: str) -> float:
    number = _number(text)
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share: 0.25 is a quarter")
    return number


def seconds(text: str) -> float:
    number = _number(text)
    if not 0 < number <= _DAY_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and {_DAY_S} seconds")
    return number


def _number(text: str) -> float:
    """NaN for what is no number: it lies between no two limits."""
    try:
        return float(text)
    except ValueError:
        return math.nan
