"""Texts as Telegram keeps them: cleaned, measured in UTF-16 units, with checked entities."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.telegram.botapi.errors import bad
from tests.telegram.botapi.settings import ENTITIES_PER_MESSAGE

Entity = dict[str, Any]

STYLES = frozenset(
    [
        "bold",
        "italic",
        "underline",
        "strikethrough",
        "spoiler",
        "blockquote",
        "expandable_blockquote",
        "code",
        "pre",
        "text_link",
        "text_mention",
        "custom_emoji",
        "date_time",
    ]
)
FOUND_BY_TELEGRAM = frozenset(
    [
        "mention",
        "hashtag",
        "cashtag",
        "bot_command",
        "url",
        "email",
        "phone_number",
        "bank_card_number",
    ]
)
"""Kinds that bots may name but cannot make: Telegram looks for them itself."""

PLAIN_INSIDE = frozenset({"code", "pre", "text_link", "text_mention"})
"""Within these Telegram looks for nothing."""

DETECTED = re.compile(
    r"(?P<url>\b(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?)\]])"
    r"|(?P<email>\b[\w.+-]+@[\w-]+\.[\w.-]*\w)"
    r"|(?P<bot_command>(?<![\w/@<>])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/]))"
    r"|(?P<mention>(?<![\w/@`])@[A-Za-z0-9_]{3,32}\b)"
    r"|(?P<hashtag>(?<![\w&/#])#[^\W\d_]\w*)"
)


@dataclass(frozen=True)
class Text:
    """Words and what is marked in them; offsets and lengths count UTF-16 units."""

    text: str = ""
    entities: tuple[Entity, ...] = field(default=())

    @property
    def units(self) -> int:
        return units(self.text)

    def json(self, prefix: str = "") -> dict[str, Any]:
        """The fields of a message: ``text`` and ``entities``, or with ``caption_``."""
        name = "caption" if prefix else "text"
        body: dict[str, Any] = {name: self.text}
        if self.entities:
            body[f"{prefix}entities"] = [dict(entity) for entity in self.entities]
        return body

    def part(self, entity: Entity) -> str:
        """The words that an entity marks."""
        raw = self.text.encode("utf-16-le")
        start = entity["offset"] * 2
        return raw[start : start + entity["length"] * 2].decode("utf-16-le")


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def checked(text: str, entities: list[Any]) -> Text:
    """The text as it would be shown, or why it cannot be."""
    marks = [_checked_kind(entity) for entity in entities]
    text, marks = _cleaned(text, _in_range(text, marks))
    return _trimmed(text, marks)


def detected(said: Text) -> Text:
    """The same, with the commands, mentions and links that Telegram finds by itself."""
    starts = _starts(said.text)
    taken = [
        (mark["offset"], mark["offset"] + mark["length"])
        for mark in said.entities
        if mark["type"] in PLAIN_INSIDE
    ]
    found: list[Entity] = []
    for match in DETECTED.finditer(said.text):
        begin, end = starts[match.start()], starts[match.end()]
        if not any(begin < stop and start < end for start, stop in taken):
            kind = match.lastgroup
            found.append({"offset": begin, "length": end - begin, "type": kind})
    return Text(said.text, _in_order([*said.entities, *found]))


def _checked_kind(entity: Any) -> Entity:
    if not isinstance(entity, dict):
        raise bad("can't parse MessageEntity: Field must be of type Object")
    kind = entity.get("type")
    if kind not in STYLES | FOUND_BY_TELEGRAM:
        raise bad("can't parse MessageEntity: Unsupported type specified")
    for name in ("offset", "length"):
        value = entity.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise bad(f'can\'t parse MessageEntity: Field "{name}" must be of type Number')
        if not 0 <= value <= 1_000_000:
            raise bad(f"message entity has incorrect {name} {value}")
    if kind == "text_link" and not entity.get("url"):
        raise bad("can't parse MessageEntity: Can't find field \"url\"")
    kept = ("type", "offset", "length", "url", "user", "language", "custom_emoji_id")
    return {name: entity[name] for name in kept if entity.get(name) is not None}


def _in_range(text: str, marks: list[Entity]) -> list[Entity]:
    """Entities that begin and end between symbols of the text."""
    edges = set(_starts(text))
    last = max(edges)
    for mark in marks:
        begin, end = mark["offset"], mark["offset"] + mark["length"]
        where = f"entity beginning at UTF-16 offset {begin}"
        if end > last:
            raise bad(f"{where} ends after the end of the text at UTF-16 offset {end}")
        if begin not in edges:
            raise bad(f"{where} begins in a middle of a UTF-16 symbol")
        if end not in edges:
            raise bad(f"{where} ends in a middle of a UTF-16 symbol")
    return [mark for mark in marks if mark["length"] and mark["type"] in STYLES]


def _cleaned(text: str, marks: list[Entity]) -> tuple[str, list[Entity]]:
    """Without carriage returns, and with blanks for other control characters."""
    if "\r" in text:
        before = {at: text.count("\r", 0, i) for i, at in enumerate(_starts(text))}
        for mark in marks:
            begin, end = mark["offset"], mark["offset"] + mark["length"]
            mark["offset"] = begin - before[begin]
            mark["length"] = end - before[end] - mark["offset"]
        text = text.replace("\r", "")
    return "".join(" " if c < " " and c != "\n" else c for c in text), marks


def _trimmed(text: str, marks: list[Entity]) -> Text:
    """Without blanks at the end, nor at the beginning as far as nothing is marked there."""
    first = min((mark["offset"] for mark in marks), default=len(text))
    cut = min(len(text) - len(text.lstrip(" \n")), first)
    text = text[cut:].rstrip(" \n")
    size = units(text)
    kept = []
    for mark in marks:
        mark["offset"] -= cut
        mark["length"] = min(mark["length"], size - mark["offset"])
        if mark["length"] > 0:
            kept.append(mark)
    return Text(text, _in_order(kept)[:ENTITIES_PER_MESSAGE])


def _in_order(marks: list[Entity]) -> tuple[Entity, ...]:
    return tuple(sorted(marks, key=lambda mark: (mark["offset"], -mark["length"])))


def _starts(text: str) -> list[int]:
    """Where each character begins, in UTF-16 units, and where the text ends."""
    starts, at = [], 0
    for char in text:
        starts.append(at)
        at += 2 if ord(char) > 0xFFFF else 1
    return [*starts, at]
