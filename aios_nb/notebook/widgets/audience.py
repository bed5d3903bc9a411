"""Who sees a panel: the cells that show it, and the views of pages. Pure; for any thread.

A cell that shows a panel may be run a hundred times, and each run makes another panel. A hundred
that follow the node would tell more than the server lets through, so who is seen by nobody rests.
"""

from __future__ import annotations

import threading

from aios_nb.notebook.kernel import Cell


class Audience:
    """Of one panel. Until a cell that showed it is run again, somebody may see it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[str, str] = {}
        """The cells it is shown under, each with the run that showed it."""
        self._views: set[str] = set()
        self._cleared = False
        """No cell shows it any more; only a page that says so has it still."""

    def shown(self, cell: Cell) -> None:
        with self._lock:
            self._places[cell.id] = cell.run
            self._cleared = False

    def cleared(self, cell: Cell) -> bool:
        """A cell is run: the page has taken away what its last run showed. True: nobody is left."""
        with self._lock:
            if self._places.get(cell.id, cell.run) == cell.run:
                return False
            del self._places[cell.id]
            if self._places:
                return False
            self._views.clear()
            self._cleared = True
            return True

    def came(self, view: str) -> None:
        """A view of a page said hello: perhaps of a notebook that was saved before the last run."""
        with self._lock:
            self._views.add(view)

    def left(self, view: str) -> bool:
        """A view said goodbye. True: nobody is left."""
        with self._lock:
            self._views.discard(view)
            return self._cleared and not self._views
