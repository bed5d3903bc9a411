"""``python tuned_node.py LIMITS AGENTS``: a node with other limits, until SIGTERM.

The command line has no options for limits; a test cannot wait for the real ones to pass.
``TUNED_JOIN`` names a node to join, ``TUNED_PULSE`` other times for silent links, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from aios_nb.agents.load import load_agents
from aios_nb.config import Limits, Settings, home_dir
from aios_nb.node import Node
from aios_nb.wire.peer import pulse


def main() -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    limits = Limits(**json.loads(sys.argv[1]))
    definitions = load_agents(str(Path(sys.argv[2])))
    for name, seconds in json.loads(os.environ.get("TUNED_PULSE", "{}")).items():
        assert hasattr(pulse, name)
        setattr(pulse, name, seconds)
    join = tuple(filter(None, [os.environ.get("TUNED_JOIN")]))
    settings = Settings(name="tuned", limits=limits, join=join)
    with Node(settings, definitions).start() as node:
        run = node.run_info
        assert run is not None
        said = {"node_id": run.node_id, "name": run.name, "url": run.url, "token": run.token}
        print(json.dumps({**said, "home": str(home_dir())}), flush=True)  # noqa: T201
        stop.wait()


if __name__ == "__main__":
    main()
