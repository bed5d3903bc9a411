"""One agent as a row of a page: the same in a list, in a search and in a hub that was saved."""

from __future__ import annotations

from collections.abc import Sequence

from aios_nb.current import program
from aios_nb.envelope import AgentRow
from aios_nb.notebook.kernel import running_kernel
from aios_nb.notebook.show import page
from aios_nb.notebook.show.page import dim, dot, esc
from aios_nb.people.naming import NODE_SHOWN, came_along, of_node
from aios_nb.richtext import one_line

__all__ = ["cells", "here", "of_node", "own_id", "spoken"]

_KINDS = {"mcp": "MCP server", "a2a": "A2A agent"}


def cells(row: AgentRow, *, mine: bool, place: str = "", score: str = "") -> Sequence[str]:
    """Who it is, what it does and why it is here, whether to trust it.

    ``mine``: it is of the node that was asked. ``place`` is said where agents of many nodes are.
    """
    below = f"<br>{dim(place)}" if place else ""
    name = page.keep(f"<b>{esc(row.name)}</b>{below}")
    why = f"<br>{dim(row.why)}" if row.why else ""
    about = f"{esc(row.about or row.title)} {page.tags(row.tags)}{why}"
    trust = _trust(row, score, mine=mine)
    return dot("alive" if row.live else ""), name, page.free(about), trust


def own_id() -> str:
    """The id of the notebook's own node; empty while there is none."""
    return str(getattr(program.running, "node_id", ""))


def spoken(agent: str) -> tuple[str, str]:
    """An agent's name, and the start of its node's id where that is named and another one.

    One is asked as ``adder`` or as ``adder@…``: its answers look the same.
    """
    name, _, node = one_line(agent).partition("@")
    return name, "" if own_id().startswith(node) else f"@{node[:NODE_SHOWN]}"


def here() -> str:
    """What people call the place of their own agents: a terminal has no notebook."""
    return "this node" if running_kernel() is None else "this notebook"


def _trust(row: AgentRow, score: str, *, mine: bool) -> str:
    """Whether to trust it, at a glance; below, what else there is to know."""
    words = [f"v{row.version}"] if row.version else []
    brought = bool(row.source) and mine
    if row.changed:
        since = "approved" if brought else "used"
        sign = f'<span class="warn-t">⚠ changed since you {since} it</span>'
        if brought:
            words = [f"%aios hub approve {row.name}"]
    elif brought:
        sign = dim(f"{_KINDS.get(row.source, row.source)}, not verified")
        words.append(row.access)
    elif mine:
        if came_along(row.name, row.access):
            return page.aside(dim("built in"), score)
        sign = '<span class="ok-t">✓ yours</span>'
        words.append(row.access)
    else:
        sign = '<span class="ok-t">✓ signed</span>' if row.verified else dim("not verified")
    if row.talks:
        words.append(f"{row.talks} talk{'s' if row.talks > 1 else ''}")
    if not row.live:
        words.append("not answering")
    return page.aside(sign, *words, score)
