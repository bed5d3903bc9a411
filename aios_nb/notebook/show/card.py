"""One agent's card with the state of its signature."""

from __future__ import annotations

from typing import Any

from aios_nb.notebook.show import page
from aios_nb.notebook.show.page import Bundle, dim, esc
from aios_nb.people.cards import card_lines, item, told
from aios_nb.people.guests import remarks
from aios_nb.people.naming import came_along
from aios_nb.site import CardView

_APART = frozenset({"title", "name", "version", "about", "tags", "examples"})


def card(view: CardView) -> Bundle:
    said = view.card
    title = str(said.get("title") or said.get("name") or "an agent")
    head = f"{said.get('name', '')} · version {said.get('version') or '?'}"
    vouched, sign = _signature(view)
    body = [f'<div class="b">{page.lines(str(said.get("about") or ""))}']
    body.append(f"<div>{page.tags(map(str, _list(said.get('tags'))))}</div></div>")
    rows = [
        (page.label(label), page.free(_cell(value)))
        for label, value in told(said)
        if label not in _APART
    ]
    examples = [f"<code>{esc(example)}</code>" for example in _list(said.get("examples"))]
    if examples:
        rows.append((page.label("try"), "<br>".join(examples)))
    rows.append((page.label("signature"), sign))
    lines = list(card_lines(said, vouched))
    if view.outside is not None:
        remarked = [
            line for line in remarks(view.outside, "%aios ") if not line.startswith("tools:")
        ]
        rows.append((page.label("address"), page.free(page.mono(view.outside.place))))
        if remarked:
            kind = "warn-t" if view.outside.changed else "d"
            shown = "<br>".join(f'<span class="{kind}">{esc(line)}</span>' for line in remarked)
            rows.append((page.label("now"), page.free(shown)))
        lines += [f"  {line}" for line in (view.outside.place, *remarked)]
    text = "\n".join(lines)
    return page.bundle(page.panel(title, head, "".join(body) + page.table(rows)), text)


def _signature(view: CardView) -> tuple[str, str]:
    """Who vouches for the card: in words, and as ready HTML."""
    said = view.card
    ours = view.mine and view.outside is None
    if ours and came_along(str(said.get("name")), str(said.get("access"))):
        return "built in, not published", dim("built in, not published")
    good = (view.mine or view.verified) and view.outside is None
    kind, mark = ("ok-t", "✓") if good else ("warn-t", "⚠")
    return view.signature, f'<span class="{kind}">{mark} {esc(view.signature)}</span>'


def _cell(value: Any) -> str:
    return (
        ", ".join(map(esc, map(item, value))) if isinstance(value, list) else page.lines(str(value))
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
