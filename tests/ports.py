"""Ports for those who must know theirs before they listen. All others listen at 0."""

from __future__ import annotations

import itertools
import os
import socket

FIRST = 20_000
COUNT = 12_000
"""Below those that the system gives to whoever asks for any: it would give ours away meanwhile."""
_APART = 101
"""Test processes begin so far from each other: their ids often follow one another."""

_next = itertools.count(os.getpid() * _APART)


def free_port() -> int:
    """A port of this machine that nobody has, and nobody is given by chance."""
    for number in itertools.islice(_next, COUNT):
        port = FIRST + number % COUNT
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
    raise AssertionError("all ports are taken")
