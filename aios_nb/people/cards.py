"""An agent's card as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aios_nb.people.layout import Paint, unpainted
from aios_nb.richtext import one_line, plain

_LABEL = 12


def card_lines(card: Mapping[str, Any], signature: str, paint: Paint = unpainted) -> Iterator[str]:
    """Its title, what it says about itself, and who vouches for it."""
    yield paint(one_line(str(card.get("title") or card.get("name") or "an agent")), "bold")
    for label, value in card.items():
        if label != "title" and value not in (None, "", [], {}):
            yield f"  {paint(one_line(label).ljust(_LABEL), 'dim')} {_value(value)}"
    yield f"  {paint('signature'.ljust(_LABEL), 'dim')} {signature}"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(one_line(item(each)) for each in value)
    return plain(str(value)).replace("\n", "\n" + " " * (_LABEL + 3))


def item(value: Any) -> str:
    """One of a list: a tool by its name, all else as it is."""
    return str(value.get("name", value) if isinstance(value, Mapping) else value)
