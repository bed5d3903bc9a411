"""``%aios``, ``%%aios`` and ``%%agent``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from IPython.core.magic import (
    Magics,
    cell_magic,
    line_cell_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
)

from aios_nb.errors import AiosError, UsageError
from aios_nb.notebook import cellagent, commands, failures, helptext, parser
from aios_nb.notebook.filling import filling, variables
from aios_nb.notebook.session import Session, session_of


@magics_class
class AiosMagics(Magics):
    """The words of a notebook. ``session`` has its node; the shell's own if none is given."""

    def __init__(self, shell: Any, session: Session | None = None) -> None:
        super().__init__(shell=shell)
        self._here = shell
        self._session = session or session_of(shell)

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def aios(
        self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None
    ) -> Any:
        inside = {} if local_ns is self._here.user_ns else local_ns or {}  # of a function
        fill = filling(inside, variables(self._here))
        with failures.in_one_line():
            command, values = parsed = parser.parse(line, fill, self._session.roster.names())
            if cell is not None:
                values = _with_cell(parsed, fill(cell.strip("\n")))
        try:
            with failures.in_one_line():
                return commands.run(commands.Call(self._here, self._session, command, values))
        except AiosError as error:
            failures.leave_group(error)
            raise
        except KeyboardInterrupt as stop:
            failures.shorten(stop, f"%aios {command.name}")
            raise

    @no_var_expand
    @cell_magic
    def agent(self, line: str, cell: str) -> Any:
        return cellagent.offer(self._here, self._session, line, cell)


def _with_cell(parsed: parser.Parsed, cell: str) -> dict[str, Any]:
    command, values = parsed
    if not command.takes_cell:
        raise UsageError(
            f"%aios {command.name} takes no cell", hint=f"one line: %aios {command.usage}"
        )
    last = command.arguments[-1].name
    text = "\n".join(filter(None, (values[last], cell)))
    return {**values, last: text}


AiosMagics.aios.__doc__ = helptext.overview()
AiosMagics.agent.__doc__ = helptext.offering()
