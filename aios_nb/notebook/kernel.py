"""Everything that only ipykernel knows, guarded: each trick has a fallback that merely is slower.

Text and widgets come from the node's thread. Which cell a message belongs to, and which of the
kernel's shells hears the answer, ipykernel decides by the *parent* of what is published.
"""

from __future__ import annotations

import contextvars
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from aios_nb.errors import UsageError

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


def running_kernel() -> Any:
    """The ipykernel of this process, or None: a terminal, a script."""
    base = sys.modules.get("ipykernel.kernelbase")
    if base is None or not base.Kernel.initialized():
        return None
    return base.Kernel.instance()


def main_loop() -> asyncio.AbstractEventLoop | None:
    """The loop on which the kernel runs cells; None before it turns, and outside a kernel."""
    turning = getattr(running_kernel(), "io_loop", None)
    loop: asyncio.AbstractEventLoop | None = getattr(turning, "asyncio_loop", None)
    return loop


class Cell(NamedTuple):
    """The cell that runs, and this run of it."""

    id: str
    run: str


def cell_now() -> Cell | None:
    """Which cell runs here and now; None where nobody says so: a terminal, papermill."""
    shell: Any = getattr(running_kernel(), "shell", None)
    try:
        parent = shell.get_parent()
        return Cell(str(parent["metadata"]["cellId"]), str(parent["header"]["msg_id"]))
    except (AttributeError, KeyError, TypeError):
        return None


def unbound(action: Callable[[], T]) -> T:
    """Do it as nobody's request: what is published belongs to no cell.

    From ipykernel 7.4 on, a widget hears the page on the shell whose request it last published
    under. One made in a cell would hear nothing until that cell is over; one that belongs to no
    cell leaves the choice to the page, which takes a shell of its own. Older kernels ignore it.
    """
    kernel = running_kernel()
    parent = getattr(kernel, "_shell_parent", None)
    if not isinstance(parent, contextvars.ContextVar):
        return action()

    def apart() -> T:
        parent.set({})
        return action()

    return contextvars.copy_context().run(apart)


def disown(*, always: bool) -> None:
    """From now on, in this context, what is printed or shown belongs to no cell.

    Such output goes to JupyterLab's log. Without this it would go to whichever cell runs or ran
    last. Unless ``always``, a context that has a cell, because that cell asked, keeps it.
    """
    shell = getattr(running_kernel(), "shell", None)
    for out in (sys.stdout, sys.stderr, *(getattr(shell, n, None) for n in _DISPLAYS)):
        parent = getattr(out, "_parent_header", None)
        if isinstance(parent, contextvars.ContextVar) and (always or not parent.get({})):
            parent.set({})


_DISPLAYS = ("display_pub", "displayhook")


def refuse_input(refused: Callable[[], str]) -> Callable[[], None]:
    """``input()`` fails at once where ``refused()`` says why; the result ends that.

    A box that nobody waits for any more keeps the page from running any other cell. Between cells
    there is no box, only an end of file, whoever reads.
    """
    kernel = running_kernel()

    def guarded(ask: Callable[..., str]) -> Callable[..., str]:
        def asked(*args: Any, **named: Any) -> str:
            why = refused()
            if why:
                raise UsageError(why, hint="ask the person by ctx.ask_user(…)")
            return ask(*args, **named)

        return asked

    # From its next cell on the kernel puts the first two in place of Python's own; the others are
    # those, kept by it while a cell runs and put back behind it.
    names = ("raw_input", "getpass", "_sys_raw_input", "_save_getpass")
    before = {name: ask for name in names if callable(ask := getattr(kernel, name, None))}
    for name, ask in before.items():
        setattr(kernel, name, guarded(ask))

    def end() -> None:
        for name, ask in before.items():
            setattr(kernel, name, ask)

    return end


@contextmanager
def sigint_kept() -> Iterator[None]:
    """Requests that the kernel handles inside leave the handling of interrupts as it was.

    The kernel keeps the handler to go back to in one place; a request that is handled in the
    middle of another one overwrites it, and the idle kernel could then be killed by an interrupt.
    """
    kernel = running_kernel()
    before = signal.getsignal(signal.SIGINT)
    kept = getattr(kernel, "saved_sigint_handler", None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
        if kept is not None:
            kernel.saved_sigint_handler = kept
