"""A stand-in for a notebook: the main thread works, a node lives beside it.

``python -m aios_nb.bench.cell`` starts a node, prints its ready line, then reads commands from
standard input: ``idle``, ``pyloop`` and ``sort`` (small NumPy calls) say what the main thread does
from now on; ``count`` prints how far it has come.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
import time
from collections.abc import Callable

STEPS_PER_COUNT = 10_000
SORTED_FLOATS = 1000


class Cell:
    """Work for the main thread that can be changed from another one."""

    def __init__(self) -> None:
        self.count = 0
        self._wanted: Callable[[], None] | None = self.rest
        self._change = threading.Event()
        self._work: dict[str, Callable[[], None]] = {"idle": self.rest, "pyloop": self.pyloop}
        if importlib.util.find_spec("numpy"):
            self._work["sort"] = self.sort

    @property
    def kinds(self) -> list[str]:
        return list(self._work)

    def ask(self, kind: str) -> None:
        """Do this from now on; the work in hand sees it at its next count."""
        self._wanted = self._work[kind]
        self._change.set()

    def end(self) -> None:
        self._wanted = None
        self._change.set()

    def run(self) -> None:
        """Work until ``end``."""
        while (work := self._wanted) is not None:
            self._change.clear()
            if work is self._wanted:
                work()

    def rest(self) -> None:
        self._change.wait()

    def pyloop(self) -> None:
        while not self._change.is_set():
            total = 0
            for step in range(STEPS_PER_COUNT):
                total += step & 7
            self.count += 1

    def sort(self) -> None:
        import numpy as np

        values = np.random.default_rng(1).random(SORTED_FLOATS)
        while not self._change.is_set():
            np.sort(values)
            self.count += 1


def _listen(cell: Cell) -> None:
    for line in sys.stdin:
        if line.strip() == "count":
            print(json.dumps({"count": cell.count, "at": time.perf_counter()}), flush=True)
        else:
            cell.ask(line.strip())
            print("{}", flush=True)
    cell.end()


def main() -> None:
    from aios_nb.bench.bare import start

    node, ready = start("cell")
    cell = Cell()
    print(json.dumps(ready | {"kinds": cell.kinds}), flush=True)
    threading.Thread(target=_listen, args=(cell,), daemon=True).start()
    cell.run()
    node.stop()


if __name__ == "__main__":
    main()
