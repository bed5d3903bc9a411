"""``parse_mode=HTML``: tags to entities, with Telegram's complaints."""

from __future__ import annotations

import re

from tests.telegram.botapi.errors import ApiError, bad
from tests.telegram.botapi.texts import Entity, units

STYLE_OF = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "code": "code",
    "pre": "pre",
    "a": "text_link",
    "blockquote": "blockquote",
    "tg-emoji": "custom_emoji",
}
NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
CHARACTER = re.compile(r"&(?:#(?P<dec>\d{1,7})|#[xX](?P<hex>[0-9a-fA-F]{1,6})|(?P<name>\w+));?")
TAG = re.compile(r"<\s*(?P<name>[^\s>/]+)(?P<attributes>[^>]*)>")
ATTRIBUTE = re.compile(
    r"""(?P<name>[^\s=]+)(?:\s*=\s*(?:"(?P<d>[^"]*)"|'(?P<s>[^']*)'|(?P<bare>[\w.-]+)))?"""
)


def parsed_html(source: str) -> tuple[str, list[Entity]]:
    """The text without tags, and what they marked."""
    return _Reader(source).read()


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.text = ""
        self.entities: list[Entity] = []
        self.open: list[tuple[str, dict[str, str], int, int]] = []

    def read(self) -> tuple[str, list[Entity]]:
        at = 0
        while at < len(self.source):
            char = self.source[at]
            if char == "&":
                at = self._character(at)
            elif char != "<":
                self.text += char
                at += 1
            elif self.source.startswith("</", at):
                at = self._end_tag(at)
            else:
                at = self._start_tag(at)
        if self.open:
            raise _wrong(f'Can\'t find end tag corresponding to start tag "{self.open[-1][0]}"')
        return self.text, self.entities

    def _character(self, at: int) -> int:
        match = CHARACTER.match(self.source, at)
        char = _meaning(match) if match else None
        if match is None or char is None:
            self.text += "&"
            return at + 1
        self.text += char
        return match.end()

    def _start_tag(self, at: int) -> int:
        where = f"at byte offset {len(self.source[:at].encode())}"
        match = TAG.match(self.source, at)
        if match is None:
            raise _wrong(f"Unclosed start tag {where}")
        name = match["name"].lower()
        if name not in STYLE_OF:
            raise _wrong(f'Unsupported start tag "{name}" {where}')
        attributes = {
            found["name"].lower(): found["d"] or found["s"] or found["bare"] or ""
            for found in ATTRIBUTE.finditer(match["attributes"])
        }
        if name == "span" and attributes.get("class") != "tg-spoiler":
            raise _wrong(f'Tag "span" must have class "tg-spoiler" {where}')
        self.open.append((name, attributes, units(self.text), len(self.text)))
        return match.end()

    def _end_tag(self, at: int) -> int:
        where = f"at byte offset {len(self.source[:at].encode())}"
        end = self.source.find(">", at)
        if end < 0:
            raise _wrong(f"Unclosed end tag {where}")
        if not self.open:
            raise _wrong(f"Unexpected end tag {where}")
        name = self.source[at + 2 : end].strip().lower()
        opened, attributes, begin, begin_char = self.open.pop()
        if name and name != opened:
            raise _wrong(f'Unmatched end tag {where}, expected "</{opened}>", found "</{name}>"')
        self._mark(opened, attributes, begin, self.text[begin_char:])
        return end + 1

    def _mark(self, tag: str, attributes: dict[str, str], begin: int, inside: str) -> None:
        entity: Entity = {"type": STYLE_OF[tag], "offset": begin, "length": units(inside)}
        if tag == "a":
            entity["url"] = _unescaped(attributes.get("href", "")) or inside
            if "." not in entity["url"] and "://" not in entity["url"]:
                return  # a link to nowhere is shown as plain text
        elif tag == "tg-emoji":
            entity["custom_emoji_id"] = attributes.get("emoji-id", "")
        elif tag == "blockquote" and "expandable" in attributes:
            entity["type"] = "expandable_blockquote"
        elif tag == "code" and self.open and self.open[-1][0] == "pre":
            language = attributes.get("class", "").removeprefix("language-")
            self.open[-1][1]["language"] = language
            return  # <pre><code class="language-…"> is one block with a language
        elif tag == "pre" and attributes.get("language"):
            entity["language"] = attributes["language"]
        if entity["length"]:
            self.entities.append(entity)


def _meaning(match: re.Match[str]) -> str | None:
    if match["name"]:
        return NAMED.get(match["name"])
    code = int(match["dec"]) if match["dec"] else int(match["hex"], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else None


def _unescaped(value: str) -> str:
    return CHARACTER.sub(lambda match: _meaning(match) or match[0], value)


def _wrong(why: str) -> ApiError:
    return bad(f"can't parse entities: {why}")
