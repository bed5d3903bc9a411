"""An answer while it is written: on a page, or line by line in a terminal.

``take`` is called on the node's loop and only notes what came; what shows it runs beside the loop,
in a thread, so that a long text holds nobody up.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from aios_nb.loop import beside
from aios_nb.notebook.show import page, progress
from aios_nb.notebook.show import reply as face
from aios_nb.notebook.show.agents import spoken
from aios_nb.notebook.show.live import Display, TerminalLine, has_page
from aios_nb.people.layout import seconds
from aios_nb.people.values import is_table_alone
from aios_nb.people.written import Written
from aios_nb.richtext import Growing, one_line, to_html
from aios_nb.site import Reply

LOOK_S = 0.1
"""Between two looks at what came: ten updates a second at most."""
BYTES_PER_S = 500_000
"""An update sends all there is so far; a long text is sent less often."""
SAY_AFTER_S = 1.0


class Stage(Protocol):
    """Where an answer appears."""

    def take(self, text: str, note: str | None) -> None:
        """A piece of it, or a word about how far the agent is."""

    async def play(self) -> None:
        """Show what comes, until cancelled."""

    def finish(self, reply: Reply) -> None:
        """All of it."""

    def stop(self, why: str) -> None:
        """There will be no more; what there was stays."""


def stage(shell: Any, agent: str, sent: Sequence[str] = ()) -> Stage:
    """The one for this shell; ``sent``: the files that go with the question."""
    return PageStage(shell, agent, sent) if has_page(shell) else TerminalStage(agent, sent)


def _asking(agent: str, sent: Sequence[str]) -> str:
    return f"asking {spoken(agent)[0]} {face.with_files(sent)}".rstrip()


class PageStage:
    """A display that grows."""

    def __init__(self, shell: Any, agent: str, sent: Sequence[str]) -> None:
        self._display = Display(shell)
        self._agent = agent
        self._sent = sent
        self._since = time.monotonic()
        self._growing = Growing()
        self._blocks: list[str] = []
        self._text: list[str] = []
        self._fresh: list[str] = []
        self._note = ""
        self._looked = 0.0

    def take(self, text: str, note: str | None) -> None:
        if text:
            self._fresh.append(text)
        if note is not None:
            self._note = note

    async def play(self) -> None:
        pause = LOOK_S
        while True:
            await asyncio.sleep(pause)
            now = time.monotonic()
            silent = now - max(self._since, self._looked) >= SAY_AFTER_S
            if self._fresh or silent:
                self._looked = now
                sent = await beside(self._update)
                pause = max(LOOK_S, sent / BYTES_PER_S)

    def finish(self, reply: Reply) -> None:
        before = ""
        if reply.status == "input_required":  # the question comes after what was said so far
            self._grow()
            before = "".join(self._blocks)
        took_s = time.monotonic() - self._since
        self._display.show(face.reply(reply, took_s, before, self._sent))

    def stop(self, why: str) -> None:
        self._grow()
        if self._text:
            self._display.show(self._bundle(why))
        else:
            self._display.clear()

    def _update(self) -> int:
        """Show it as it is now; how much that was."""
        self._grow()
        waited = seconds(time.monotonic() - self._since)
        if self._text:
            bundle = self._bundle("writing …", self._note, waited)
        else:
            bundle = progress.bundle(_asking(self._agent, self._sent), waited, self._note)
        self._display.show(bundle)
        return len(bundle["text/html"])

    def _grow(self) -> None:
        fresh, self._fresh = self._fresh, []
        if fresh:
            piece = "".join(fresh)
            self._text.append(piece)
            keep, blocks = self._growing.feed(piece)
            self._blocks[keep:] = [to_html([block]) for block in blocks]

    def _bundle(self, *words: str) -> page.Bundle:
        head = face.byline(self._agent, face.with_files(self._sent), *words)
        body = "".join(self._blocks)
        text = "".join(self._text)
        return page.bundle(page.bare(f'{head}<div class="b">{body}</div>'), face.plain_text(text))


class TerminalStage:
    """Text as it comes."""

    def __init__(self, agent: str, sent: Sequence[str]) -> None:
        self._agent = agent
        self._sent = sent
        self._since = time.monotonic()
        self._written = Written(on=True)
        self._line = TerminalLine()
        self._fresh: list[str] = []
        self._note = ""

    def take(self, text: str, note: str | None) -> None:
        if text:
            self._fresh.append(text)
        if note is not None:
            self._note = note

    async def play(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            await beside(self._update)

    def _update(self) -> None:
        fresh, self._fresh = "".join(self._fresh), []
        if fresh:
            self._line.clear()
            self._written.add(fresh)
        elif self._written.is_blank and time.monotonic() - self._since >= SAY_AFTER_S:
            waited = seconds(time.monotonic() - self._since)
            asking = _asking(self._agent, self._sent)
            self._line.show(f"{asking} … {waited} {one_line(self._note)}")

    def finish(self, reply: Reply) -> None:
        self._update()
        self._line.clear()
        alone = is_table_alone(str(reply), reply.data) and self._written.is_blank
        if reply.status == "input_required":  # the question comes after what was said so far
            self._written.end_line()
            sys.stdout.write(f"{face.plain_text(reply)}\n")
        elif not alone:
            self._written.finish(str(reply))
        rest = face.beside(reply, alone=alone, sent=self._sent)
        if rest:
            sys.stdout.write("\n".join(rest) + "\n")
            sys.stdout.flush()

    def stop(self, why: str) -> None:
        del why
        self._line.clear()
        self._written.end_line()


async def ended(playing: asyncio.Task[None]) -> None:
    """Stop showing what comes: the end is shown by whoever knows it."""
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing
