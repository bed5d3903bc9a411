"""An agent's card as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aios_nb.people.layout import Paint, hanging, unpainted
from aios_nb.richtext import one_line, plain

_LABEL = 12
_RUNS = frozenset({"engine", "streams", "timeout_s", "idempotent"})
WHO_MAY = {
    "private": "only you",
    "known": "nodes that were allowed",
    "network": "any node",
    "public": "anyone",
}
"""Who an access lets in, as the hub says it."""


def card_lines(card: Mapping[str, Any], signature: str, paint: Paint = unpainted) -> Iterator[str]:
    """Its title, what it says about itself, and who vouches for it."""
    yield paint(one_line(str(card.get("title") or card.get("name") or "an agent")), "bold")
    for label, value in told(card):
        if label != "title":
            yield f"  {paint(one_line(label).ljust(_LABEL), 'dim')} {_value(value)}"
    yield f"  {paint('signature'.ljust(_LABEL), 'dim')} {signature}"


def told(card: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What a card says, a label and its value each; what is for programs is put into words."""
    runs = how_it_runs(card)
    for label, value in card.items():
        if label in _RUNS:
            if runs:
                yield "runs", runs
            runs = ""
        elif label == "access" and str(value) in WHO_MAY:
            yield label, f"{value}: {WHO_MAY[str(value)]}"
        elif value not in (None, "", [], {}, False):
            yield label, value


def how_it_runs(card: Mapping[str, Any]) -> str:
    """Where, in how many pieces and for how long, as the hub says it."""
    words = [str(card.get("engine") or "")]
    if "streams" in card:
        words.append("streams its answer" if card["streams"] else "answers in one piece")
    longest = card.get("timeout_s")
    if isinstance(longest, int | float) and longest:
        words.append(f"{longest:g} s at most")
    if card.get("idempotent") is True:
        words.append("may be asked again")
    return one_line(", ".join(filter(None, words)))


def _value(value: Any) -> str:
    if isinstance(value, list):
        return hanging(", ".join(one_line(item(each)) for each in value), _LABEL + 3)
    lines = plain(str(value)).split("\n")
    return ("\n" + " " * (_LABEL + 3)).join(hanging(line, _LABEL + 3) for line in lines)


def item(value: Any) -> str:
    """One of a list: a tool by its name, all else as it is."""
    return str(value.get("name", value) if isinstance(value, Mapping) else value)
