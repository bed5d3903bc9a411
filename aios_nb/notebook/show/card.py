"""One agent's card with the state of its signature."""

from __future__ import annotations

from typing import Any

from aios_nb.notebook.show import page
from aios_nb.notebook.show.page import Bundle, esc
from aios_nb.people.cards import card_lines, item
from aios_nb.people.guests import remarks
from aios_nb.site import CardView

_APART = frozenset({"title", "name", "about", "tags", "examples"})


def card(view: CardView) -> Bundle:
    said = view.card
    title = str(said.get("title") or said.get("name") or "an agent")
    head = f"{said.get('name', '')} · version {said.get('version') or '?'}"
    good = (view.mine or view.verified) and view.outside is None
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
    lines = list(card_lines(said, view.signature))
    if view.outside is not None:
        told = [line for line in remarks(view.outside, "%aios ") if not line.startswith("tools:")]
        rows.append((page.label("address"), page.free(page.mono(view.outside.place))))
        if told:
            kind = "warn-t" if view.outside.changed else "d"
            shown = "<br>".join(f'<span class="{kind}">{esc(line)}</span>' for line in told)
            rows.append((page.label("now"), page.free(shown)))
        lines += [f"  {line}" for line in (view.outside.place, *told)]
    text = "\n".join(lines)
    return page.bundle(page.panel(title, head, "".join(body) + page.table(rows)), text)


def _tells(label: str, value: Any) -> bool:
    return label not in _APART and value not in (None, "", [], {}, False)


def _cell(value: Any) -> str:
    return (
        ", ".join(map(esc, map(item, value))) if isinstance(value, list) else page.lines(str(value))
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
