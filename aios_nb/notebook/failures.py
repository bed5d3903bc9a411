"""Errors in a cell: one line that says what to do, no traceback, and the cell still fails.

IPython asks an exception how it wants to be shown (``_render_traceback_``); the error itself
travels on as it is, so papermill and ``except`` see it. A custom handler of the shell would do too,
but there is only one such place, and it may be somebody else's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aios_nb.errors import AgentFailed, AiosError
from aios_nb.journal import journal
from aios_nb.people.wording import NOTEBOOK, in_words
from aios_nb.richtext import one_line, plain
from aios_nb.site import Site

_HOOK = "_render_traceback_"
_RED, _PLAIN = "\x1b[31m", "\x1b[0m"


def install(shell: Any) -> Callable[[], None]:
    """From now on errors of ours are one line in this process's cells; the result ends that."""

    def render(error: AiosError) -> list[str]:
        said = one_line(in_words(error, NOTEBOOK))
        return [f"{_RED}{said}{_PLAIN}" if _has_colours(shell) else said]

    setattr(AiosError, _HOOK, render)
    Site.stop_face = shorten

    def uninstall() -> None:
        Site.stop_face = None
        if AiosError.__dict__.get(_HOOK) is render:
            delattr(AiosError, _HOOK)

    return uninstall


def _has_colours(shell: Any) -> bool:
    from aios_nb.notebook.show.live import has_page

    return has_page(shell) or (sys.stdout.isatty() and shell.colors.lower() != "nocolor")


def last_traceback(shell: Any) -> str:
    """Of the last error in a cell, with what led to it; empty when there was none.

    Of an agent of this node that failed: where in its own lines that was.
    """
    error = getattr(sys, "last_value", None)
    if error is None:
        return ""
    if isinstance(error, AgentFailed) and "message_id" in error.data:
        logged = journal.traceback_of(error.data["message_id"])
        if logged:
            return plain(logged)
    trace = getattr(sys, "last_traceback", None) or error.__traceback__
    with _without_echo(error):
        lines = shell.InteractiveTB.structured_traceback(type(error), error, trace)
    return str(shell.InteractiveTB.stb2text(lines))


@contextmanager
def _without_echo(error: BaseException) -> Iterator[None]:
    """An error of the node comes from the same one inside it; once is enough to read."""
    cause = error.__cause__
    echoes = isinstance(error, AiosError) and isinstance(cause, AiosError)
    if not echoes or str(error) != str(cause):
        yield
        return
    error.__cause__ = None  # which leaves the context hidden as well
    try:
        yield
    finally:
        error.__cause__ = cause


def leave_group(error: AiosError) -> None:
    """Forget the group of tasks that an error came out of.

    IPython asks nobody how to show what has one in its context, not even when it is hidden.
    """
    inner: BaseException = error
    while (outer := inner.__context__) is not None:
        if isinstance(outer, BaseExceptionGroup):
            inner.__context__ = None
            return
        inner = outer


def shorten(stop: KeyboardInterrupt, what: str) -> None:
    """The person stopped a wait of ours: one line says so, not where in our code it was."""
    if not hasattr(stop, _HOOK):
        setattr(stop, _HOOK, lambda: [f"KeyboardInterrupt: {what} was stopped"])


@contextmanager
def in_one_line() -> Iterator[None]:
    """Inside, a mistake of our own is one line as well."""
    try:
        yield
    except AiosError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {one_line(str(error))}"
        raise AiosError(said, hint="%aios debug shows where") from error
