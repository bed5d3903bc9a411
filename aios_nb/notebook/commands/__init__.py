"""What the words of ``%aios`` do. Each function takes a ``Call`` and gives what is shown."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aios_nb.node import Node
    from aios_nb.notebook.parser import Command
    from aios_nb.notebook.session import Session


class Call:
    """One line that was typed: where, and what it says."""

    def __init__(
        self, shell: Any, session: Session, command: Command, values: dict[str, Any]
    ) -> None:
        self.shell = shell
        self.session = session
        self.command = command
        self.values = values

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def node(self) -> Node:
        """The notebook's node; waits for one that is starting, and says so."""
        if self.session.state != "starting":
            return self.session.node()
        from aios_nb.notebook.show.faces import cell_of
        from aios_nb.notebook.show.progress import waiting

        with waiting(cell_of(self.shell), "waiting for the node to start"):
            return self.session.node()


def run(call: Call) -> Any:
    """Do what was asked for."""
    module, _, function = call.command.does.partition(":")
    does = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    return does(call)
