"""The one line that ``%load_ext`` shows, and that fills in as the node comes up."""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable
from typing import Any

from aios_nb.notebook.hosted import reach
from aios_nb.notebook.kernel import running_kernel
from aios_nb.notebook.session import Session
from aios_nb.people.naming import NODE_SHOWN

SETTLED_S = 30.0
"""After this long the line stays as it is: it tells of the start, `%aios` of now."""
HELP = "try %aios?"


class Welcome:
    """Shown in the cell that loads us. Elsewhere than in a kernel it is printed, and stays."""

    def __init__(self, shell: Any, session: Session) -> None:
        self._shell = shell
        self._session = session
        self._lock = threading.Lock()
        self._until = time.monotonic() + SETTLED_S
        self._told = Line(line(session))
        self._pending = False
        self._node: Any = None
        """The one that it tells of, from when it is up."""
        self._over = False
        self._leaves: list[Callable[[], None]] = []
        if running_kernel() is None:
            print(self._told)  # noqa: T201 - a terminal has no display that could be updated
            return
        from IPython.display import display

        self._handle: Any = display(self._told, display_id=True)  # type: ignore[no-untyped-call]
        self._leaves = [
            session.subscribe(self._refresh),
            session.roster.subscribe(self._refresh),
        ]
        shell.events.register("post_run_cell", self._cell_ended)
        self._refresh()

    def close(self) -> None:
        """Leave the line as it is."""
        with self._lock:
            leaves, self._leaves = self._leaves, []
        for leave in leaves:
            leave()
        if leaves:
            self._shell.events.unregister("post_run_cell", self._cell_ended)

    def _refresh(self) -> None:
        """On any thread. A line that says more than the last one takes its place."""
        with self._lock:
            node, now = self._session.site(), Line(line(self._session))
            if node is not self._session.site():  # a node came or went meanwhile: more is told soon
                return
            if self._is_over(node) or str(now) == str(self._told):
                return
            self._told, self._pending = now, True
            self._handle.update(now)

    def _is_over(self, node: Any) -> bool:
        """Whether the line is to stay as it is: it tells of one node, and of how that started."""
        self._over |= not self._leaves or time.monotonic() > self._until
        self._over |= self._session.state == "down"
        self._over |= self._node is not None and node is not self._node
        if self._over:
            return True
        self._node = node
        self._over = self._session.state == "failed"  # said once; who tries again sees it there
        return False

    def _cell_ended(self, _: Any = None) -> None:
        """In a cell of the person's: a saved notebook takes updates only from these."""
        with self._lock:
            if self._pending:
                self._pending = False
                self._handle.update(self._told)
            over = self._over or time.monotonic() > self._until
        if over:
            self.close()


class Line:
    """One line of ours, as text and as HTML."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self._text, "text/html": f"<div>{html.escape(self._text)}</div>"}


def line(session: Session) -> str:
    """How it stands with the node."""
    if session.state == "failed":
        return f"aios_nb: the node could not start: {session.problem()}; %aios up tries again"
    node = session.site()
    if node is None:
        said = "your node is starting" if session.state == "starting" else "no node is running"
        return f"aios_nb: {said}; {HELP}"
    others = session.roster.alive
    known = {0: "no other node known yet", 1: "1 other node known"}.get(
        others, f"{others} other nodes known"
    )
    taken = f"; {node.sibling_of} is taken" if node.sibling_of else ""
    who = f"{node.name} ({node.node_id[:NODE_SHOWN]}{taken})"
    told = f"aios_nb: {who} is up at {node.url}, {reach(node.settings)}; {known}; {HELP}"
    return f"{told}\n{renamed(session)}".rstrip()


def renamed(session: Session) -> str:
    """That the notebook was called otherwise, and how to have back what was said there."""
    was, node = session.earlier, session.site()
    if not was or (node is not None and node.name == was):
        return ""
    return f"this notebook was {was}: %aios up --name {was} has its conversations"
