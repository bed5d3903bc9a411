"""One agent's card with the state of its signature."""

from __future__ import annotations

from typing import Any

from aios_nb.notebook.show import page
from aios_nb.notebook.show.page import Bundle, esc
from aios_nb.people.cards import card_lines
from aios_nb.site import CardView

_APART = frozenset({"title", "name", "about", "tags", "examples"})


def card(view: CardView) -> Bundle:
    said = view.card
    title = str(said.get("title") or said.get("name") or "an agent")
    head = f"{said.get('name', '')} · version {said.get('version') or '?'}"
    good = view.mine or view.verified
    sign = f'<span class="{"ok-t" if good else "warn-t"}">{"✓" if good else "⚠"} '
    sign += f"{esc(view.signature)}</span>"
    body = [f'<div class="b">{page.lines(str(said.get("about") or ""))}']
    body.append(f"<div>{page.tags(map(str, _list(said.get('tags'))))}</div></div>")
    rows = [
        (page.label(label), page.free(_cell(value)))
        for label, value in said.items()
        if _tells(label, value)
    ]
    examples = [f"<code>{esc(example)}</code>" for example in _list(said.get("examples"))]
    if examples:
        rows.append((page.label("try"), "<br>".join(examples)))
    rows.append((page.label("signature"), sign))
    text = "\n".join(card_lines(said, view.signature))
    return page.bundle(page.panel(title, head, "".join(body) + page.table(rows)), text)


def _tells(label: str, value: Any) -> bool:
    return label not in _APART and value not in (None, "", [], {}, False)


def _cell(value: Any) -> str:
    return ", ".join(map(esc, value)) if isinstance(value, list) else page.lines(str(value))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
