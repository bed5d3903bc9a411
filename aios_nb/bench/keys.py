"""The nodes that a load generator is: keys made from a word, the same in every process."""

from __future__ import annotations

import hashlib

from aios_nb.identity import Identity


def identity(seed: str, number: int = 0) -> Identity:
    """The node of that seed and number."""
    return Identity.from_seed(hashlib.sha256(f"{seed} {number}".encode()).digest())
