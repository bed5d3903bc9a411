"""Who comes and goes, told to MCP clients: only what the one who listens may see."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aios_nb.access import Access, Caller, Principal
from aios_nb.ports import AgentNews

if TYPE_CHECKING:
    from mcp.server.subscriptions import InMemorySubscriptionBus, ServerEvent

    from aios_nb.wire.mcp.sessions import Session, Sessions

log = logging.getLogger(__name__)

GATHER_S = 0.05
"""Changes within this are told together: a notebook that runs top to bottom brings many."""
TELL_S = 10.0
CATALOG = "hub://catalog"
_PEOPLE = frozenset({Caller.OWNER, Caller.TOKEN})


class Changed:
    """What of the resources has changed for one kind of caller."""

    def __init__(self) -> None:
        self.listed = False
        """Agents of this node came or went."""
        self.updated: set[str] = set()
        """Resources that say something else now."""

    def __bool__(self) -> bool:
        return self.listed or bool(self.updated)

    def add(self, more: Changed) -> None:
        self.listed = self.listed or more.listed
        self.updated |= more.updated


def changed_for(who: Principal, node_id: str, news: Iterable[Mapping[str, Any]] | None) -> Changed:
    """What this caller notices of these changes; of too many to be kept, all that there may be."""
    changed = Changed()
    if news is None:
        changed.listed = True
        changed.updated.add(CATALOG)
        return changed
    for change in news:
        row = change["agent"]
        ours = row.node_id == node_id
        if not (who.may_call(Access(row.access)) if ours else who.kind in _PEOPLE):
            continue
        changed.updated.add(CATALOG)
        if ours:
            changed.listed = changed.listed or change["event"] != "replaced"
            changed.updated.add(f"agent://{row.id}/card")
            changed.updated.add(f"agent://{row.id}/skills")
    return changed


class Announcing:
    """Follows the news and tells both kinds of clients."""

    def __init__(
        self,
        news: AgentNews,
        node_id: str,
        sessions: Sessions,
        buses: Mapping[Principal, InMemorySubscriptionBus],
    ) -> None:
        """``buses``: for each kind of caller, as one of them, where its streams listen."""
        self._news = news
        self._node_id = node_id
        self._sessions = sessions
        self._buses = buses
        self._telling: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until cancelled."""
        seen = self._news.last
        try:
            while True:
                await self._news.wait(seen)
                await asyncio.sleep(GATHER_S)
                news, seen = self._news.since(seen), self._news.last
                await self._tell(news)
        finally:
            for task in self._telling:
                task.cancel()

    async def _tell(self, news: Sequence[Mapping[str, Any]] | None) -> None:
        for who, bus in self._buses.items():
            for event in _events(changed_for(who, self._node_id, news)):
                await bus.publish(event)
        for session in self._sessions.listening():
            changed = changed_for(session.who, self._node_id, news)
            changed.updated &= session.watched
            session.untold.add(changed)
            if session.untold and not session.telling:
                # By itself: a client that does not read must not keep the others waiting.
                session.telling = True
                task = asyncio.create_task(_tell_session(session))
                self._telling.add(task)
                task.add_done_callback(self._telling.discard)


async def _tell_session(session: Session) -> None:
    """Until there is nothing left: who looks after a notice may miss what changes during it."""
    try:
        while session.untold:
            changed, session.untold = session.untold, Changed()
            async with asyncio.timeout(TELL_S):
                if changed.listed:
                    await session.peer.send_resource_list_changed()
                for uri in sorted(changed.updated):
                    await session.peer.send_resource_updated(uri)
    except TimeoutError:
        log.debug("an MCP client does not read its notices")
    except Exception:
        log.exception("an MCP client could not be told of changes")
    finally:
        session.telling = False


def _events(changed: Changed) -> list[ServerEvent]:
    from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated

    events: list[ServerEvent] = [ResourcesListChanged()] if changed.listed else []
    return events + [ResourceUpdated(uri=uri) for uri in sorted(changed.updated)]
