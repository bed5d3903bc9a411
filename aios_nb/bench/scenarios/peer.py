"""Calls over one encrypted link between nodes, in units of a bare aiohttp echo."""

from __future__ import annotations

from typing import Any

from aios_nb.bench.contestants import Contestant, allow
from aios_nb.bench.keys import identity
from aios_nb.bench.results import Bench, Result, Scenario
from aios_nb.bench.scenarios.rpc import UNIT, compare
from aios_nb.bench.spec import Target, Work

FEW = 10
STATELESS_MIN = (3.5, 4.5)
"""With ten calls in flight or fewer, and with more."""
DURABLE_MIN = (1.0, 1.5)


def peer_target(node: Contestant, work: Work, concurrency: int, who: str, **more: Any) -> Target:
    """The node as seen over a link, by a known node of that name."""
    allow(node, [identity(who).node_id])
    return node.target(work, concurrency, wire="peer", seed=who, **more)


def _least(pair: tuple[float, float], concurrency: int) -> float:
    return pair[concurrency > FEW]


def _stateless(
    raw: Contestant, node: Contestant, concurrency: int
) -> dict[str, tuple[Target, float | None]]:
    return {
        UNIT: (raw.target("echo", concurrency), None),
        "RPC, peer link": (
            peer_target(node, "rpc", concurrency, "rpc"),
            _least(STATELESS_MIN, concurrency),
        ),
        "RPC, WebSocket": (node.target("rpc", concurrency, wire="ws"), None),
    }


def _durable(
    raw: Contestant, node: Contestant, concurrency: int
) -> dict[str, tuple[Target, float | None]]:
    least = _least(DURABLE_MIN, concurrency)

    def message(who: str, **more: Any) -> Target:
        return peer_target(node, "message", concurrency, who, **more)

    return {
        UNIT: (raw.target("echo", concurrency), None),
        "aios.message, peer link, new conversation each": (message("new"), least),
        "aios.message, peer link, one per slot": (
            message("kept", keep_conversation=True),
            least,
        ),
        "chat.send, WebSocket, one per slot": (
            node.target("send", concurrency, wire="ws", keep_conversation=True),
            None,
        ),
    }


def _peer(bench: Bench) -> Result:
    light, durable = compare(bench, _stateless), compare(bench, _durable)
    return Result(
        rows=[*light.rows, *durable.rows],
        raw={**light.raw, **{f"durable: {name}": taken for name, taken in durable.raw.items()}},
        notes=[
            (
                "One link: handshake, ChaCha20-Poly1305 and a stream for each call. The client"
                " seals, opens and checks as much as the node does, on the other core."
            ),
        ],
    )


PEER = Scenario(
    name="peer",
    title="Calls between nodes",
    target=(
        f"≥ {STATELESS_MIN[0]} x raw aiohttp at 10 in flight and {STATELESS_MIN[1]} x at 50;"
        f" durable ≥ {DURABLE_MIN[0]} x and {DURABLE_MIN[1]} x"
    ),
    why="All calls of a pair of nodes share one connection, which nobody else can read.",
    run=_peer,
)
