"""A node as ``aios-nb up --json`` starts it, with one more method: a stateless echo.

``bench.echo`` goes the whole road (guard, dispatch, JSON) and does no work, to time the road.
``python -m aios_nb.bench.bare`` prints the ready line and runs until it is told to stop.
"""

from __future__ import annotations

import json
import signal
import threading
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


ECHO = Method("bench.echo", Echo, frozenset({Caller.OWNER}), handler=_echo)


def start(name: str) -> tuple[Node, dict[str, Any]]:
    """A running node with the bench agents, and what to print when it is ready."""
    node = Node(Settings(name=name), load_agents("aios_nb.bench.agents"), methods=[ECHO]).start()
    run = node.run_info or _never()
    return node, {"url": run.url, "token": run.token, "node_id": run.node_id}


def _never() -> NoReturn:
    raise Broken("a started node has no address")


def main() -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    own_process()
    node, ready = start("bench")
    print(json.dumps(ready), flush=True)
    stop.wait()
    node.stop()


if __name__ == "__main__":
    main()
