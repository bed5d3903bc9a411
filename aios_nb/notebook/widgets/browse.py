"""What a hub shows: a question, the page of agents that answers it, and what changes meanwhile.

Lives on the node's loop and knows the node through its ``SiteClient`` alone. It searches and cuts
pages, so that a browser never holds more than ``ROWS_MAX`` rows, whatever the network has.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from aios_nb.client.interface import SiteClient
from aios_nb.errors import RpcError
from aios_nb.filters import read_query
from aios_nb.notebook.widgets.cards import changes, facts, outside
from aios_nb.people.naming import is_built_in
from aios_nb.people.wording import NOTEBOOK, typed
from aios_nb.richtext import one_line

PAGE_ROWS = 50
ROWS_MAX = 200
"""Rows that are ever in the page."""
SEARCHED_MAX = 200
"""Rows that one search gives."""
SETTLE_S = 0.2
"""How long news waits for more: agents come and go in flocks."""
AGAIN_S = 1.0
"""Between two searches that nobody asked for."""
AROUND_S = 5.0
"""Between two looks at the other nodes: how many, how far."""
KNOWN_MAX = 4000
"""Agents among which near names are looked for."""
NEAR_MAX = 5
WORDS_MAX = 500
ABOUT_MAX = 600
"""Of a row; its details have all of it."""

Row = dict[str, Any]
Tell = Callable[[dict[str, Any]], None]


class Question(msgspec.Struct, frozen=True):
    """What is to be shown: of these words, from the ``first`` on, so many."""

    words: str = ""
    only: Literal["all", "live", "mine"] = "all"
    first: int = 0
    count: int = PAGE_ROWS

    @classmethod
    def read(cls, given: dict[str, Any]) -> Question:
        """A question as a page asks it; what makes no sense is left out."""
        only = given.get("only")
        first, count = given.get("first"), given.get("count")
        return cls(
            str(given.get("words") or "")[:WORDS_MAX],
            only if only in {"live", "mine"} else "all",
            max(0, first) if isinstance(first, int) else 0,
            min(ROWS_MAX, max(1, count)) if isinstance(count, int) else PAGE_ROWS,
        )

    def typed(self, own_id: str) -> str:
        """The same as ``agents.search`` takes it."""
        more = {"all": "", "live": "live:yes", "mine": f"node:{own_id}"}[self.only]
        return f"{self.words.strip()} {more}".strip()


class Browser:
    """One hub's view of the network. ``tell`` hears what a page should know."""

    def __init__(
        self, client: SiteClient, tell: Tell, clock: Callable[[], float] = time.time
    ) -> None:
        self._client = client
        self._tell = tell
        self._clock = clock
        self.question = Question()
        self.page: dict[str, Any] | None = None
        """What was told last."""
        self.around: dict[str, Any] = {}
        self._known: dict[str, Row] = {}
        """Rows as they came, of agents that were seen; the first of a large network."""
        self._away: dict[str, float] = {}
        """Since when an agent does not answer, as far as it was noticed."""
        self._stale = asyncio.Event()

    # Asking ----------------------------------------------------------------------------------

    async def ask(self, question: Question, **marks: Any) -> None:
        """Show this from now on; ``marks`` go along with the page that is told."""
        self.question = question
        page = await self.look(question)
        if self.question is not question:  # another one was asked meanwhile
            return
        self.page = page
        self._tell({"type": "page", **page, **marks})
        await self._look_around()

    async def look(self, question: Question) -> dict[str, Any]:
        """The page that answers a question, without showing it."""
        found = await self._search(question)
        if not found["agents"] and question.first:  # they are fewer by now
            question = msgspec.structs.replace(question, first=0)
            found = await self._search(question)
        page = {
            **msgspec.structs.asdict(question),
            "rows": [self._shown(row) for row in found["agents"]],
            "total": found["total"],
            "near": None,
        }
        if not page["rows"]:
            page["near"] = await self._near(question)
        return page

    async def _search(self, question: Question) -> dict[str, Any]:
        first, count = question.first, question.count
        if question.only != "mine":
            return await self._found(question, first, count)
        # Those that every node comes with are nobody's own. They may be anywhere in the list.
        own: list[Row] = []
        total = offset = 0
        while offset == 0 or offset < total:
            found = await self._found(question, offset, SEARCHED_MAX)
            own += [row for row in found["agents"] if not is_built_in(row, self._client.node_id)]
            total, offset = found["total"], offset + SEARCHED_MAX
        return {"agents": own[first : first + count], "total": len(own)}

    async def _found(self, question: Question, first: int, count: int) -> dict[str, Any]:
        found: dict[str, Any] = await self._client.call(
            "agents.search",
            query=question.typed(self._client.node_id),
            limit=count,
            offset=first,
        )
        for row in found["agents"]:
            self._know(row)
        return found

    async def card(self, agent: str) -> dict[str, Any]:
        """All that an agent says of itself, as its node tells it now, and what changed."""
        row = self._known.get(agent)
        try:
            told = await self._client.call("agents.card", agent=agent)
        except RpcError as problem:
            hint = one_line(typed(problem.hint or "", NOTEBOOK))
            said = {"problem": one_line(problem.message), "hint": hint}
            return {"type": "card", "agent": agent, **said}
        return {
            "type": "card",
            "agent": agent,
            "facts": facts(told["card"]),
            "verified": bool(told["verified"]),
            "record": told["record"],
            "used": _when(told.get("used")),
            "changes": changes(told.get("used"), row or {}),
            "outside": outside(told.get("outside")),
        }

    async def approve(self, agent: str, pin: str) -> None:
        """Take a program of others as it was shown."""
        await self._client.call("hub.approve", name=agent, pin=pin)

    # No match --------------------------------------------------------------------------------

    async def _near(self, question: Question) -> dict[str, Any] | None:
        """For a question without an answer: what is near to it. None if it asks for all."""
        if not question.typed(self._client.node_id):
            return None
        words = " ".join(read_query(question.words)[0].split())
        wider = Question(words, count=NEAR_MAX)
        if words and wider.typed("") != question.typed(self._client.node_id):
            found = await self._search(wider)
            if found["agents"]:
                rows = [self._shown(row) for row in found["agents"]]
                return {"kind": "wider", "words": words, "rows": rows, "total": found["total"]}
        names: dict[str, Row] = {}
        for row in self._known.values():
            names.setdefault(row["name"], row)
        alike = _alike(words.lower(), names)
        return {"kind": "alike", "rows": [self._shown(names[name]) for name in alike]}

    # Keeping up ------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Tell what changes, until cancelled or the node stops."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            group.create_task(self._keep_fresh())
            group.create_task(self._keep_looking())

    async def _watch(self) -> None:
        flow = self._client.notices("agents.watch")
        with contextlib.closing(flow), contextlib.suppress(RpcError):  # the node is stopping
            for row in (await flow.result())["agents"]:
                self._know(row)
            self._stale.set()  # who came between the first page and now
            async for change in flow:
                self._changed(change["event"], change["agent"])

    def _changed(self, event: str, row: Row) -> None:
        self._stale.set()
        before = self._row_on_page(row["id"])
        if event == "withdrawn":
            self._known.pop(row["id"], None)
            self._away.pop(row["id"], None)
            if before is not None:
                before["gone"] = True
                self._tell({"type": "gone", "id": row["id"]})
            return
        self._know(row)
        if before is not None:
            now = {**self._shown(row), "why": before["why"]}
            if now != before:
                before.clear()
                before.update(now)
                self._tell({"type": "row", "row": now})

    def _row_on_page(self, agent: str) -> Row | None:
        rows: Sequence[Row] = () if self.page is None else self.page["rows"]
        return next((row for row in rows if row["id"] == agent), None)

    async def _keep_fresh(self) -> None:
        """Look again after news; the page decides when to move its rows."""
        while True:
            await self._stale.wait()
            await asyncio.sleep(SETTLE_S)
            self._stale.clear()
            question = self.question
            if self.page is not None:
                with contextlib.suppress(RpcError):  # busy: the next news comes
                    await self._look_again(question)
            await asyncio.sleep(AGAIN_S)

    async def _look_again(self, question: Question) -> None:
        page = await self.look(question)
        if self.question is question and page != self.page:
            self.page = page
            self._tell({"type": "fresh", **page})
        await self._look_around()

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(AROUND_S)
            with contextlib.suppress(RpcError):
                await self._look_around()

    async def _look_around(self) -> None:
        """How many there are, and how far the nodes on the page."""
        info = await self._client.call("node.info")
        here = (await self._client.call("agents.list"))["agents"]
        peers = (await self._client.call("node.peers"))["peers"]
        there = [peer for peer in peers if peer["state"] in {"alive", "suspect"}]
        shown = {row["node"] for row in (self.page or {}).get("rows", ())}
        far = {
            peer["node_id"]: _rounded(peer["latency_ms"])
            for peer in there
            if peer["node_id"] in shown and peer["latency_ms"] is not None
        }
        known = info.get("known_agents")
        if known is None:
            everyone = await self._client.call("agents.search", query="", limit=1)
            known = everyone["total"] - info["agents"]
        around = {
            "agents": info["agents"] + known,
            "mine": sum(not is_built_in(row, self._client.node_id) for row in here),
            "here": info["agents"],
            "nodes": 1 + len(there),
            "far": far,
        }
        if around != self.around:
            self.around = around
            self._tell({"type": "around", **around})

    # Rows ------------------------------------------------------------------------------------

    def _know(self, row: Row) -> None:
        if row["live"]:
            self._away.pop(row["id"], None)
        else:
            self._away.setdefault(row["id"], self._clock())
        if len(self._known) < KNOWN_MAX or row["id"] in self._known:
            self._known[row["id"]] = row

    def _shown(self, row: Row) -> Row:
        """A row as a page shows it: what strangers wrote is made safe to read."""
        title = one_line(row["title"])
        since = self._away.get(row["id"])
        return {
            "id": row["id"],
            "name": row["name"],
            "title": "" if _squeezed(title) == _squeezed(row["name"]) else title[:ABOUT_MAX],
            "about": one_line(row["about"])[:ABOUT_MAX],
            "tags": [one_line(tag)[:60] for tag in row["tags"]],
            "node": row["node_id"],
            "node_name": one_line(row.get("node_name") or ""),
            "mine": row["node_id"] == self._client.node_id,
            "built_in": is_built_in(row, self._client.node_id),
            "live": row["live"],
            "verified": row["verified"],
            "access": row["access"],
            "why": one_line(row["why"]),
            "version": one_line(row.get("version") or "")[:40],
            "changed": row.get("changed", False),
            "talks": row.get("talks", 0),
            "source": one_line(row.get("source") or "")[:20],
            "away_at": None if since is None else int(1000 * since),
            "gone": False,
        }


def _alike(words: str, names: Iterable[str]) -> list[str]:
    """Names that are spelt much like all of it, or like one of the words."""
    pool = list(names)
    found: dict[str, None] = {}
    for word in dict.fromkeys([words.replace(" ", "_"), *words.split()[:4]]):
        found.update(dict.fromkeys(difflib.get_close_matches(word, pool, NEAR_MAX, 0.5)))
    return list(found)[:NEAR_MAX]


def _squeezed(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _rounded(ms: float) -> float:
    """Two digits: the rest changes with every look and says nothing."""
    return float(f"{ms:.2g}")


def _when(used: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if used is None else {"at": used["at"], "talks": used["talks"]}
