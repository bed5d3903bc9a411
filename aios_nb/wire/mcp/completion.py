"""What could be meant while a person types: ids of agents and of their own conversations."""

from __future__ import annotations

from typing import Any

from aios_nb.access import Caller, Principal
from aios_nb.wire.dispatch import Dispatcher

MOST = 100
"""Values in one answer, by the protocol."""
_AGENTS = frozenset({"agent://{id}/card", "agent://{id}/skills"})
_PEOPLE = frozenset({Caller.OWNER, Caller.TOKEN})


class Completion:
    """Completes arguments of prompts and resource templates."""

    def __init__(self, calls: Dispatcher) -> None:
        self._calls = calls

    def knows(self, ref: Any) -> bool:
        """Whether this prompt or template is one of ours."""
        name = getattr(ref, "name", None) or getattr(ref, "uri", None)
        return name in _AGENTS | {"conversation://{id}"} or name in {
            "ask_agent", "find_agent_for", "summarise_conversation",
        }  # fmt: skip

    async def complete(self, caller: Principal, ref: Any, name: str, typed: str) -> dict[str, Any]:
        """The values that begin with what was typed, or at least have it in their name.

        Not behind the ``@``: the ids of nodes are random letters, among which one finds anything.
        """
        target = getattr(ref, "name", None) or getattr(ref, "uri", None)
        if (target in _AGENTS and name == "id") or (target == "ask_agent" and name == "agent"):
            known = await self._agents(caller)
        elif name in ("id", "conversation") and target != "find_agent_for":
            known = await self._conversations(caller)
        else:
            known = []
        typed = typed.lower()
        begins = [value for value in known if value.lower().startswith(typed)]
        within = [value for value in known if typed in value.lower().partition("@")[0]]
        found = list(dict.fromkeys(begins + within))
        return {
            "completion": {
                "values": found[:MOST], "total": len(found), "hasMore": len(found) > MOST,
            }
        }  # fmt: skip

    async def _agents(self, caller: Principal) -> list[str]:
        rows = (await self._calls.call(caller, "agents.list"))["agents"]
        return [str(row["id"]) for row in rows]

    async def _conversations(self, caller: Principal) -> list[str]:
        if caller.kind not in _PEOPLE:
            return []  # strangers share one name: they know theirs by heart, or not at all
        rows = (await self._calls.call(caller, "chat.list"))["conversations"]
        return [str(row["conversation"]) for row in rows]
