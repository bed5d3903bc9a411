"""The words of ``simulate``."""

from __future__ import annotations

import argparse
from typing import Protocol

from aios_nb.cli import numbers
from aios_nb.people.numbers import count, seconds


class Actions(Protocol):
    """Where the actions of a command are added."""

    def add(
        self,
        name: str,
        does: str,
        about: str,
        *,
        node: bool = True,
        home: bool = True,
        example: str | None = None,
    ) -> argparse.ArgumentParser: ...


def describe(actions: Actions) -> None:
    """Adds what can be simulated."""
    _gossip(actions)
    _lookups(actions)
    _network(actions)


def _gossip(actions: Actions) -> None:
    gossip = _simulated(
        actions,
        "gossip",
        "how fast a rumour reaches everybody: a model, to a million nodes",
        example="aios-nb simulate gossip --nodes 100 10000 --loss 0.25",
    )
    _sizes(gossip)
    _loss(gossip)
    _dead(gossip)
    gossip.add_argument(
        "--runs", metavar="N", type=count, default=5, help="rumours of each size (5)"
    )


def _lookups(actions: Actions) -> None:
    lookups = _simulated(
        actions,
        "lookups",
        "how long it takes to find a node by its id: a model, to a million nodes",
        example="aios-nb simulate lookups --nodes 100000 --dead 0.3",
    )
    _sizes(lookups)
    _dead(lookups)
    lookups.add_argument(
        "--sybils",
        metavar="SHARE",
        type=numbers.share,
        default=0.0,
        help="share of nodes that name only each other and keep nothing, such as 0.2",
    )
    lookups.add_argument(
        "--rtt",
        metavar="S",
        type=seconds,
        default=0.08,
        help="median round trip in seconds (0.08)",
    )
    lookups.add_argument(
        "--lookups", metavar="N", type=count, default=100, help="of each kind (100)"
    )


def _network(actions: Actions) -> None:
    network = _simulated(
        actions,
        "network",
        "the real gossip of up to 400 nodes, on a clock that does not wait",
        example="aios-nb simulate network --nodes 30 --kill 6",
    )
    network.add_argument("--nodes", metavar="N", type=numbers.nodes, default=30, help="(30)")
    _loss(network)
    network.add_argument(
        "--kill", metavar="N", type=numbers.whole, default=0, help="nodes that die at once (0)"
    )
    network.add_argument(
        "--accusers",
        metavar="N",
        type=numbers.whole,
        default=0,
        help="nodes that call all others dead, again and again (0)",
    )


def _simulated(actions: Actions, name: str, about: str, *, example: str) -> argparse.ArgumentParser:
    command = actions.add(name, f"simulate:{name}", about, node=False, home=False, example=example)
    command.add_argument(
        "--seed",
        metavar="N",
        type=numbers.whole,
        default=0,
        help="the same seed, the same numbers (0)",
    )
    return command


def _sizes(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--nodes",
        metavar="N",
        type=numbers.nodes,
        nargs="+",
        default=[1000],
        help="how many there are; several sizes make several rows (1000)",
    )


def _loss(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--loss",
        metavar="SHARE",
        type=numbers.share,
        default=0.0,
        help="share of packets that never arrive, such as 0.25",
    )


def _dead(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--dead",
        metavar="SHARE",
        type=numbers.share,
        default=0.0,
        help="share of nodes that have just died, such as 0.3",
    )
