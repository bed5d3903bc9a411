"""What is going on, for whoever waits longer than a second; nothing is left of it afterwards.

One place per cell: a loop that asks a hundred times does not leave a hundred empty outputs.
"""

from __future__ import annotations

import asyncio
import contextvars
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from aios_nb.loop import beside
from aios_nb.notebook.show import page
from aios_nb.notebook.show.live import Display, TerminalLine, has_page
from aios_nb.notebook.show.page import Bundle, dim, esc
from aios_nb.people.layout import seconds
from aios_nb.richtext import one_line

AFTER_S = 1.0
"""A wait that is shorter needs no word."""
STEP_S = 0.5
_SHARE = re.compile(r"\((\d{1,3})%\)\s*\Z")
"""How far an agent says it is, as ``ctx.progress`` puts it."""


class Cell:
    """The cell that runs: where its progress is shown. ``next`` when another one begins."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.number = 0
        self._display: Display | None = None
        self._line = TerminalLine()

    def next(self, *_: Any) -> None:
        self.number += 1
        self._display = None

    def show(self, doing: str, since: float, note: str) -> None:
        """Say what is waited for; on any thread."""
        waited = seconds(time.monotonic() - since)
        if not has_page(self._shell):
            self._line.show(" · ".join(filter(None, (f"{doing} … {waited}", note))))
            return
        if self._display is None:
            self._display = Display(self._shell)
        self._display.show(bundle(doing, waited, note))

    def clear(self) -> None:
        self._line.clear()
        if self._display is not None:
            self._display.clear()


def bundle(doing: str, waited: str, note: str) -> Bundle:
    """A line; with a bar if the agent says how far it is."""
    share = _SHARE.search(note)
    bar = (
        f'<span class="bar"><i style="width:{min(100, int(share[1]))}%"></i></span>'
        if share
        else ""
    )
    said = f"<span>{esc(doing)} …</span>{bar}{dim(note)}{dim(waited)}"
    text = one_line(" · ".join(filter(None, (f"{doing} … {waited}", note))))
    return page.bundle(f'{page.STYLE}<div class="{page.KIND} line">{said}</div>', text)


class Patience:
    """An ``async with`` on the node's loop that tells a person what is waited for."""

    def __init__(self, cell: Cell, doing: str) -> None:
        self._cell = cell
        self._doing = doing
        self._since = time.monotonic()
        self._note = ""
        self._task: asyncio.Task[None] | None = None
        self._shown = False

    def note(self, text: str) -> None:
        self._note = text

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._tell())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._shown:
            await asyncio.shield(asyncio.to_thread(self._cell.clear))

    async def _tell(self) -> None:
        await asyncio.sleep(AFTER_S)
        while True:
            self._shown = True
            await beside(self._cell.show, self._doing, self._since, self._note)
            await asyncio.sleep(STEP_S)


@contextmanager
def waiting(cell: Cell, doing: str) -> Iterator[None]:
    """The same around what blocks this thread."""
    since, over = time.monotonic(), threading.Event()
    context = contextvars.copy_context()  # what is shown belongs to the cell that waits

    def tell() -> None:
        pause = AFTER_S
        while not over.wait(pause):
            cell.show(doing, since, "")
            pause = STEP_S

    teller = threading.Thread(target=context.run, args=(tell,), name="aios-patience", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
        cell.clear()
