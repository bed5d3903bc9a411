"""``%load_ext aios_nb``: puts everything into the shell, and has a node start behind it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from aios_nb.notebook import completion, engine, failures, questions, show
from aios_nb.notebook.magics import AiosMagics
from aios_nb.notebook.session import Session, session_of
from aios_nb.notebook.welcome import Welcome
from aios_nb.site import Site


def load(shell: Any) -> None:
    """Return at once; a line of welcome fills in as the node comes up. Twice does no harm."""
    session = session_of(shell)
    if session.uninstalls:
        return
    engine.install(session)
    session.uninstalls += [
        _offer_chats(session),
        show.install(shell),
        failures.install(shell, session),
        completion.install(shell, session),
        questions.install(shell),
        _register_magics(shell, session),
        _end_bridges,
    ]
    session.start()
    session.uninstalls.append(Welcome(shell, session).close)


def unload(shell: Any) -> None:
    """Take everything out again, and stop the node."""
    session = session_of(shell)
    while session.uninstalls:
        session.uninstalls.pop()()
    session.stop()


def _register_magics(shell: Any, session: Session) -> Callable[[], None]:
    ours = AiosMagics(shell, session)
    shell.register_magics(ours)

    def unregister() -> None:
        for kind, names in ours.magics.items():
            for name in names:
                shell.magics_manager.magics[kind].pop(name, None)

    return unregister


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
