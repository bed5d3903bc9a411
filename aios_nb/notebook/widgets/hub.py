"""AgentHub: who is out there, found while typing, followed live, one key away from a chat."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec
import traitlets

from aios_nb.envelope import AgentRow, now_iso
from aios_nb.errors import AiosError
from aios_nb.notebook.kernel import unbound
from aios_nb.notebook.show.agents import cells, here, of_node
from aios_nb.notebook.show.page import panel, wide
from aios_nb.notebook.widgets.browse import Browser, Question
from aios_nb.notebook.widgets.panel import Host, Panel, asset
from aios_nb.site import Site

SAVED_ROWS = 20
"""Rows for who cannot ask: saved notebooks, pages without widgets."""
TEXT_ABOUT = 80
SAVE_S = 1.0
SNAPSHOT_S = 5.0
CHATS_MAX = 6
"""Chats that stay open behind the one that is shown."""


class AgentHub(Panel):
    """Search, rows, details, and a chat inside it. ``query``: what to look for at first."""

    _esm = asset("common.js", "rows.js", "emptiness.js", "inside.js", "hub.js")
    _css = asset("common.css", "hub.css")

    chat = traitlets.Unicode().tag(sync=True)
    """The chat that is open in it, as anywidget names a widget; empty without one. A page that
    closes it empties this: that needs no node."""

    def __init__(self, host: Host, query: str = "") -> None:
        self._question = Question(query)
        self._browser: Browser | None = None
        self._following: asyncio.Task[Any] | None = None
        self._saving: asyncio.TimerHandle | None = None
        self._chats: dict[str, Any] = {}
        self._opening = asyncio.Lock()
        """One chat after the other, in the order of the clicks."""
        super().__init__(host)
        self.begin()

    # The node ----------------------------------------------------------------------------------

    async def attached(self, site: Site) -> None:
        await self._attach(site).ask(self._question)

    def _attach(self, site: Site) -> Browser:
        with contextlib.suppress(RuntimeError):  # of a node that was stopped, with its loop
            if self._following is not None:
                self._following.cancel()
        self._saving = None
        self._opening = asyncio.Lock()
        self._browser = browser = Browser(site.client, self._told)
        self._following = self.work(browser.follow())
        return browser

    def detached(self, problem: str) -> None:
        self._browser = None
        super().detached(problem)

    def _told(self, message: dict[str, Any]) -> None:
        if self._browser is not None:
            self.tell(message)
            if message["type"] in {"page", "fresh"}:
                self._save_soon()

    # The page ----------------------------------------------------------------------------------

    async def receive(self, message: dict[str, Any], buffers: Sequence[bytes]) -> None:
        del buffers
        kind = message.get("type")
        if kind == "hello":
            await self._welcome(message)
        elif kind == "look":
            self._question = Question.read(message)
            marks = {"ask": message.get("ask"), "view": message.get("view")}
            await self._here().ask(self._question, **marks)
        elif kind == "card":
            self.tell(await self._here().card(str(message.get("agent"))))
        elif kind == "chat":
            await self._open_chat(str(message.get("agent")))
        elif kind == "approve":
            agent = str(message.get("agent"))
            await self._here().approve(agent, str(message.get("pin")))
            self.tell(await self._here().card(agent))

    def _here(self) -> Browser:
        site = self.there()
        return self._browser or self._attach(site)

    async def _welcome(self, message: dict[str, Any]) -> None:
        browser = self._here()
        client = self.host.site()
        own = {} if client is None else {"node": client.client.node_id, "name": client.client.name}
        self.tell({"type": "welcome", "own": own})
        if browser.page is None:
            await browser.ask(self._question, view=message.get("view"))
        else:
            self.tell({"type": "page", **browser.page, "view": message.get("view")})
        if browser.around:
            self.tell({"type": "around", **browser.around})

    # Chats -------------------------------------------------------------------------------------

    async def _open_chat(self, agent: str) -> None:
        async with self._opening:
            chat = self._chats.pop(agent, None)
            if chat is None:
                # In a thread: whoever makes a widget may wait for the node, which is this loop.
                making = asyncio.create_task(asyncio.to_thread(_make_chat, self.host, agent))
                try:
                    chat = await asyncio.shield(making)
                except asyncio.CancelledError:
                    making.add_done_callback(_close_made)
                    raise
            self._chats[agent] = chat
            if self.closed:  # since it was asked for
                self._close_chats()
                return
            if self.resting:
                chat.rest()
            self._close_chats(keep=CHATS_MAX)
            self._show_chat(f"anywidget:{chat.model_id}")

    def _close_chats(self, keep: int = 0) -> None:
        """The oldest first."""
        for agent in tuple(self._chats)[: max(0, len(self._chats) - keep)]:
            chat = self._chats.pop(agent, None)
            if chat is not None:  # else another thread closes it
                chat.close()

    def _show_chat(self, reference: str) -> None:
        if reference and reference == self.chat:
            self.tell({"type": "chat"})  # it is there: whoever asked may go on in it
        unbound(lambda: self.set_trait("chat", reference))

    def rested(self) -> None:
        super().rested()
        for chat in tuple(self._chats.values()):
            chat.rest()

    def ended(self) -> None:
        self._close_chats()

    # For who cannot ask ------------------------------------------------------------------------

    def _save_soon(self) -> None:
        if self._saving is None:
            self._saving = asyncio.get_running_loop().call_later(SAVE_S, self._save)

    def _save(self) -> None:
        self._saving = None
        browser = self._browser
        if browser is not None and browser.page is not None:
            rows = browser.page["rows"][:SAVED_ROWS]
            saved = {**browser.page, "rows": rows, "around": browser.around, "at": now_iso()}
            unbound(lambda: self.set_trait("saved", saved))

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        made = super()._repr_mimebundle_(**kwargs)
        if made is None:
            return None
        data, metadata = made
        page, note = self._snapshot()
        return {
            **data,
            "text/plain": as_text(page, note),
            "text/html": as_html(page, note),
        }, metadata

    def _snapshot(self) -> tuple[dict[str, Any], str]:
        """The page as it is now, and one line about it. Does not wait for a node that starts."""
        site = self.host.site()
        empty = {"rows": [], "total": 0}
        if site is None:
            return empty, f"the node is not running: {self.host.problem()}"
        if site.loop.is_here():
            return (self._browser and self._browser.page) or empty, ""
        question = Question(self._question.words, count=SAVED_ROWS)

        async def look() -> dict[str, Any]:
            async with asyncio.timeout(SNAPSHOT_S):
                return await Browser(site.client, lambda _: None).look(question)

        try:
            return site.run(look, "looking for agents"), ""
        except (AiosError, TimeoutError) as problem:
            return empty, str(problem) or "the node did not answer"


def _make_chat(host: Host, agent: str) -> Any:
    from aios_nb.notebook.widgets.chat import AgentChat

    chat = AgentChat(host, agent)
    chat.inside = True
    return chat


def _close_made(making: asyncio.Task[Any]) -> None:
    """The node was stopped meanwhile: nobody would ever see it."""
    if not making.cancelled() and making.exception() is None:
        making.result().close()


# Without a browser's help ------------------------------------------------------------------------


def as_text(page: dict[str, Any], note: str = "") -> str:
    """The first rows, one to a line."""
    rows = page["rows"][:SAVED_ROWS]
    wide = max((len(row["name"]) for row in rows), default=0)
    whose = max((len(owner(row)) for row in rows), default=0)
    lines = [f"AgentHub · {_headline(page, note)}"]
    for row in rows:
        about = row["about"] or row["title"]
        short = about if len(about) <= TEXT_ABOUT else about[: TEXT_ABOUT - 1] + "…"
        lines.append(f"  {row['name']:<{wide}}  {owner(row):<{whose}}  {short}".rstrip())
    return "\n".join(lines)


def as_html(page: dict[str, Any], note: str = "") -> str:
    """The same as a table. All of it is text: nothing of an agent becomes markup."""
    rows = [
        cells(_as_told(row), mine=row["mine"], place=owner(row))
        for row in page["rows"][:SAVED_ROWS]
    ]
    return panel("AgentHub", _headline(page, note), wide(rows) if rows else "")


def _as_told(row: dict[str, Any]) -> AgentRow:
    """A row of the page as the node tells it."""
    return msgspec.convert({**row, "node_id": row["node"]}, AgentRow)


def owner(row: dict[str, Any]) -> str:
    """Whose agent it is: its node by name and the start of its id."""
    return here() if row["mine"] else of_node(row["node_name"], row["node"])


def _headline(page: dict[str, Any], note: str) -> str:
    if note:
        return note
    shown, total = len(page["rows"][:SAVED_ROWS]), page["total"]
    if not shown:
        return "nobody matches" if page.get("words") else "nobody is here yet"
    agents = "agent" if total == 1 else "agents"
    return f"{total} {agents}" if shown >= total else f"the first {shown} of {total} {agents}"
