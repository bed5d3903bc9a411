"""Who is there to talk to: agents here and elsewhere, as they come and go."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from aios_nb.client import SiteClient
from aios_nb.envelope import NODE_ID
from aios_nb.errors import AiosError, NoSuchAgent, Unreachable
from aios_nb.notebook.widgets.errands import Errands
from aios_nb.people.naming import NODE_SHOWN, is_built_in
from aios_nb.richtext import one_line

SHOWN_MAX = 8
"""Agents that a list offers for what is being typed."""
HELPERS_MAX = 3
HELPER_SCORE = 0.5
"""Of the best match. Below that an agent shares a word with the draft, and no more."""
_BY_MEANING = "close in meaning"
"""Alone it is no reason to offer an agent: something is always the closest."""
QUERY_CHARS = 400
ABOUT_CHARS = 160


class Company:
    """The agents that the node tells of, kept up to date by ``agents.watch``."""

    def __init__(self, client: SiteClient, changed: Callable[[str], None]) -> None:
        """``changed``: told the id of an agent that came, changed or went."""
        self._client = client
        self._changed = changed
        self._rows: dict[str, dict[str, Any]] = {}
        self._gone: set[str] = set()
        self._nodes: dict[str, str] = {}
        """Names of other nodes, by their ids."""
        self._cards: dict[str, dict[str, Any]] = {}
        self._met: dict[str, str] = {}
        """How an agent stood when its card was asked for, where no row tells."""
        self._errands = Errands()

    async def start(self) -> None:
        flow = self._client.notices("agents.watch")
        there = await flow.result()
        for row in there["agents"]:
            self._know(row)

        async def follow() -> None:
            async for event in flow:
                self._take(event)

        self._errands.run(follow())

    async def close(self) -> None:
        await self._errands.close()

    def _take(self, event: dict[str, Any]) -> None:
        row = event["agent"]
        agent = row["id"]
        self._cards.pop(agent, None)
        self._met.pop(agent, None)
        if event["event"] == "withdrawn":
            self._rows.pop(agent, None)
            self._gone.add(agent)
        else:
            self._know(row)
        self._changed(agent)

    def _know(self, row: dict[str, Any]) -> None:
        self._rows[row["id"]] = row
        self._gone.discard(row["id"])
        if row.get("node_name"):
            self._nodes[row["node_id"]] = one_line(row["node_name"])

    # One agent ---------------------------------------------------------------------------------

    def is_ours(self, agent: str) -> bool:
        return agent.partition("@")[2] == self._client.node_id

    def standing(self, agent: str) -> str:
        """``alive``, ``suspect`` (its node does not answer), ``gone``; empty: nobody can tell."""
        row = self._rows.get(agent)
        if row is not None:
            return "alive" if row["live"] else "suspect"
        if agent in self._gone or self.is_ours(agent):
            return "gone"
        return self._met.get(agent, "")

    def node_name(self, node_id: str) -> str:
        """A node for people: by its name if an agent of it told, else the start of its id."""
        if node_id == self._client.node_id:
            return self._client.name
        return self._nodes.get(node_id) or node_id[:NODE_SHOWN]

    def named(self, name: str) -> list[str]:
        """The ids of all agents of that name, ours first."""
        found = [row["id"] for row in self._rows.values() if row["name"] == name]
        return sorted(found, key=lambda agent: (not self.is_ours(agent), agent))

    def row(self, agent: str) -> dict[str, Any]:
        """Its row as a page shows it; with less in it where nothing is known."""
        row = self._rows.get(agent) or {"name": agent.partition("@")[0], "about": ""}
        node = agent.partition("@")[2]
        return {
            "id": agent,
            "name": one_line(row["name"]),
            "about": one_line(row["about"])[:ABOUT_CHARS],
            "node": "" if self.is_ours(agent) else self.node_name(node),
            "state": self.standing(agent),
            "changed": bool(row.get("changed")),
            "built_in": is_built_in(row, self._client.node_id),
        }

    async def identify(self, ref: str) -> str:
        """The id of what was typed. Raises ``NoSuchAgent``, or ``Unreachable`` for no certainty."""
        name, _, node = ref.partition("@")
        ours = f"{name}@{self._client.node_id}"
        if (not node or ours.startswith(ref)) and ours in self._rows:
            return ours
        if NODE_ID.fullmatch(node):
            return ref
        try:
            answer = await self._client.call("agents.card", agent=ref)
        except Unreachable:
            told = self.named(name)
            if len(told) == 1:
                return told[0]
            raise
        agent = str(answer["card"]["id"])
        self._learnt(agent, answer)
        return agent

    def known_card(self, agent: str) -> dict[str, Any]:
        """What it says about itself, as far as it was asked."""
        return self._cards.get(agent, {})

    async def card(self, agent: str) -> None:
        """Ask it what it says about itself, unless that is known."""
        if agent not in self._cards:
            try:
                self._learnt(agent, await self._client.call("agents.card", agent=agent))
            except NoSuchAgent:
                self._met[agent] = "gone"
            except Unreachable:
                self._met[agent] = "suspect"
            except AiosError:
                self._met.pop(agent, None)

    def _learnt(self, agent: str, answer: dict[str, Any]) -> None:
        self._met[agent] = "alive"
        self._cards[agent] = {
            **answer["card"],
            "verified": answer["verified"] and (bool(answer["record"]) or self.is_ours(agent)),
        }

    # Several -----------------------------------------------------------------------------------

    async def complete(self, typed: str, first: Collection[str] = ()) -> list[dict[str, Any]]:
        """Agents for a name that is being typed; ``first`` are those of the conversation."""
        names = {agent: agent.partition("@")[0] for agent in (*first, *self._rows)}
        ids = [agent for agent, name in names.items() if typed in name]

        def rank(agent: str) -> tuple[bool, bool, bool, str]:
            starts = names[agent].startswith(typed)
            return not starts, agent not in first, not self.is_ours(agent), agent

        ids.sort(key=rank)
        if typed and len(ids) < SHOWN_MAX:
            found = [row["id"] for row in await self._search(typed)]
            ids += [agent for agent in found if agent not in ids]
        return [self.row(agent) for agent in ids[:SHOWN_MAX]]

    async def helpful(self, draft: str, without: Collection[str]) -> list[dict[str, Any]]:
        """Agents that might help with what is being typed and are not in the conversation."""
        found = [row for row in await self._search(draft) if row["score"] >= HELPER_SCORE]
        fresh = [self.row(row["id"]) for row in found if row["id"] not in without]
        return fresh[:HELPERS_MAX]

    async def _search(self, words: str) -> list[dict[str, Any]]:
        query = words[:QUERY_CHARS]
        answer = await self._client.call("agents.search", query=query, limit=SHOWN_MAX)
        for row in answer["agents"]:
            if row["id"] not in self._rows:
                self._know(row)
        return [
            row
            for row in answer["agents"]
            if row["live"] and not row["why"].startswith(_BY_MEANING)
        ]
