"""The numbers of the DHT, with their units."""

from __future__ import annotations

import msgspec

MINUTE_S = 60.0
HOUR_S = 3600.0
MB = 1 << 20


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """One preset; tests and simulations pass their own."""

    k: int = 20
    """Contacts in a bucket, and nodes that keep a record."""
    small_k: int = 12
    """Nodes that keep a record in a network below ``small_network`` nodes. When three tenths of all
    die at once, of 8 fewer than ``quorum`` are left for 1 key of 17, and whoever looks for it asks
    everyone before he believes them; of 12, for 1 of 600."""
    small_network: int = 100
    split_bits: int = 5
    """How many bits one hop gains: buckets far from this node are split that deep."""
    lanes: int = 3
    """Questions of one lookup that are open at once; an overdue one does not count."""
    paths: int = 3
    """A lookup walks that many ways that share no node, so that no liar is on all of them."""
    quorum: int = 4
    """Holders that are read before the newest of their records is believed. Where a fifth of all
    nodes show old ones, three agree on one in 1 of 125 lookups; four in 1 of 625."""
    asks_max: int = 160
    """Of one lookup, however many nodes it is told of."""
    hedge_rtts: float = 3.0
    hedge_floor_loopback_s: float = 0.020
    hedge_floor_s: float = 0.150
    late_hedges: float = 5.0
    """After that many hedge delays a peer is taken for lost, unless it still answers in time."""
    hard_timeout_s: float = 1.5
    stall_s: float = 0.25
    """A timer that is this late says that this process slept, not that the peer did."""
    refresh_s: float = HOUR_S
    first_refresh_s: float = 0.05
    republish_s: float = 6 * HOUR_S
    republish_jitter: float = 0.1
    quiet_s: float = 15 * MINUTE_S
    """The oldest contact of a full bucket is greeted when it was silent for that long."""
    token_s: float = 5 * MINUTE_S
    keys_max: int = 20_000
    bytes_max: int = 64 * MB
    requests_per_s: float = 50.0
    requests_burst: int = 100
    contacts_per_prefix_in_bucket: int = 2
    contacts_per_prefix: int = 10
    remembered_contacts: int = 1024
    """Beside those in the routing table."""
