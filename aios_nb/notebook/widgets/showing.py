"""A chat as a cell's output: the widget, and beside it the conversation in print, kept up to date.

What a cell displays is saved with the notebook as it was when it was displayed. So it is displayed
under an id and updated: at the end of a cell where no page is there (papermill), else when nobody
types or scrolls and nothing is being written, because a page draws an updated output anew. Where
the caret rests is no reason to wait: the new view takes it over.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aios_nb.client import get_file
from aios_nb.errors import AiosError
from aios_nb.notebook.kernel import running_kernel
from aios_nb.notebook.widgets import printed
from aios_nb.notebook.widgets.items import Item

if TYPE_CHECKING:
    from aios_nb.notebook.widgets.chat import AgentChat
    from aios_nb.notebook.widgets.talk import Talk

CALM_S = 3.0
"""After the last change, before an output that somebody looks at is drawn anew."""
STALE_S = 120.0
"""A page in which somebody types says so every 20 s; one that does not was closed."""
SNAPSHOT_S = 5.0
PICTURE_BYTES = 300_000
"""Of one picture in a saved notebook; a larger one is named."""
PICTURES_BYTES = 2_000_000
"""Of all pictures in one saved conversation."""


class Showing:
    """Where and how one chat is displayed."""

    def __init__(self, chat: AgentChat) -> None:
        self._chat = chat
        self._display_id = ""
        self._shell: Any = None
        self._version = 0
        """Of the conversation; raised with every change of it."""
        self._printed = 0
        """The version that was displayed last."""
        self._restless: dict[str, float] = {}
        """Views that somebody types in, and when they said so."""
        self._met = False
        """Whether a page has ever said a word."""
        self._timer: asyncio.TimerHandle | None = None
        self._bundle: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        """The conversation as it was displayed last."""
        self._talk: Talk | None = None
        """The conversation as it was last; without a node, that is what there is."""

    # What is displayed -------------------------------------------------------------------------

    def display(self) -> None:
        """Put it under the cell that runs; called where that cell is."""
        from IPython import get_ipython

        self._shell = get_ipython()
        if self._shell is None:
            print(self.bundle()["text/plain"])  # noqa: T201 - a plain Python prompt
            return
        if not self._display_id:
            self._display_id = secrets.token_hex(8)
            if running_kernel() is not None:  # what a terminal has printed stays as it is
                self._shell.events.register("post_run_cell", self._cell_ended)
        self._publish(update=False)

    def _publish(
        self, *, update: bool, now: dict[str, str] | None = None, version: int | None = None
    ) -> None:
        """``now``: what was printed of ``version``; there may be a later one already."""
        self._printed = self._version if version is None else version
        self._shown = now or self.bundle()
        bundle, metadata = self._chat.mimebundle(self._shown)
        transient = {"display_id": self._display_id}
        self._shell.display_pub.publish(bundle, metadata, transient=transient, update=update)

    def bundle(self) -> dict[str, str]:
        """The conversation as it is now, as text and as HTML."""
        site, talk = self._chat.host.site(), self._chat.talk or self._talk
        if talk is not None:
            with contextlib.suppress(AiosError):  # stopped in the meantime
                if site is None or site.loop.is_here() or self._chat.talk is None:
                    self._bundle = _print(*_said(talk), {})
                else:
                    self._bundle = site.run(lambda: _printed(talk))
        if not self._bundle:
            why = f"AgentChat: the node is not running ({self._chat.host.problem()})"
            return {"text/plain": why, "text/html": printed.as_html(why, (), {})}
        return self._bundle

    # When --------------------------------------------------------------------------------------

    def changed(self) -> None:
        """There is something new; on the node's loop."""
        self._talk = self._chat.talk or self._talk  # a stopped node's last rows come after it went
        self._version += 1
        self._soon()

    def heard(self, message: Mapping[str, Any]) -> None:
        """A page said hello or bye, or whether somebody types in it; on the node's loop."""
        view = str(message.get("view", ""))
        self._met = True
        if message["type"] == "calm" and not message.get("calm"):
            self._restless[view] = asyncio.get_running_loop().time()
            return
        if message["type"] != "hello":  # a view says that more than once: somebody types in it
            self._restless.pop(view, None)
        self._soon()

    def _typing(self) -> bool:
        """Whether somebody would be disturbed."""
        stale = asyncio.get_running_loop().time() - STALE_S
        self._restless = {view: at for view, at in self._restless.items() if at > stale}
        return bool(self._restless)

    def _soon(self, pause_s: float = CALM_S) -> None:
        if not self._display_id or not self._met:
            return
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(pause_s, self._update)

    def _update(self) -> None:
        self._timer = None
        if not self._display_id:  # not displayed any more
            return
        talk = self._chat.talk
        at_work = talk is None or bool(talk.here.transcript.writing)
        if self._version == self._printed or at_work:
            return
        if self._typing():
            self._soon(STALE_S)
            return

        async def update() -> None:
            if talk is None:
                return
            version, now = self._version, await _printed(talk)
            if not self._display_id:  # not displayed any more
                return
            if now == self._shown:  # an agent came or went: nothing that is worth drawing anew
                self._printed = version
            elif self._typing():  # somebody has begun to meanwhile
                self._soon(STALE_S)
            else:
                self._bundle = now
                self._publish(update=True, now=now, version=version)

        self._chat.work(update())

    def _cell_ended(self, *_: Any) -> None:
        """On the kernel's thread, while what is displayed still belongs to the cell."""
        if not self._met and self._version != self._printed:
            self._publish(update=True)

    def close(self) -> None:
        """It is not displayed any more; again is another output."""
        self._display_id = ""
        if self._shell is not None:
            with contextlib.suppress(ValueError):
                self._shell.events.unregister("post_run_cell", self._cell_ended)


async def _printed(talk: Talk) -> dict[str, str]:
    """With its pictures."""
    pictures: dict[str, bytes] = {}
    room = PICTURES_BYTES
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SNAPSHOT_S):
            await talk.ready.wait()
            for item in reversed(talk.here.transcript.sorted()):
                for file in item.files:
                    if printed.is_picture(file) and file["size"] <= min(room, PICTURE_BYTES):
                        with contextlib.suppress(AiosError):
                            pictures[file["sha256"]] = await get_file(talk.client, file)
                            room -= file["size"]
    return await asyncio.to_thread(_print, *_said(talk), pictures)


def _said(talk: Talk) -> tuple[str, str, list[Item]]:
    """All that is printed of it, as it is now."""
    name = (talk.agent or talk.wanted).partition("@")[0]
    return talk.heading(), name, talk.here.transcript.sorted()


def _print(
    title: str, name: str, items: Sequence[Item], pictures: Mapping[str, bytes]
) -> dict[str, str]:
    if not items:
        begin = f'Nothing was said yet. Where there is no window: %aios ask {name} …, or .ask("…")'
        return {
            "text/plain": f"{title}\n\n{begin}",
            "text/html": printed.as_html(title, (), {}, begin),
        }
    return {
        "text/plain": printed.as_text(title, items),
        "text/html": printed.as_html(title, items, pictures),
    }
