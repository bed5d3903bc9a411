"""A node as ``aios-nb up --json`` starts it, with one more method: a stateless echo.

``bench.echo`` goes the whole road (guard, dispatch, JSON) and does no work, to time the road.
``python -m aios_nb.bench.bare`` prints the ready line and runs until it is told to stop; with
``--join`` it is linked to another node.
"""

from __future__ import annotations

import argparse
import json
import signal
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

from aios_nb.access import Caller, Principal
from aios_nb.agents.load import load_agents
from aios_nb.bench.spec import Broken
from aios_nb.config import Settings
from aios_nb.loop import own_process
from aios_nb.node import Node
from aios_nb.params import Params
from aios_nb.wire.methods import Method


class Echo(Params, frozen=True):
    agent: str
    task: str


def _echo(_: Principal, params: Echo) -> dict[str, str]:
    return {"text": params.task}


_CALLERS = frozenset({Caller.OWNER, Caller.KNOWN, Caller.NODE})
ECHO = Method("bench.echo", Echo, _CALLERS, handler=_echo)


def start(name: str, join: Sequence[str] = ()) -> tuple[Node, dict[str, Any]]:
    """A running node with the bench agents, and what to print when it is ready."""
    # Calls are measured here: the network has its own scenarios.
    settings = Settings(name=name, join=tuple(join), gossip=False, dht=False)
    node = Node(settings, load_agents("aios_nb.bench.agents"), methods=[ECHO]).start()
    run = node.run_info or _never()
    return node, {"url": run.url, "token": run.token, "node_id": run.node_id}


def _never() -> NoReturn:
    raise Broken("a started node has no address")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="bench")
    parser.add_argument("--join", action="append", default=[], metavar="URL#NODEID")
    options = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    node, ready = start(options.name, options.join)
    own_process()
    print(json.dumps(ready), flush=True)
    stop.wait()
    node.stop()


if __name__ == "__main__":
    main()
