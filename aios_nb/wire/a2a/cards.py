"""Agent cards: what ours say of themselves, in A2A's form and under the node's signature.

A card holds no member that is empty. Verifiers differ in which of those they leave out before they
check a signature; where there is none, all agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from aios_nb.identity import Identity
from aios_nb.richtext import one_line
from aios_nb.wire.a2a.jws import did_key, signed
from aios_nb.wire.a2a.parts import INPUT_MODES, OUTPUT_MODES
from aios_nb.wire.a2a.shapes import VERSION
from aios_nb.wire.documents import Document
from aios_nb.wire.doors import Facts

WELL_KNOWN = "/.well-known/agent-card.json"
IDENTITY = "urn:aios-nb:identity:1"
"""The extension that says which agent of which node this is, and by which key."""
BEARER = "bearer"
CARDS_KEPT = 256
NAME_CHARS, ABOUT_CHARS, TAGS, EXAMPLES = 120, 2000, 32, 16

CONCIERGE = "concierge"
_ROOT: Mapping[str, Any] = {
    # Not what the agent of that name says: who has put their own there did not mean it for all.
    "title": "Concierge",
    "about": "Describes this site and recommends agents for a task",
    "tags": ("help", "search"),
    "examples": ("what is this?", "who can help me?"),
    "access": "private",
}


class Cards:
    """Makes and signs them; the same card is signed once."""

    def __init__(
        self, identity: Identity, facts: Facts, clock: Callable[[], float] = time.time
    ) -> None:
        self._identity = identity
        self._facts = facts
        self._clock = clock
        self._made: dict[str, tuple[Mapping[str, Any], Document]] = {}

    def of(self, agent: str, said: Mapping[str, Any]) -> Document:
        """The card of an agent as its path names it; ``said`` is what it says of itself."""
        return self.signed(agent, self._card(agent, said), public=said.get("access") == "public")

    def root(self) -> Document:
        """The card of the node itself: its concierge, who answers callers with a token."""
        agent_id = f"{CONCIERGE}@{self._facts.node_id}"
        return self.signed("", self._card(CONCIERGE, {**_ROOT, "id": agent_id}), public=True)

    def signed(self, key: str, card: Mapping[str, Any], *, public: bool) -> Document:
        """The card under our signature, from memory where it has not changed."""
        known = self._made.pop(key, None)
        if known is None or known[0] != card:
            body = msgspec.json.encode(signed(card, self._identity))
            known = (card, Document.of(body, self._clock(), public=public))
        self._made[key] = known  # used last
        if len(self._made) > CARDS_KEPT:
            del self._made[next(iter(self._made))]
        return known[1]

    def _card(self, agent: str, said: Mapping[str, Any]) -> dict[str, Any]:
        name = agent.partition("@")[0]
        title = _short(said.get("title"), NAME_CHARS) or name
        about = _short(said.get("about"), ABOUT_CHARS) or title
        skill = {
            "id": name,
            "name": title,
            "description": about,
            "tags": _texts(said.get("tags"), TAGS) or ["agent"],
            "examples": _texts(said.get("examples"), EXAMPLES),
        }
        card = {
            "name": title,
            "description": about,
            "version": _short(said.get("version"), NAME_CHARS) or "1",
            "supportedInterfaces": interfaces(self._facts.url(), agent),
            "capabilities": {"streaming": True, "extensions": [self._whose(said)]},
            "securitySchemes": {
                BEARER: {
                    "httpAuthSecurityScheme": {
                        "scheme": "bearer",
                        "description": "A token of the node, for agents that are not public",
                    }
                }
            },
            "defaultInputModes": list(INPUT_MODES),
            "defaultOutputModes": list(OUTPUT_MODES),
            "skills": [{name: value for name, value in skill.items() if value}],
        }
        if said.get("access") != "public":
            card["securityRequirements"] = [{"schemes": {BEARER: {"list": ["chat"]}}}]
        return card

    def _whose(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Who signs the card; not always for an agent of its own.

        One of another node has that node in its id, a program of others says so (``source``).
        """
        params = {
            "agent": str(said["id"]),
            "node": self._facts.node_id,
            "key": did_key(self._identity.public_key),
        }
        if source := _short(said.get("source"), NAME_CHARS):
            params["source"] = source
        about = "The agent's id, and the node and key that sign this card"
        return {"uri": IDENTITY, "description": about, "params": params}


def interfaces(base: str, agent: str) -> list[dict[str, str]]:
    """Where an agent is called, and in which protocol."""
    url = f"{base.rstrip('/')}/agents/{agent}/"
    return [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": VERSION}]


def _short(text: Any, most: int) -> str:
    line = one_line(str(text or ""))
    return line if len(line) <= most else line[: most - 1] + "…"


def _texts(items: Any, most: int) -> list[str]:
    given: Sequence[Any] = items if isinstance(items, (list, tuple)) else ()
    return [text for item in given[:most] if (text := _short(item, ABOUT_CHARS))]
