"""``doctor``, ``log``, ``debug``, ``help``: when something is wrong."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator

from aios_nb.errors import UsageError
from aios_nb.journal import journal
from aios_nb.notebook import failures, helptext
from aios_nb.notebook.commands import Call
from aios_nb.notebook.parser import COMMANDS, parse
from aios_nb.notebook.show.faces import cell_of
from aios_nb.notebook.show.progress import waiting
from aios_nb.notebook.show.results import Checkup, Lines
from aios_nb.people.checks import Check, fail, ok, warn
from aios_nb.richtext import plain

_LINES = 30


def doctor(call: Call) -> Checkup:
    """What works on this machine, in this notebook and from outside, and how to mend the rest."""
    import asyncio

    from aios_nb.home import Home
    from aios_nb.loop import LoopThread
    from aios_nb.people.checks.bridges import bridges
    from aios_nb.people.checks.interop import interop
    from aios_nb.people.checks.machine import machine
    from aios_nb.people.checks.nodes import nodes
    from aios_nb.people.checks.storage import storage

    site = call.session.site()
    home = Home(getattr(getattr(site, "settings", None), "home", None))

    def near() -> list[Check]:
        return [*_notebook(call), *machine(), *storage(home), *bridges(home)]

    async def look() -> list[Check]:
        run = getattr(site, "run_info", None)
        found = [*await asyncio.to_thread(near), *await nodes(home)]
        return [*found, *(await interop(run) if run is not None else ())]

    beside = LoopThread("aios-doctor")  # the kernel's loop is running
    beside.start()
    within_s: float | None = 0.0  # interrupted, what was begun is cancelled and tidies up behind
    try:
        with waiting(cell_of(call.shell), "looking around"):
            found = beside.sync(look)
        within_s = None
    finally:
        beside.stop(within_s)
    return Checkup(found)


def _notebook(call: Call) -> Iterator[Check]:
    state = call.session.state
    if state == "up":
        yield ok("this node", f"{getattr(call.session.site(), 'name', 'it')} is up")
    elif state == "failed":
        yield fail("this node", call.session.problem(), "%aios up tries again")
    else:
        yield warn("this node", f"is {call.session.problem()}", "%aios up starts it")
    if "ipykernel" in sys.modules:
        yield ok("kernel", f"ipykernel {importlib.metadata.version('ipykernel')}")
    else:
        yield ok("kernel", "none: widgets are shown as text")


def log(call: Call) -> Lines:
    """The newest line is the last."""
    kept = list(journal.lines)[-(call["limit"] or _LINES) :]
    return Lines(plain("\n".join(kept)) or "the log is empty")


def debug(call: Call) -> Lines:
    said = failures.last_traceback(call.shell)
    return Lines(said or "there was no error yet")


def explain(call: Call) -> Lines:
    name = call["command"]
    if name in {"agent", "%%agent"}:
        return Lines(helptext.offering())
    if name and name not in COMMANDS:
        parse(name)  # says what there is
        raise UsageError(f"there is no %aios {name}")
    return Lines(helptext.of(name))
