"""The notebook's node, from ``%load_ext`` to the end of the kernel."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Literal

from aios_nb import lifecycle
from aios_nb.current import program
from aios_nb.errors import AiosError, NotRunning, UsageError
from aios_nb.home import CLAIM_WAIT_S, Home
from aios_nb.journal import keep_journal
from aios_nb.loop import EXIT_S
from aios_nb.notebook.kernel import cell_now
from aios_nb.notebook.renamed import NotebookFile
from aios_nb.notebook.roster import Roster

if TYPE_CHECKING:
    from aios_nb.config import Settings
    from aios_nb.node import Node
    from aios_nb.notebook.mainthread import Desk

log = logging.getLogger("aios_nb.notebook")

WAIT_S = CLAIM_WAIT_S + 5.0
"""How long a command waits for a node that is starting, which may first wait for its name."""
_KEPT = "_aios_session"


def session_of(shell: Any = None) -> Session:
    """The session of this IPython shell, which is the current one if none is given."""
    if shell is None:
        from IPython import get_ipython

        shell = get_ipython()
    if shell is None:
        raise UsageError("this needs a notebook or IPython", hint="in a script use aios.up()")
    session: Session | None = getattr(shell, _KEPT, None)
    if session is None:
        session = Session()
        # On the shell, which is never loaded again as edited modules are.
        setattr(shell, _KEPT, session)
    return session


class Session:
    """What magics and widgets ask for the node. It is the one of ``aios.up()`` and ``aios.node()``.

    A ``Host`` for panels: nodes come and go, the session stays.
    """

    def __init__(self) -> None:
        self.roster = Roster()
        self.desk: Desk | None = None
        """Where kernel agents wait for the main thread; None outside a kernel."""
        self.uninstalls: list[Callable[[], None]] = []
        """What takes the extension out of the shell again; empty when it is not loaded."""
        self.earlier = ""
        """The node that this notebook had before its file was renamed."""
        self._kept: Settings | None = None
        """What was chosen for the node that ``pause`` stopped, until there is one again."""
        self._starting: threading.Thread | None = None
        self._following: Future[None] | None = None
        self._followed: Any = None
        self._lock = threading.Lock()
        program.subscribe(self._node_changed)
        atexit.register(self._at_exit)
        self._node_changed()

    @property
    def state(self) -> Literal["starting", "up", "down", "failed"]:
        state = program.state
        if state == "up":
            return "up" if program.running is not None else "down"
        return "down" if state == "stopping" else state

    @property
    def patched(self) -> bool:
        """Whether asyncio was patched, so that a cell can wait for an async kernel agent."""
        return self.desk is not None and self.desk.patched

    def start(self, **options: Any) -> None:
        """Have a node: starts one behind, with what ``aios.up`` takes, unless there is one.

        Without options: with what was chosen for the one that ``pause`` stopped.
        """
        wanted = lifecycle.choices(**options) if options else self._kept
        keep_journal()  # what is logged before there is a node is printed otherwise
        cell = cell_now()
        behind = threading.Thread(
            target=self._launch,
            args=(wanted, cell.id if cell else ""),
            name="aios-start",
            daemon=True,
        )
        if program.begin(wait=False):
            try:
                self._starting = behind
                behind.start()
            except BaseException as error:
                if behind.ident is None:  # nobody would ever finish what was begun
                    program.failed(str(error) or "interrupted")
                raise

    def _launch(self, wanted: Settings | None, cell: str) -> None:
        notebook: NotebookFile | None = None
        with _no_matter():
            notebook = NotebookFile(Home(wanted.home if wanted else None), os.environ, cell)
            self.earlier = notebook.earlier_node()
        try:
            lifecycle.launch(wanted, chosen=wanted is not None)
        except Exception:  # the session tells the problem in one line; this is for the log
            log.warning("the node could not start", exc_info=True)
            return
        self._kept = None
        with _no_matter():
            if notebook is not None:
                notebook.remember(self.earlier)

    def up(self, **options: Any) -> None:
        """Have a node with these choices, now. Without any, a start that failed is tried again."""
        again = self._kept if self.state == "failed" and not options else None
        wanted = again or lifecycle.choices(**options)
        lifecycle.have(wanted, chosen=bool(options or again))
        self._kept = None

    def node(self, within_s: float = WAIT_S) -> Node:
        """The running node; waits a little for one that is starting."""
        node: Node | None = program.wait(within_s)
        if node is not None:
            return node
        if self.state == "starting":
            raise NotRunning("the node is still starting", hint="try again in a moment")
        if self.state == "failed":
            raise NotRunning(
                f"the node could not start: {program.problem}", hint="%aios up tries again"
            )
        raise NotRunning("the node is stopped", hint="%aios up starts it")

    def site(self) -> Node | None:
        """The running node, or None; never waits."""
        node: Node | None = program.running
        return node

    def problem(self) -> str:
        """Why there is no node: ``starting``, ``stopped``, or what went wrong."""
        return program.problem or ("" if program.running is not None else "stopped")

    def subscribe(self, told: Callable[[], None]) -> Callable[[], None]:
        """Call ``told``, on any thread, when the node comes or goes; the result ends that."""
        return program.subscribe(told)

    def stop(self) -> None:
        """Stop the node, if there is one; waits for one that is starting."""
        self._kept = None
        lifecycle.down()

    def pause(self) -> None:
        """The same, until the next ``start``: what was chosen for the node is not forgotten."""
        starting = self._starting
        if starting is not None and starting.ident is not None:
            starting.join()
        node: Node | None = program.wait()
        if node is not None:
            self._kept = node.settings if program.chosen else None
        lifecycle.down()

    def _node_changed(self) -> None:
        site = self.site()
        with self._lock:
            if site is self._followed:
                return
            self._followed = site
            if self._following is not None:
                self._following.cancel()
            self.roster.clear()
            self._following = None
            if site is not None:
                self._following = self._follow(site)

    def _follow(self, site: Node) -> Future[None] | None:
        work = self.roster.follow(site)
        try:
            following = site.loop.submit(work)
        except (AiosError, RuntimeError):  # stopped between two lines
            work.close()
            return None
        following.add_done_callback(_log_failure)
        return following

    def _at_exit(self) -> None:
        with contextlib.suppress(Exception):
            lifecycle.down(EXIT_S)


@contextlib.contextmanager
def _no_matter() -> Iterator[None]:
    """Whatever fails inside is for the log alone: what a notebook was called must cost no node."""
    try:
        yield
    except Exception:
        log.warning("what this notebook was called is not known", exc_info=True)


def _log_failure(following: Future[None]) -> None:
    with contextlib.suppress(CancelledError):
        error = following.exception()
        if error is not None:
            log.error("the roster is not kept any more", exc_info=error)
