"""Other nodes as ``node.peers`` shows them: what links, gossip, datagrams and records tell."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aios_nb.hub.catalogue import Catalogue
    from aios_nb.hub.gossip import Member
    from aios_nb.hub.others import Others
    from aios_nb.hub.post import Post
    from aios_nb.hub.whereabouts import Whereabouts

PORTION = 250
"""Rows made between two turns of the loop: 5,000 at once held it for 0.2 s."""
FACES_MAX = 20_000


class Peers:
    """Makes the rows; a node's name and address are read from its record once."""

    def __init__(self, catalogue: Catalogue, whereabouts: Whereabouts, others: Others) -> None:
        self._catalogue = catalogue
        self._whereabouts = whereabouts
        self._others = others
        self._faces: dict[str, tuple[str, str]] = {}

    def forget(self, node_id: str) -> None:
        """The record of that node is another one now, or gone."""
        self._faces.pop(node_id, None)

    def name_of(self, node_id: str) -> str:
        """What that node calls itself; empty as long as nobody told."""
        return self._face(node_id)[0]

    async def rows(
        self, linked: Sequence[Mapping[str, Any]], members: Sequence[Member], post: Post | None
    ) -> list[dict[str, Any]]:
        """Those that have or had a link, and all that the gossip knows."""
        found = {row["node_id"]: self._with_post(dict(row), post) for row in linked}
        for number, member in enumerate(members, 1):
            row = found.get(member.node_id)
            if row is None:
                found[member.node_id] = self._heard_of(member, post)
            else:
                self._known_by_both(row, member, post)
            if number % PORTION == 0:
                await asyncio.sleep(0)
        return list(found.values())

    def alive(self, linked: Sequence[Mapping[str, Any]], members: Mapping[str, Member]) -> int:
        """How many of the rows of those who had a link are alive though the gossip differs."""
        return sum(
            row["state"] == "alive" and _overrules(row, members.get(row["node_id"]))
            for row in linked
        )

    def _heard_of(self, member: Member, post: Post | None) -> dict[str, Any]:
        node_id = member.node_id
        name, url = self._face(node_id)
        row = {
            "node_id": node_id,
            "name": name,
            "url": url,
            "state": str(member.state),
            "latency_ms": _latency(node_id, post),
            "link": False,
            "sent": 0,
            "received": 0,
        }
        return self._with_post(row, post)

    def _known_by_both(self, row: dict[str, Any], member: Member, post: Post | None) -> None:
        name, url = self._face(member.node_id)
        row["name"] = row["name"] or name
        row["url"] = row["url"] or url
        if not row["link"]:
            row["url"] = url or row["url"]  # it may have moved since there was a link
            row["state"] = str(member.state)
        if row["latency_ms"] is None:
            row["latency_ms"] = _latency(member.node_id, post)

    def _with_post(self, row: dict[str, Any], post: Post | None) -> dict[str, Any]:
        row["agents"] = self._others.of(row["node_id"])
        tally = None if post is None else post.tally(row["node_id"])
        if tally is not None:
            row["sent"] += tally.sent
            row["received"] += tally.received
        return row

    def _face(self, node_id: str) -> tuple[str, str]:
        known = self._faces.get(node_id)
        if known is None:
            signed = self._catalogue.node_record(node_id)
            name = "" if signed is None else signed.record.name
            known = name, next(iter(self._whereabouts.places(node_id)), "")
            if len(self._faces) >= FACES_MAX:
                self._faces.clear()
            self._faces[node_id] = known
        return known


def _overrules(row: Mapping[str, Any], member: Member | None) -> bool:
    """Whether what the link says counts, and the gossip says something else."""
    return member is None or (bool(row["link"]) and member.state != "alive")


def _latency(node_id: str, post: Post | None) -> float | None:
    rtt = None if post is None else post.rtt(node_id)
    return None if rtt is None else round(rtt * 1000, 3)
