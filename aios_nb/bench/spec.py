"""What the bench tells its load generator, and what it hears back. JSON lines over pipes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from aios_nb.errors import AiosError

Work = Literal[
    "echo", "rpc", "send", "events", "stream", "message", "message-stream",
    "mcp-list", "mcp-send", "a2a-send",
]  # fmt: skip


class Broken(AiosError):
    """A benchmark that cannot be believed: a wrong reply, or a contestant that died."""


class Missing(AiosError):
    """A benchmark that is left out here: what it compares with is not installed."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where to send, what, and over how many connections.

    On ``ws`` and ``peer``: how many in flight on one.
    """

    url: str
    wire: Literal["http", "ws", "peer", "mcp-session"] = "http"
    """``mcp-session``: HTTP, where each connection has an MCP session of its own."""
    path: str = "/rpc"
    headers: tuple[tuple[str, str], ...] = ()
    """On HTTP: what the head of each request has besides what all have."""
    work: Work
    concurrency: int
    token: str | None = None
    node_id: str | None = None
    agent: str = "bench_echo"
    wanted: str = ""
    """The result that must come back, as JSON, where it is always the same."""
    keep_conversation: bool = False
    """One conversation per slot, instead of a fresh one per call."""
    chunks: int = 0
    pid: int | None = None
    """The server's process, whose CPU time is read around each window."""
    other_pid: int | None = None
    """A second node that has a part in every call."""
    seed: str = ""
    """On ``peer``: what the key of the client's node is made from (``keys.identity``)."""
    side: Literal["read", "stalled", "idle"] | None = None
    """On ``peer``, not to be driven: streams that begin at once and are read, or are not; or
    ``concurrency`` links on which nothing is said."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How long, how many or how fast. With ``rate`` the loop is open, otherwise closed."""

    seconds: float | None = None
    count: int | None = None
    rate: float | None = None
    keep: bool = False
    """Return every latency, not only the summary."""


class Window(msgspec.Struct, kw_only=True):
    """What one stretch of load showed. Times in milliseconds unless named otherwise."""

    replies: int
    wrong: int
    first_wrong: str | None
    seconds: float
    p50: float
    p99: float
    mean: float
    low: float
    high: float
    first_p50: float | None = None
    """Time to the first piece of a streamed reply."""
    cpu_us: float | None = None
    """Server CPU per reply; None where the system does not tell."""
    other_us: float | None = None
    """The same of the second node."""
    client_us: float = 0.0
    lag_p99: float = 0.0
    """Open loop: how late the generator itself sent."""
    samples: Sequence[float] = ()

    @property
    def rate(self) -> float:
        """Right replies per second."""
        return self.replies / self.seconds if self.seconds > 0 else 0.0


class Open(msgspec.Struct, frozen=True, tag="open", tag_field="do"):
    target: Target


class Drive(msgspec.Struct, frozen=True, tag="drive", tag_field="do"):
    session: int
    load: Load


class Close(msgspec.Struct, frozen=True, tag="close", tag_field="do"):
    session: int


Command = Open | Drive | Close


class Answer(msgspec.Struct, omit_defaults=True):
    """Exactly one of these per command."""

    session: int | None = None
    window: Window | None = None
    error: str | None = None


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value that ``share`` of the ordered values do not exceed; 0 for none."""
    if not ordered:
        return 0.0
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
