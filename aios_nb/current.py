"""What this program has one of: its own node, and the agents declared in it. State, and no more.

It stands apart so that it lasts: ``%reload_ext`` and ``%autoreload`` run modules again, and these
then forget what they held.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Literal

from aios_nb.errors import NotRunning

log = logging.getLogger("aios_nb.node")

State = Literal["down", "starting", "up", "stopping", "failed"]

_LOOK_S = 0.5
"""A wait with a time-out can be interrupted on every platform."""


class Program:
    """The node of this program from its start to its end; for any thread."""

    def __init__(self) -> None:
        self.state: State = "down"
        self.node: Any = None
        """The ``Node``, while it is up."""
        self.problem = "stopped"
        """Why there is none, in one line."""
        self.chosen = False
        """Whether somebody asked for this node; one that merely came along may be replaced."""
        self.declared: dict[str, Any] = {}
        """Agents by name, the last definition of each; a starting node hosts them."""
        self.sink: Callable[[Any], None] | None = None
        """Where a declared agent goes too: to the running node."""
        self.attend: Callable[[Future[Any]], None] | None = None
        """How the main thread waits when agents may need it meanwhile."""
        self._changed = threading.Condition()
        self._told: list[Callable[[], None]] = []

    def begin(self, *, wait: bool = True) -> bool:
        """True: starting is the caller's business now, until ``came`` or ``failed``.

        False: a node is up. Without ``wait`` also: one starts or stops.
        """
        with self._changed:
            while self.state in {"starting", "stopping"}:
                if not wait:
                    return False
                self._changed.wait(_LOOK_S)
            if self.state == "up" and self.node.running:
                return False
            self._set("starting", None, "starting")
        try:
            self._tell()
        except BaseException:  # interrupted: nobody would ever finish what was begun
            self.failed("interrupted")
            raise
        return True

    def came(self, node: Any, *, chosen: bool) -> None:
        with self._changed:
            self.chosen, self.sink = chosen, node.adopt
            self._set("up", node, "")
        self._tell()

    def failed(self, problem: str) -> None:
        with self._changed:
            self._set("failed", None, problem)
        self._tell()

    def take(self, within_s: float | None = None) -> Any:
        """The node for whoever stops it, until ``ended``; None when there is none.

        ``TimeoutError``: until then one starts or stops.
        """
        until = None if within_s is None else time.monotonic() + within_s
        with self._changed:
            while self.state in {"starting", "stopping"}:
                if until is not None and time.monotonic() > until:
                    raise TimeoutError
                self._changed.wait(_LOOK_S)
            node = self.node
            self._set("down" if node is None else "stopping", None, "stopped")
        self._tell_end(node)
        return node

    def leaves(self, node: Any) -> bool:
        """Whether it was this program's node; stopping it is then the caller's, until ``ended``."""
        with self._changed:
            if self.node is not node:
                return False
            self._set("stopping", None, "stopped")
        self._tell_end(node)
        return True

    def _tell_end(self, node: Any) -> None:
        try:
            self._tell()
        except BaseException:  # interrupted: nobody would stop it
            if node is not None:
                self.came(node, chosen=self.chosen)
            raise

    def ended(self) -> None:
        with self._changed:
            self._set("down", None, "stopped")
        self._tell()

    def wait(self, within_s: float | None = None) -> Any:
        """The running node; waits for one that is starting. None when there is none by then."""
        until = None if within_s is None else time.monotonic() + within_s
        with self._changed:
            while self.state == "starting":
                left = _LOOK_S if until is None else min(_LOOK_S, until - time.monotonic())
                if left <= 0:
                    break
                self._changed.wait(left)
            return self.running

    def there(self) -> Any:
        """The running node, waited for if it is starting; ``NotRunning`` when there is none."""
        node = self.wait()
        if node is None and self.state == "failed":
            raise NotRunning(f"the node could not start: {self.problem}")
        if node is None:
            raise NotRunning("no node is running in this program", hint="start it with aios.up()")
        return node

    @property
    def running(self) -> Any:
        """The node if it is up now."""
        node = self.node
        return node if node is not None and node.running else None

    def subscribe(self, told: Callable[[], None]) -> Callable[[], None]:
        """Call ``told``, on any thread, whenever the state has changed; the result ends that."""
        self._told.append(told)

        def leave() -> None:
            if told in self._told:
                self._told.remove(told)

        return leave

    def _set(self, state: State, node: Any, problem: str) -> None:
        self.state, self.node, self.problem = state, node, problem
        if node is None:
            self.sink = None
        self._changed.notify_all()

    def _tell(self) -> None:
        for told in tuple(self._told):
            try:
                told()
            except Exception:
                log.exception("somebody who is told of the node failed")

    def forget(self) -> None:
        """In a forked child: the node stayed behind, and so did whoever held the lock."""
        self._changed = threading.Condition()
        self._told = []
        self.node = self.sink = self.attend = None
        self.state = "down"
        self.problem = "it lives in the process that this one was forked from"


program = Program()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=program.forget)
