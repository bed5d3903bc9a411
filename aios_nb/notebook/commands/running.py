"""``up`` and ``down``."""

from __future__ import annotations

from typing import Any

from aios_nb.notebook.commands import Call
from aios_nb.notebook.commands.status import status
from aios_nb.notebook.show.faces import cell_of
from aios_nb.notebook.show.progress import waiting
from aios_nb.notebook.show.results import Note, Status

_ALSO_CALLED = {"allow_host": "allow_hosts"}


def up(call: Call) -> Status:
    """Have a node with these choices; one that only came along makes way for it."""
    options: dict[str, Any] = {
        _ALSO_CALLED.get(name, name): tuple(value) if isinstance(value, list) else value
        for name, value in call.values.items()
        if value not in (None, [])
    }
    with waiting(cell_of(call.shell), "starting the node"):
        call.session.up(**options)
    return status(call)


def down(call: Call) -> Note:
    if call.session.state not in {"up", "starting"}:
        return Note("no node is running")
    with waiting(cell_of(call.shell), "stopping the node"):
        call.session.stop()
    return Note("the node is stopped; %aios up starts it again")
