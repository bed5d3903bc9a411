"""Settings with their defaults, in one place, with units in their names."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from aios_nb.tilde import expanded

KB = 1 << 10
MB = 1 << 20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds what. One preset; a site that needs other numbers passes its own."""

    body_bytes: int = 4 * MB
    file_bytes: int = 20 * MB
    batch_calls: int = 100
    connections: int = 2000
    header_wait_s: float = 10.0
    body_wait_s: float = 30.0
    keepalive_s: float = 75.0
    hello_wait_s: float = 5.0
    ws_unproven: int = 64
    """Sockets that have not shown a token yet."""
    ws_calls: int = 1000
    """Calls in flight on one socket."""
    links: int = 1500
    """Links to other nodes."""
    links_half_open: int = 64
    """Links whose other end has not proven its key yet."""
    stranger_links: int = 256
    """Links that nodes nobody vouched for have opened."""
    stranger_handshakes_per_s: float = 20.0
    stranger_held_bytes: int = 64 * MB
    """What the links of all strangers hold in memory: half messages, answers that are not read."""
    refused_per_s: float = 20.0
    """Requests without a valid token answered per second; the rest get 429."""
    open_per_s: float = 50.0
    """Requests without a token on the doors that are open to anyone, together."""
    queue_per_agent_conversation: int = 5
    runs: int = 2000
    """Runs at once on this node, waiting ones included."""
    threads: int = 256
    open_streams: int = 1000
    call_memory_days: float = 7.0
    stranger_runs: int = 64
    """Runs at once for all strangers together, waiting ones included."""
    stranger_calls_per_s: float = 50.0
    stranger_seconds_per_min: float = 600.0
    """What agents may work for strangers in a minute; ten at a time, on average."""
    stranger_log_bytes: int = 50 * MB
    """What strangers said and were told, and the ids of their calls."""
    stranger_log_days: float = 7.0
    stranger_blob_bytes: int = 200 * MB
    known_log_bytes: int = 200 * MB
    known_log_days: float = 30.0
    callers: int = 20_000
    """Strangers that are remembered at once."""
    records: int = 20_000
    """Of other nodes' agents, known here; a site may hold more."""
    agents_per_publisher: int = 64
    """Of one node the owner has not allowed. A node's own agents are not counted."""
    blobs_bytes: int = 2048 * MB
    blob_days: float = 30.0
    """A file nobody refers to is dropped after this long."""
    library_files: int = 5000
    """Files of one folder that the librarian reads."""
    library_passages: int = 20_000
    """What it holds of them in memory; a passage has up to 1000 characters."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How one node is started."""

    name: str | None = None
    home: Path | None = None
    host: str = "127.0.0.1"
    port: int = 0
    public_url: str | None = None
    allow_hosts: tuple[str, ...] = ()
    network: str = "main"
    """Nodes of different networks do not talk. It separates; it does not protect."""
    join: tuple[str, ...] = ()
    """``URL`` or ``URL#NODEID`` of nodes to link to; ``joining.JoinAddress`` reads them."""
    gossip: bool = True
    """Without it, agents are found by asking joined nodes."""
    dht: bool = True
    """Without it, nodes are found only where gossip or a link has told that they are."""
    library: Path | None = None
    """The folder that the librarian looks in, instead of the one it was told last."""
    conformance: bool = False
    limits: Limits = Limits()


def home_dir() -> Path:
    """``$AIOS_HOME``, else ``~/.aios_nb``."""
    return expanded(os.environ.get("AIOS_HOME") or "~/.aios_nb")
