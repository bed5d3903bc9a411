"""``MarkdownV2`` and the old ``Markdown``: marks to entities, with Telegram's complaints."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.telegram.botapi.errors import ApiError, bad
from tests.telegram.botapi.texts import Entity, units

RESERVED = "_*[]()~`>#+-=|{}.!"
ENDS = {
    "bold": "*",
    "italic": "_",
    "underline": "__",
    "strikethrough": "~",
    "spoiler": "||",
    "code": "`",
    "pre": "```",
    "text_link": "]",
    "custom_emoji": "]",
}
STARTS = (
    ("```", "pre"),
    ("`", "code"),
    ("__", "underline"),
    ("_", "italic"),
    ("*", "bold"),
    ("~", "strikethrough"),
    ("||", "spoiler"),
    ("![", "custom_emoji"),
    ("[", "text_link"),
)
SPOKEN = {"text_link": "TextUrl", "custom_emoji": "CustomEmoji", "pre": "Pre", "code": "Code"}
OLD = re.compile(
    r"```(?:(?P<language>[\w+-]+)\n)?(?P<pre>.+?)```|`(?P<code>[^`]+)`|\*(?P<bold>[^*]+)\*"
    r"|_(?P<italic>[^_]+)_|\[(?P<text_link>[^\]]+)\]\((?P<url>[^)]+)\)|\\(?P<escaped>[_*`\[])",
    re.DOTALL,
)


@dataclass
class _Open:
    kind: str
    at: int
    begin: int
    language: str = ""


def parsed_markdown_v2(source: str) -> tuple[str, list[Entity]]:
    """The text without marks, and what they marked."""
    return _Reader(source).read()


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.text = ""
        self.entities: list[Entity] = []
        self.open: list[_Open] = []
        self.quote: int | None = None

    def read(self) -> tuple[str, list[Entity]]:
        at = 0
        while at < len(self.source):
            at = self._step(at)
        if self.open:
            last = self.open[-1]
            kind = SPOKEN.get(last.kind, last.kind.title())
            raise _wrong(f"Can't find end of {kind} entity at byte offset {self._bytes(last.at)}")
        self._end_quote()
        return self.text, self.entities

    def _step(self, at: int) -> int:
        char = self.source[at]
        if char == "\\" and at + 1 < len(self.source) and "\0" < self.source[at + 1] < "\x7f":
            self.text += self.source[at + 1]
            return at + 2
        inside = self.open[-1] if self.open else None
        if inside and self._ends(inside.kind, at):
            return self._close(at)
        is_code = inside is not None and inside.kind in {"code", "pre"}
        if not is_code and char == ">" and (at == 0 or self.source[at - 1] == "\n"):
            if self.quote is None:
                self.quote = units(self.text)
            return at + 1
        if not is_code and char in RESERVED:
            return self._start(at)
        self.text += char
        if char == "\n" and not is_code and not self.source.startswith(">", at + 1):
            self._end_quote()
        return at + 1

    def _ends(self, kind: str, at: int) -> bool:
        if kind == "italic":  # two underscores are read as one mark, and before one
            return self.source[at] == "_" and not self.source.startswith("__", at)
        return self.source.startswith(ENDS[kind], at)

    def _start(self, at: int) -> int:
        for mark, kind in STARTS:
            if not self.source.startswith(mark, at):
                continue
            opened = _Open(kind, at, units(self.text))
            at += len(mark)
            if kind == "pre":
                language = re.match(r"([^\s`]*)\n", self.source[at:])
                if language:
                    opened.language = language[1]
                    at += language.end()
            self.open.append(opened)
            return at
        char = self.source[at]
        raise _wrong(f"Character '{char}' is reserved and must be escaped with the preceding '\\'")

    def _close(self, at: int) -> int:
        opened = self.open.pop()
        entity: Entity = {
            "type": opened.kind,
            "offset": opened.begin,
            "length": units(self.text) - opened.begin,
        }
        at += len(ENDS[opened.kind])
        if opened.kind in {"text_link", "custom_emoji"}:
            target = re.match(r"\(((?:\\.|[^)\\])*)\)", self.source[at:])
            if target is None:
                return at
            url = re.sub(r"\\(.)", r"\1", target[1])
            at += target.end()
            if opened.kind == "custom_emoji":
                entity["custom_emoji_id"] = url.rpartition("id=")[2]
            else:
                entity["url"] = url
        if opened.language:
            entity["language"] = opened.language
        if entity["length"]:
            self.entities.append(entity)
        return at

    def _end_quote(self) -> None:
        if self.quote is not None:
            length = units(self.text.rstrip("\n")) - self.quote
            if length > 0:
                mark = {"type": "blockquote", "offset": self.quote, "length": length}
                self.entities.append(mark)
            self.quote = None

    def _bytes(self, at: int) -> int:
        return len(self.source[:at].encode())


def parsed_markdown(source: str) -> tuple[str, list[Entity]]:
    """The same for the old mode: nothing nests, and a mark without its end is an error."""
    text, entities, at = "", [], 0
    while at < len(source):
        match = OLD.match(source, at)
        if match is None:
            if source[at] in "_*`[":
                where = len(source[:at].encode())
                raise _wrong(f"Can't find end of the entity starting at byte offset {where}")
            text += source[at]
            at += 1
            continue
        at = match.end()
        if match["escaped"]:
            text += match["escaped"]
            continue
        kind = next(name for name in ("pre", "code", "bold", "italic", "text_link") if match[name])
        entity: Entity = {"type": kind, "offset": units(text), "length": units(match[kind])}
        extra = {"language": match["language"], "url": match["url"]}
        entities.append(entity | {name: value for name, value in extra.items() if value})
        text += match[kind]
    return text, entities


def _wrong(why: str) -> ApiError:
    return bad(f"can't parse entities: {why}")
