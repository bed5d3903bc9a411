"""``%load_ext aios_nb``: puts everything into the shell, and has a node start behind it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from aios_nb.journal import keep_to_ourselves
from aios_nb.notebook import completion, engine, failures, questions, show
from aios_nb.notebook.kernel import refuse_input
from aios_nb.notebook.magics import AiosMagics
from aios_nb.notebook.session import Session, session_of
from aios_nb.notebook.welcome import Welcome
from aios_nb.site import Site


def load(shell: Any) -> None:
    """Return at once; a line of welcome fills in as the node comes up. Twice does no harm."""
    session = session_of(shell)
    if session.uninstalls:
        return
    engine.install(shell, session)
    installs: tuple[Callable[[], Callable[[], None]], ...] = (
        lambda: _offer_chats(session),
        lambda: show.install(shell),
        lambda: failures.install(shell),
        lambda: completion.install(shell, session),
        lambda: questions.install(shell),
        lambda: _register_magics(shell, session),
        lambda: _follow_cells(shell),
        lambda: refuse_input(lambda: _why_no_input(session)),
        keep_to_ourselves,
    )
    try:
        for install in installs:
            session.uninstalls.append(install())
        session.start()
        session.uninstalls.append(Welcome(shell, session).close)
    except BaseException:  # interrupted: half of it would be taken for all of it
        _take_out(session)
        raise


def unload(shell: Any) -> None:
    """Take everything out again, and stop the node. Loaded again, the next one is as chosen."""
    session = session_of(shell)
    # First what takes time: who interrupts that still has the magics.
    _end_bridges()
    session.pause()
    _take_out(session)


def _take_out(session: Session) -> None:
    while session.uninstalls:
        session.uninstalls.pop()()


def _register_magics(shell: Any, session: Session) -> Callable[[], None]:
    ours = AiosMagics(shell, session)
    shell.register_magics(ours)

    def unregister() -> None:
        for kind, names in ours.magics.items():
            for name in names:
                shell.magics_manager.magics[kind].pop(name, None)

    return unregister


def _follow_cells(shell: Any) -> Callable[[], None]:
    """What the last run of a cell showed is gone when it is run again."""

    def begins(_: Any) -> None:
        panel = sys.modules.get("aios_nb.notebook.widgets.panel")
        if panel is not None:  # else no widget was made
            panel.cell_begins()

    shell.events.register("pre_run_cell", begins)
    return lambda: shell.events.unregister("pre_run_cell", begins)


def _why_no_input(session: Session) -> str:
    """An agent is asked by anyone, and may outlive its cell: nobody need be at the keyboard."""
    here = threading.current_thread().name.startswith("aios-agent")
    here = here or (session.desk is not None and engine.is_nobodys(session.desk))
    return "an agent cannot use input(): nobody need be there to type" if here else ""


def _end_bridges() -> None:
    """Those that ``%aios telegram start`` began; loads nothing if there are none."""
    thread = sys.modules.get("aios_nb.bridges.thread")
    if thread is not None:
        thread.stop_all()


def _offer_chats(session: Session) -> Callable[[], None]:
    """``hits[0].chat()`` opens the widget."""

    def open_chat(_: Site, agent: str) -> Any:
        from aios_nb.notebook.widgets.chat import AgentChat

        return AgentChat(session, agent)

    Site.chat_face = open_chat

    def end() -> None:
        Site.chat_face = None

    return end
