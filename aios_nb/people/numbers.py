"""Numbers as people type them, checked while what they typed is read."""

from __future__ import annotations

import argparse
import math

_PORT_MAX = 0xFFFF
_COUNT_MAX = 200
"""The limit of ``agents.search``."""
_DAY_S = 86_400


def port(text: str) -> int:
    value = number(text)
    if not 0 <= value <= _PORT_MAX or value % 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 0 to {_PORT_MAX}")
    return int(value)


def count(text: str) -> int:
    value = number(text)
    if not 1 <= value <= _COUNT_MAX or value % 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 1 and {_COUNT_MAX}")
    return int(value)


def seconds(text: str) -> float:
    value = number(text)
    if not 0 < value <= _DAY_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and {_DAY_S} seconds")
    return value


def number(text: str) -> float:
    """NaN for what is no number: it lies between no two limits."""
    try:
        return float(text)
    except ValueError:
        return math.nan
