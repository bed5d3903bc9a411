"""Our types in IPython's formatters, and in the eyes of whoever waits."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from aios_nb.notebook.show import FACES, made
from aios_nb.notebook.show.progress import Cell, Patience
from aios_nb.site import Site

_TOLD = ("aios_nb.notebook.show.told", "Told")
_CELL = "_aios_cell"


def cell_of(shell: Any) -> Cell:
    """The cell that runs in this shell. It is kept there: modules may be loaded again."""
    cell: Cell | None = getattr(shell, _CELL, None)
    if cell is None:
        cell = Cell(shell)
        setattr(shell, _CELL, cell)
    return cell


class Faces:
    """What is registered in one shell, to be taken out again."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._undo: list[Callable[[], Any]] = []

    def put_on(self) -> None:
        shell = self._shell
        formatter = shell.display_formatter
        for kind in FACES:
            show = functools.partial(made, kind)
            self._register(formatter.mimebundle_formatter, kind, show)
            # IPython has printers for str and list, which would come before the bundle's text.
            self._register(
                formatter.formatters["text/plain"], kind, functools.partial(_print, kind)
            )
        self._register(formatter.ipython_display_formatter, _TOLD, self._show_told)
        cell = cell_of(shell)
        shell.events.register("pre_run_cell", cell.next)
        self._undo.append(lambda: shell.events.unregister("pre_run_cell", cell.next))
        self._watch_waits(cell)

    def take_off(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _register(self, formatter: Any, kind: tuple[str, str], face: Any) -> None:
        formatter.for_type_by_name(*kind, face)
        self._undo.append(lambda: formatter.pop(".".join(kind), None))

    def _watch_waits(self, cell: Cell) -> None:
        Site.wait_face = functools.partial(Patience, cell)
        self._undo.append(lambda: setattr(Site, "wait_face", None))

    def _show_told(self, told: Any) -> None:
        told.show_again(self._shell)


def _print(kind: tuple[str, str], value: Any, printer: Any, cycle: bool) -> None:  # noqa: FBT001
    """For the plain-text formatter. Inside a list, a value is shown as Python shows it."""
    text = made(kind, value).get("text/plain") if len(printer.stack) == 1 and not cycle else None
    for number, line in enumerate((repr(value) if text is None else text).split("\n")):
        if number:
            printer.break_()
        printer.text(line)
