"""How what happens in a conversation reads in a chat app.

Who speaks stands above their words, in bold, where none of the words can come: an agent by its
name, a person by a name that says where they are and so is never that of an agent. What agents
write is Markdown, what people type stays as they typed it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from aios_bots.core.model import Attachment, Rich, Span, SpanKind
from aios_bots.core.spans import from_markdown, units
from aios_bots.core.splitting import PARTS_MAX, READ_PER_LIMIT, headed
from aios_nb.errors import Cancelled, from_wire
from aios_nb.richtext import cells_wide, one_line, plain

Row = Mapping[str, Any]
"""One row of ``chat.history``, or of ``chat.watch``."""

NAME_CHARS = 64
NODE_CHARS = 8
WHY_CHARS = 300
TABLE_ROWS = 20
TABLE_COLUMNS = 8
CELL_WIDE = 24
JSON_CHARS = 2500
BRIEF_CHARS = 600
"""Of a text that is one of several in a message."""
RESENT = "resent:"
"""How a notebook marks what it sent again; it is no reaction of a person."""
ENDED_BADLY = frozenset({"failed", "cancelled", "interrupted"})
APPS = {"tg": "Telegram"}
_PERSON = re.compile(r"([a-z]{1,16}):(.+)")
_TICKS = re.compile("`+")
_CODE = frozenset({SpanKind.PRE, SpanKind.CODE})


class Said(msgspec.Struct, frozen=True):
    """What somebody said."""

    head: str = ""
    """Who."""
    text: str = ""
    typed: bool = False
    """By a person: no Markdown."""
    files: tuple[Attachment, ...] = ()

    def looks(self, limit: int) -> Rich:
        """All of it as one text; of one that will be a file, the beginning."""
        text = self.text[: READ_PER_LIMIT * PARTS_MAX * limit]
        return headed(self.head, typed(text) if self.typed else from_markdown(text))

    def brief(self) -> Rich:
        """Its beginning, and the names of its files."""
        text = self.text.strip()
        if len(text) > BRIEF_CHARS:
            text = f"{text[:BRIEF_CHARS].rstrip()} …"
        names = [f"📎 {file.name}" for file in self.files]
        body = typed(text) if self.typed else from_markdown(text)
        return headed(self.head, joined([body, *map(Rich, names)], "\n"))


class Wording:
    """Words for the people of one bot. ``name_of`` knows the names of those who were let in."""

    def __init__(self, node_id: str, person_prefix: str, name_of: Callable[[str], str]) -> None:
        self._node_id, self._prefix, self._name_of = node_id, person_prefix, name_of

    # Who -------------------------------------------------------------------------------------

    def who(self, sender: str, kind: str) -> str:
        """Somebody as people know them."""
        name, _, node = sender.partition("@")
        elsewhere = f"@{node[:NODE_CHARS]}" if node and node != self._node_id else ""
        if kind == "agent":
            return one_line(name, NAME_CHARS) + elsewhere
        if name == "owner" and node:
            return f"owner{elsewhere} (notebook)"
        return self._person(name, elsewhere)

    def _person(self, sender: str, elsewhere: str) -> str:
        found = _PERSON.fullmatch(sender)
        if found is None or found[1] == "token":
            return "a program"
        name = ""
        if sender.startswith(self._prefix) and not elsewhere:
            name = called(self._name_of(sender.removeprefix(self._prefix)))
        name = name or one_line(sender.rpartition(":")[2], NAME_CHARS)
        return f"{name}{elsewhere} ({APPS.get(found[1], found[1])})"

    def whose(self, row: Row) -> str:
        return self.who(str(row["sender"]["id"]), str(row["sender"]["type"]))

    # What ------------------------------------------------------------------------------------

    def said(self, row: Row) -> Said:
        """A message of the log."""
        by_agent = row["sender"]["type"] == "agent"
        text = content(str(row["text"]), row["data"])
        files = tuple(map(attachment, row["files"] or ()))
        if not text.strip() and not files:
            text = "…"
        return Said(self.whose(row), text, typed=not by_agent, files=files)

    def edited(self, row: Row, text: str) -> Said:
        """The message of that row, now with another text."""
        return Said(self.whose(row), text, typed=row["sender"]["type"] != "agent")

    def question(self, row: Row) -> Said:
        """What an agent wants to know."""
        return Said(f"{self.whose(row)} asks", str(row["text"]))

    def ended(self, row: Row) -> str:
        """One line for a reply that did not come to its end."""
        who, status = self.whose(row), row["status"]
        error = from_wire((row["data"] or {}).get("error") or {"message": str(row["text"])})
        if status == "cancelled" or isinstance(error, Cancelled):
            return f"⏹ {who} was stopped."
        why = one_line(error.message, WHY_CHARS).removeprefix(f"{who} failed: ")
        if status == "interrupted":
            return f"⚠️ {who} was interrupted: {why}. Ask again if it is still wanted."
        return f"⚠️ {who} failed: {why}"

    def member(self, row: Row) -> str:
        """Somebody came or went."""
        ref = str(row["ref"])
        kind = "agent" if is_agent(ref) else "human"
        return f"{self.who(ref, kind)} {'joined' if row['kind'] == 'join' else 'left'}"


def is_agent(who: str) -> bool:
    """And not a person, such as ``owner@NODEID`` or ``tg:1:2``."""
    return "@" in who and ":" not in who and not who.startswith("owner@")


def called(name: str) -> str:
    """A name that somebody chose, without what could make it look like more than a name."""
    return one_line(one_line(name, NAME_CHARS).translate(_BRACKETS))


_BRACKETS = str.maketrans("()[]{}（）", "        ")  # noqa: RUF001 - they look like brackets


def attachment(file: Mapping[str, Any]) -> Attachment:
    """A file of a message; its name is a name only, wherever it came from."""
    name = one_line(str(file["name"]), 2 * NAME_CHARS).replace("/", "_").replace("\\", "_")
    return Attachment(str(file["sha256"]), name or "file", str(file["mime"]), int(file["size"]))


# Texts ---------------------------------------------------------------------------------------


def typed(text: str) -> Rich:
    """What a person typed, as it was typed; where there is code, the code as code.

    Nothing else gets a style: a bold line says who speaks.
    """
    if "```" not in text:
        return Rich(plain(text).strip())
    rich = from_markdown(text)
    return Rich(rich.text, tuple(span for span in rich.spans if span.kind in _CODE))


def note(text: str) -> Rich:
    """A line that nobody said."""
    line = one_line(text)
    return Rich(line, (Span(SpanKind.ITALIC, 0, units(line)),) if line else ())


def joined(texts: Sequence[Rich], between: str = "\n\n") -> Rich:
    """One text of several; blank ones are left out."""
    said: list[str] = []
    spans: list[Span] = []
    at = 0
    for one in texts:
        if not one.text.strip():
            continue
        if said:
            said.append(between)
            at += units(between)
        spans += (Span(span.kind, span.offset + at, span.length, span.arg) for span in one.spans)
        said.append(one.text)
        at += units(one.text)
    return Rich("".join(said), tuple(spans))


# Data ----------------------------------------------------------------------------------------


def content(text: str, data: Any) -> str:
    """Text and data of a message as Markdown: a table as a table, what the text repeats once."""
    if data is None:
        return text
    repeats = _repeats(text, data)
    if is_table(data):
        if not data["rows"]:
            return text
        shown = fenced("\n".join(table_lines(data["columns"], data["rows"])))
        return shown if repeats or not text.strip() else f"{text.rstrip()}\n\n{shown}"
    if isinstance(data, dict | list) and data and (repeats or not text.strip()):
        whole = json.dumps(data, indent=2, ensure_ascii=False)
        return fenced(whole if len(whole) <= JSON_CHARS else f"{whole[:JSON_CHARS]}\n…", "json")
    return text or one_line(json.dumps(data, ensure_ascii=False), JSON_CHARS)


def is_table(data: Any) -> bool:
    return (
        isinstance(data, dict)
        and isinstance(data.get("columns"), list)
        and isinstance(data.get("rows"), list)
        and bool(data["columns"])
        and all(isinstance(row, list) and len(row) == len(data["columns"]) for row in data["rows"])
    )


def _repeats(text: str, data: Any) -> bool:
    """Whether the text is only the data written out, as it is for an agent that returns data."""
    try:
        return bool(json.loads(text) == data)
    except (ValueError, RecursionError):
        pass
    if is_table(data):
        return all(line[:1] in {"", "|", "…"} for line in text.strip().split("\n"))
    whole = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return len(text) > 1 and text.endswith("…") and whole.startswith(text[:-1])


def table_lines(columns: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    """The first rows, in columns that stand below each other."""
    kept = [row[:TABLE_COLUMNS] for row in (columns, *rows[:TABLE_ROWS])]
    cells = [[_cell(value) for value in row] for row in kept]
    widths = [
        min(CELL_WIDE, max(cells_wide(row[at]) for row in cells)) for at in range(len(cells[0]))
    ]
    lines = [
        "  ".join(_fit(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("─" * width for width in widths))
    more = [
        f"{left} more {what}"
        for left, what in (
            (len(rows) - TABLE_ROWS, "rows"),
            (len(columns) - TABLE_COLUMNS, "columns"),
        )
        if left > 0
    ]
    return [*lines, *([f"… {', '.join(more)}"] if more else [])]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    return one_line(str(value), 4 * CELL_WIDE)


def _fit(text: str, width: int) -> str:
    wide = cells_wide(text)
    if wide <= width:
        return text + " " * (width - wide)
    while text and cells_wide(text) > width - 1:
        text = text[:-1]
    return f"{text}…{' ' * (width - 1 - cells_wide(text))}"


def fenced(text: str, lang: str = "") -> str:
    """Text as a block of code, whatever ticks are in it."""
    text = plain(text)
    fence = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{fence}{lang}\n{text}\n{fence}"
