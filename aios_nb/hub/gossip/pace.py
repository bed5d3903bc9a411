"""How often a node speaks and how long it waits, with three presets instead of many flags."""

from __future__ import annotations

import math

import msgspec

_CALM_SIZE = 32
"""Up to this many nodes nothing is stretched."""
_SENDS_FACTOR = 6
"""Of memberlist 4; by name a send is cheap, and with a quarter of all packets lost it pays."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds and counts. What depends on the size of the network is asked with its size."""

    gossip_s: float
    """Between two rounds of news. A node with nothing to tell sends nothing."""
    fanout: int
    """To how many nodes news goes in a round."""
    probe_s: float
    """From one node probed to the next one."""
    probe_most_s: float
    """What that interval is stretched to in a large network."""
    timeout_s: float
    """For the answer to a probe; then others are asked to try, and get as long again."""
    sync_s: float
    """Between two comparisons with another node, in a small network."""
    silence_s: float
    """A node that is silent for no longer than this is not called dead."""
    doubt_factor: float = 4.0
    """Of memberlist: longer doubt in larger networks, where word travels longer."""
    forget_s: float = 3600.0
    """How long the dead are remembered, and now and then tried again."""

    def sends(self, size: int) -> int:
        """How often a node repeats one piece of news before it is old."""
        return _SENDS_FACTOR * math.ceil(math.log10(size + 1))

    def probe_every(self, size: int) -> float:
        return min(self.probe_most_s, self.probe_s * _stretch(size))

    def sync_every(self, size: int) -> float:
        return self.sync_s * _stretch(size)

    def doubt(self, size: int) -> float:
        """The seconds from the first unanswered probe to death, when others agree."""
        return max(self.silence_s, self.doubt_factor * math.log10(size + 1) * self.probe_most_s)


def _stretch(size: int) -> float:
    return 1.0 + math.log2(max(size, _CALM_SIZE) / _CALM_SIZE)


# On one machine a kernel may be busy for many seconds while all others answer within one: probes
# are cheap and frequent, so that a death is noticed early, and the doubt after that is long.
LOCAL = Pace(
    gossip_s=0.2,
    fanout=3,
    probe_s=0.2,
    probe_most_s=1.0,
    timeout_s=0.5,
    sync_s=5.0,
    silence_s=12.7,
)
LAN = Pace(
    gossip_s=0.2,
    fanout=3,
    probe_s=1.0,
    probe_most_s=1.0,
    timeout_s=0.5,
    sync_s=10.0,
    silence_s=5.0,
)
WAN = Pace(
    gossip_s=0.5,
    fanout=4,
    probe_s=5.0,
    probe_most_s=5.0,
    timeout_s=3.0,
    sync_s=30.0,
    silence_s=20.0,
    doubt_factor=6.0,
)
