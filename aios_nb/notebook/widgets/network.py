"""``%aios network``: who is there, who is linked to us and what goes to and fro, live.

The page says when somebody looks at it; only then the node is asked, about once a second. It is
told everything once and then only what has changed.
"""

from __future__ import annotations

import asyncio
import html
import time
from collections.abc import Mapping, Sequence
from typing import Any

from aios_nb.errors import AiosError, UsageError
from aios_nb.notebook.kernel import unbound
from aios_nb.notebook.widgets import graph
from aios_nb.notebook.widgets.panel import Host, Panel, asset
from aios_nb.notebook.widgets.rates import Rates, rounded
from aios_nb.people.layout import size, table_lines
from aios_nb.people.naming import NODE_SHOWN
from aios_nb.site import Peers, Site

EVERY_S = 1.0
"""Between two looks at the network."""
SHARE = 20
"""A look that takes long is followed by a pause this many times longer: 5 % of the node's time."""
PAUSE_MAX_S = 4.0
"""But no longer: after eight seconds without a word a page says that the kernel is busy."""
UNHEARD_S = 90.0
"""A page that looks says so every 20 s; one that was closed without a word is forgotten."""
SAVED_EVERY_S = 30.0
"""Between two pictures for pages that cannot ask."""
AGENTS_NAMED = 12
"""Agents of one node that are named when it is looked at."""
_ALONE = (
    "no other node yet; a second notebook is found by itself, %aios up --join URL links to others"
)
_RULES = {"allow": "nodes.allow", "block": "nodes.block"}
Message = dict[str, Any]


class NetworkView(Panel):
    """The network as this node knows it; ``peers`` are the same nodes as rows."""

    _esm = asset("common.js", "stage.js", "peers.js", "network.js")
    _css = asset("common.css", "network.css")

    aside = Panel.aside | {"here", "visible"}

    def __init__(self, host: Host) -> None:
        self._pages: dict[str, float] = {}
        """Who looks, and when they last said so."""
        self._following: asyncio.Task[Any] | None = None
        self._layout = graph.Layout()
        self._nodes, self._sums = Rates(), Rates()
        self._told: dict[str, Message] = {}
        """What the pages know of each node."""
        self._flowed: dict[str, list[int]] = {}
        """And of its bytes: sent, received, a second; they change far more often."""
        self._saved_at = 0.0
        self._unsaved = True
        super().__init__(host)

    @property
    def peers(self) -> Peers:
        """The other nodes now; ``peers.df()`` is a DataFrame."""
        return self.there().peers()

    # What the page says --------------------------------------------------------------------------

    async def receive(self, message: Message, _: Sequence[bytes]) -> None:
        kind, view = message.get("type"), str(message.get("view", ""))
        if kind in {"hello", "visible", "here"}:
            await self._looked_at(
                view, whole=kind != "here", seen=bool(message.get("visible", True))
            )
        elif kind == "bye":
            self._pages.pop(view, None)
        elif kind == "details":
            await self._tell_details(str(message.get("node", "")))
        elif kind == "rule":
            await self._rule(str(message.get("node", "")), str(message.get("rule", "")))

    async def attached(self, _: Site) -> None:
        """Pages that were told that the node is away may ask again."""
        self.tell({"type": "online"})

    async def _looked_at(self, view: str, *, whole: bool, seen: bool) -> None:
        if not seen:
            self._pages.pop(view, None)
            return
        self._pages[view] = time.monotonic()
        if whole:
            await self._look(whole=True)
        following = self._following
        if following is None or following.done():
            self._following = self.work(self._follow())

    # What the page is told -----------------------------------------------------------------------

    async def _follow(self) -> None:
        pause = EVERY_S
        while True:
            await asyncio.sleep(pause)
            late = time.monotonic() - UNHEARD_S
            self._pages = {page: at for page, at in self._pages.items() if at > late}
            if not self._pages or self.host.site() is None:
                return
            began = time.monotonic()
            await self._look()
            pause = min(max(EVERY_S, SHARE * (time.monotonic() - began)), PAUSE_MAX_S)

    async def _look(self, *, whole: bool = False) -> None:
        client = self.there().client
        told, info = await client.call("node.peers"), await client.call("node.info")
        picture = self._picture(told, info)
        rows, flows = picture.pop("rows"), picture.pop("flows")
        known, flowed = ({}, {}) if whole else (self._told, self._flowed)
        now = {row["id"]: row for row in rows}
        changed = [row for row in rows if known.get(row["id"]) != row]
        gone = [node_id for node_id in known if node_id not in now]
        flowing = {node_id: flow for node_id, flow in flows.items() if flowed.get(node_id) != flow}
        news = bool(gone) or any(_differs(self._told.get(row["id"]), row) for row in changed)
        self._told, self._flowed = now, flows
        new = {"whole": whole, "rows": changed, "gone": gone, "flows": flowing}
        self.tell({"type": "picture", **new, **picture})
        self._unsaved |= news
        if self._unsaved and time.monotonic() - self._saved_at > SAVED_EVERY_S:
            self._unsaved, self._saved_at = False, time.monotonic()
            whole_picture = {"whole": True, "rows": rows, "gone": [], "flows": flows, **picture}
            unbound(lambda: setattr(self, "saved", {"picture": whole_picture}))

    def _picture(self, told: Mapping[str, Any], info: Mapping[str, Any]) -> Message:
        """All that is shown, in the fewest bytes."""
        now, peers = time.monotonic(), told["peers"]
        rates = self._nodes.look(
            now, {row["node_id"]: row["sent"] + row["received"] for row in peers}
        )
        traffic = told["traffic"]
        sums = self._sums.look(
            now,
            {
                name: traffic[f"{name}_sent"] + traffic[f"{name}_received"]
                for name in ("link", "gossip", "dht")
            },
        )
        shown = graph.nearest(peers)
        places = self._layout.place(shown)
        counted = graph.counts(peers)
        return {
            "own": {key: info[key] for key in ("node_id", "name", "url", "agents", "known_agents")},
            "rows": [_row(row, places[row["node_id"]]) for row in shown],
            "flows": {
                row["node_id"]: [
                    row["sent"],
                    row["received"],
                    rounded(rates.get(row["node_id"], 0)),
                ]
                for row in shown
            },
            "rings": self._layout.rings,
            "counts": counted,
            "summary": graph.summary(counted, sums.get("gossip")),
            "showing": graph.showing(len(peers)),
            "rates": {name: rounded(rate) for name, rate in sums.items()},
            "past": [round(value) for value in self._sums.past],
            "waiting": [row["url"] for row in told["waiting"]],
            "at": int(time.time() * 1000),
        }

    async def _tell_details(self, node_id: str) -> None:
        """What is not in the rows: its agents by name, and how often it called."""
        client = self.there().client
        found = await client.call("agents.search", query=f"node:{node_id}", limit=AGENTS_NAMED)
        callers = (await client.call("node.callers"))["callers"]
        calls = next((row for row in callers if row["id"] == node_id), None)
        self.tell(
            {
                "type": "details",
                "node": node_id,
                "agents": [
                    {"name": row["name"], "title": row["title"], "about": row["about"][:120]}
                    for row in found["agents"]
                    if row["node_id"] == node_id
                ],
                "calls": calls["calls"] if calls else 0,
                "blocked": bool(calls and calls["blocked"]),
            }
        )

    async def _rule(self, node_id: str, rule: str) -> None:
        if rule not in _RULES:
            raise UsageError(f"no such rule: {rule}", hint="allow or block")
        await self.there().client.call(_RULES[rule], node=node_id)
        self.tell({"type": "ruled", "node": node_id, "rule": rule})
        await self._look()

    # Without a page ------------------------------------------------------------------------------

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and for where there is none a picture of now."""
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**data, **self._still()}, metadata

    def _still(self) -> dict[str, str]:
        try:
            site = self.there()
            told, info = site.run(lambda: _asked(site), "looking for other nodes")
        except AiosError as error:
            return {"text/plain": str(error), "text/html": f"<p>{html.escape(str(error))}</p>"}
        peers, own = told["peers"], info["name"]
        said = " · ".join(
            filter(None, (graph.summary(graph.counts(peers)), graph.showing(len(peers))))
        )
        drawn = graph.draw(own, peers, title=False)
        return {
            "text/plain": "\n".join([f"{own}: {said}", *_lines(peers)]),
            "text/html": f"<div><p>Network of <b>{html.escape(own)}</b>: {said}</p>{drawn}</div>",
            "image/svg+xml": graph.draw(own, peers),
        }


async def _asked(site: Site) -> tuple[Any, Any]:
    return await site.client.call("node.peers"), await site.client.call("node.info")


def _row(row: graph.Row, place: tuple[float, float]) -> Message:
    latency = row["latency_ms"]
    return {
        "id": row["node_id"],
        "name": graph.label_of(row),
        "state": row["state"],
        "word": graph.WORDS.get(row["state"], "gone"),
        "url": row["url"],
        "ms": None if latency is None else float(f"{latency:.3g}"),
        "link": row["link"],
        "agents": row["agents"],
        "x": place[0],
        "y": place[1],
    }


def _differs(before: Message | None, after: Message) -> bool:
    """Whether somebody came, or is not as before; bytes and milliseconds do not count."""
    told = ("name", "state", "link", "agents")
    return before is None or any(before[key] != after[key] for key in told)


def _lines(peers: Sequence[graph.Row]) -> list[str]:
    if not peers:
        return [_ALONE]
    rows = (
        (
            graph.label_of(row),
            graph.WORDS.get(row["state"], "gone"),
            "linked" if row["link"] else "",
            "" if row["latency_ms"] is None else f"{row['latency_ms']:.3g} ms",
            row["agents"],
            size(row["sent"]),
            size(row["received"]),
            row["node_id"][:NODE_SHOWN],
        )
        for row in graph.nearest(peers)
    )
    head = ("NAME", "STATE", "LINK", "LATENCY", "AGENTS", "SENT", "RECEIVED", "NODE ID")
    return list(table_lines(head, rows))
