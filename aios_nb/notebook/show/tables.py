"""Agents, nodes, callers and conversations as tables: for pages, and aligned for terminals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from aios_nb.notebook.show import agents, page
from aios_nb.notebook.show.page import Bundle, dim, dot, esc
from aios_nb.people.conversations import opened_by
from aios_nb.people.guests import marks
from aios_nb.people.layout import line_room, moment, size, table_lines
from aios_nb.people.naming import NODE_SHOWN, caller
from aios_nb.people.wording import NOTEBOOK, typed
from aios_nb.richtext import gist
from aios_nb.site import CallerRow, Callers, ChatRow, Chats, Hit, Hits, Peer, Peers, Rows

_ABOUT_TEXT = 100


def hits(found: Hits) -> Bundle:
    """Agents, with what they do, why they are here, and whether to trust them."""
    if not found:
        return nothing(found)
    searched = found.query is not None
    title = f"{len(found)} agent{'s' if len(found) > 1 else ''}"
    body = page.wide([_hit_cells(hit, searched=searched) for hit in found])
    about = f"for “{found.query}”" if searched else "of this node"
    return page.bundle(page.panel(title, about, body), _hits_text(found, searched=searched))


def hit(found: Hit) -> Bundle:
    """One of them."""
    body = page.wide([_hit_cells(found, searched=bool(found.row.score))])
    return page.bundle(page.bare(body), repr(found))


def _hit_cells(hit: Hit, *, searched: bool) -> Sequence[str]:
    row = hit.row
    score = f"score {row.score:.2f}" if searched and row.score else ""
    place = where(hit) if searched else ""
    return agents.cells(row, mine=_is_mine(hit), place=place, score=score)


def where(hit: Hit) -> str:
    """Whose agent it is, in a few words."""
    row = hit.row
    # A program may have made other nodes beside the notebook's: their agents are not here.
    is_here = row.node_id == agents.own_id()
    return agents.here() if is_here else agents.of_node(row.node_name, row.node_id)


def _is_mine(hit: Hit) -> bool:
    try:
        return hit.row.node_id == hit.site.client.node_id
    except Exception:  # noqa: BLE001 - its node is stopped; then nobody's agents are here
        return False


def _hits_text(found: Hits, *, searched: bool) -> str:
    rows = [hit.row for hit in found]
    about = [(row.about or row.title)[:_ABOUT_TEXT] for row in rows]
    ids = [row.name if _is_mine(hit) else f"{row.name}@{row.node_id[:12]}"
           for row, hit in zip(rows, found, strict=True)]  # fmt: skip
    if searched:
        cells = [(name, f"{row.score:.2f}", " ".join(row.tags), said)
                 for name, row, said in zip(ids, rows, about, strict=True)]  # fmt: skip
        below = ["; ".join([*marks(row), *filter(None, [row.why])]) for row in rows]
        return aligned(("AGENT", "SCORE", "TAGS", "ABOUT"), cells, below)
    own = [(name, row.version, row.access, " ".join(row.tags), said)
           for name, row, said in zip(ids, rows, about, strict=True)]  # fmt: skip
    below = ["; ".join(marks(row)) for row in rows]
    return aligned(("NAME", "VERSION", "ACCESS", "TAGS", "ABOUT"), own, below)


def peers(found: Peers) -> Bundle:
    if not found:
        return nothing(found)
    alive = sum(peer.state == "alive" for peer in found)
    body = page.wide(map(_peer_cells, found), ("", "node", "address", "latency", "agents", "link"))
    about = f"{alive} alive"
    title = f"{len(found)} other node{'s' if len(found) > 1 else ''}"
    text = aligned(
        ("NAME", "STATE", "LATENCY", "AGENTS", "NODE ID", "ADDRESS"),
        [(peer.name, page.word_for(peer.state), _latency(peer), peer.agents, peer.node_id, peer.url)
         for peer in found],
    )  # fmt: skip
    return page.bundle(page.panel(title, about, body), text)


def _peer_cells(peer: Peer) -> Sequence[str]:
    name = f"<b>{esc(peer.name or 'a node')}</b><br>{page.mono(peer.node_id)}"
    # Below each other, or there is no room beside them for an address in one piece.
    carried = f"{dim(f'{size(peer.sent)} sent')}<br>{dim(f'{size(peer.received)} received')}"
    link = carried if peer.sent or peer.received else ""
    state = "" if peer.state == "alive" else f"<br>{dim(page.word_for(peer.state))}"
    return (
        dot(peer.state),
        page.free(name + state),
        page.free(esc(peer.url or "not known")),
        dim(_latency(peer)),
        dim(peer.agents),
        link,
    )


def _latency(peer: Peer) -> str:
    return "" if peer.latency_ms is None else f"{peer.latency_ms:.1f} ms"


def callers(found: Callers) -> Bundle:
    if not found:
        return nothing(found)
    body = page.wide(map(_caller_cells, found), ("caller", "calls", "time", "last", ""))
    text = aligned(
        ("CALLER", "CALLS", "TIME", "LAST", ""),
        [(caller(row.id, row.name), row.calls, f"{row.seconds:.1f} s", moment(row.last_at or ""),
          "blocked" if row.blocked else "") for row in found],
    )  # fmt: skip
    return page.bundle(page.panel("Callers", "busiest first", body), text)


def _caller_cells(row: CallerRow) -> Sequence[str]:
    who = esc(caller(row.id, row.name))
    if row.name:
        who = page.free(f"<b>{esc(row.name)}</b><br>{page.mono(row.id[:NODE_SHOWN])}")
    elif who != "you":
        who = page.free(page.mono(row.id))
    shut = '<span class="bad-t">blocked</span>' if row.blocked else ""
    return (
        who,
        str(row.calls),
        f"{row.seconds:.1f} s",
        dim(moment(row.last_at or "")),
        shut,
    )


def chats(found: Chats) -> Bundle:
    if not found:
        return nothing(found)
    body = page.wide(map(_chat_cells, found), ("conversation", "with", "messages", "last used"))
    text = aligned(
        ("CONVERSATION", "LAST USED", "BY", "WITH", "TITLE"),
        [(row.conversation, moment(row.updated_at), _by(row), _with(row), row.title)
         for row in found],
    )  # fmt: skip
    return page.bundle(page.panel("Conversations", "the latest first", body), text)


def _chat_cells(row: ChatRow) -> Sequence[str]:
    by = _by(row)
    opened = "" if by == "you" else f" {dim(f'opened by {by}')}"
    title = f"<b>{esc(row.title[:80] or row.conversation)}</b>{opened}"
    last = f"<br>{dim(gist(row.last)[:120])}" if row.last and not _is_title(row) else ""
    name = f"{title}{last}<br>{page.mono(row.conversation)}"
    used = page.keep(dim(moment(row.updated_at)))
    return page.free(name), esc(_with(row)), str(row.messages), used


def _is_title(row: ChatRow) -> bool:
    """Whether its last words stand above it: a question that was not answered."""
    last, title = " ".join(row.last.split()), row.title
    return last.startswith(title[:-1]) if title.endswith("…") else last == title


def _with(row: ChatRow) -> str:
    return ", ".join(agent.partition("@")[0] for agent in row.agents)


def _by(row: ChatRow) -> str:
    return opened_by(msgspec.structs.asdict(row)) if row.opener else "you"


def rows(found: Rows[object]) -> Bundle:
    """Rows that are nothing special."""
    text = str(found)
    return page.bundle(page.bare(f'<pre class="p">{page.lines(text)}</pre>'), text)


def nothing(found: Rows[Any]) -> Bundle:
    said = typed(found.nothing, NOTEBOOK)
    return page.bundle(page.bare(f'<div class="b">{dim(said)}</div>'), said)


def aligned(
    head: Sequence[str], cells: Sequence[Sequence[object]], below: Sequence[str] = ()
) -> str:  # fmt: skip
    """The same for a terminal."""
    return "\n".join(table_lines(head, cells, below, room=line_room()))
