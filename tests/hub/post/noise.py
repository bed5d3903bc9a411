"""Datagrams that nobody should send, always the same ones for one seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from aios_nb.identity import Identity
from tests.hub.post import by_hand
from tests.hub.post.offices import Office, Stranger, word


def noise(
    rng: random.Random, heard: list[bytes], key: Identity, token: bytes, who: Stranger, here: Office
) -> Iterator[bytes]:
    """Random, mutated, replayed, cut, strange and huge ones, always the same for a seed."""
    me = by_hand.raw(key)
    said = word(key, who.address).to_bytes()
    right = [by_hand.datagram(kind, me, token, b"x" * 8 + said) for kind in range(6)]
    right += [by_hand.datagram(kind, me, token, said) for kind in range(6)]
    right += [by_hand.datagram(kind, by_hand.raw(here.identity), token, said) for kind in range(6)]
    pool = heard + right
    while True:
        yield rng.choice(SPOILERS)(rng, rng.choice(pool))


def _mutated(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(changed)


SPOILERS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _mutated,
    lambda _, data: data,
    lambda rng, _: rng.randbytes(rng.randrange(1500)),
    lambda rng, data: data[: rng.randrange(len(data))],
    lambda _, data: data[:1] + by_hand.mark("other") + data[5:],
    lambda rng, data: data + rng.randbytes(rng.choice((1, 200, 1367, 5000, 60_000))),
    lambda rng, data: bytes([rng.randrange(256)]) + data[1:],
    lambda rng, data: data[:33] + bytes(rng.choices((0x91, 0xDD, 0x98, 0xC1), k=300)),
)
