"""A conversation on paper: as text and as HTML that runs nothing, for who has no widgets."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping
from typing import Any

from aios_nb import richtext
from aios_nb.notebook.widgets.contents import MENTION
from aios_nb.notebook.widgets.items import Item
from aios_nb.people.layout import moment, size, table_lines
from aios_nb.richtext import one_line

AT_ONCE_S = 0.05
"""What took less needs no word."""
_SIGNS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
"""Pictures that are shown, and how their bytes begin. Never SVG, which may hold a program."""
_ENDED = {"failed": "failed", "cancelled": "stopped", "interrupted": "interrupted"}
_EMPTY = "(empty answer)"


def is_picture(file: Mapping[str, Any]) -> bool:
    """Whether it says that it is a picture of a kind that is shown."""
    return file["mime"] in _SIGNS


def looks_like(content: bytes, mime: str) -> bool:
    """Whether these bytes are what they are said to be."""
    return mime in _SIGNS and content.startswith(_SIGNS[mime])


def as_text(title: str, items: Iterable[Item]) -> str:
    """The conversation in lines."""
    lines = [title]
    for item in _standing(items):
        if item.kind == "note":
            lines += ["", f"{item.who.name} {item.text}"]
            continue
        lines += ["", _by_line(item)]
        if item.text:
            body = richtext.to_text(richtext.parse(item.text)) if item.who.agent else item.text
            lines += [f"  {line}".rstrip() for line in body.rstrip().split("\n")]
        if item.data is not None:
            lines += [f"  {line}" for line in _data_lines(item.data)]
        lines += [f"  [{one_line(file['name'])}, {size(file['size'])}]" for file in item.files]
        if is_empty(item):
            lines.append(f"  {_EMPTY}")
        if item.status in _ENDED:
            lines.append(f"  {_end(item)}")
    return "\n".join(lines)


def as_html(
    title: str, items: Iterable[Item], pictures: Mapping[str, bytes], note: str = ""
) -> str:
    """The same as HTML. ``pictures``: by the hash of a file. ``note``: below the title."""
    parts = [f'<div style="{_BOX}"><div style="{_HEAD}">{html.escape(title)}</div>']
    if note:
        parts.append(f'<div style="{_ITEM};{_SMALL}">{html.escape(note)}</div>')
    parts += [_item_html(item, pictures) for item in _standing(items)]
    return "\n".join([*parts, "</div>"])


def is_empty(item: Item) -> bool:
    """Whether it is an answer with nothing in it."""
    said = item.text or item.data is not None or item.files or item.status
    return item.who.agent and item.kind == "said" and not said


def _standing(items: Iterable[Item]) -> list[Item]:
    """Without what was sent again, and without the answers to it."""
    whole = list(items)
    old = {item.id for item in whole if item.resent}
    return [item for item in whole if item.id not in old and item.re not in old]


def _end(item: Item) -> str:
    """How it ended; who stopped it knows why."""
    word = _ENDED[item.status]
    return word if item.status == "cancelled" or not item.problem else f"{word}: {item.problem}"


def _by_line(item: Item) -> str:
    parts = [f"{item.who.name} → {', '.join(item.to)}" if item.to else item.who.name]
    parts.append(moment(item.at))
    if item.kind == "asks":
        parts.append("asks")
    if item.took_s is not None and item.took_s >= AT_ONCE_S:
        parts.append(f"{item.took_s:.1f} s")
    if item.status in {"waits", "runs"}:
        parts.append("is writing…")
    return " · ".join(parts)


def _data_lines(data: Mapping[str, Any]) -> list[str]:
    if "json" in data:
        return str(data["json"]).split("\n")
    more = _more(data)
    return [*table_lines(data["columns"], data["rows"]), *([more] if more else [])]


def _more(data: Mapping[str, Any]) -> str:
    """How much of a table there is beyond what is shown."""
    rows, columns = len(data["rows"]), len(data["columns"])
    said = [f"{rows} of {data['of_rows']} rows"] if rows < data["of_rows"] else []
    said += [f"{columns} of {data['of_columns']} columns"] if columns < data["of_columns"] else []
    return f"… {' and '.join(said)}" if said else ""


# HTML -----------------------------------------------------------------------------------------

_BOX = (
    "border:1px solid rgba(128,128,128,.35);border-radius:10px;overflow:hidden;max-width:60em;"
    "font-family:system-ui,sans-serif;font-size:13px;line-height:1.5"
)
_HEAD = (
    "padding:8px 14px;font-weight:600;background:rgba(128,128,128,.08);"
    "border-bottom:1px solid rgba(128,128,128,.35)"
)
_ITEM = "padding:8px 14px;overflow-wrap:anywhere"
_SMALL = "opacity:.65;font-size:11.5px"
_BAD = "color:#c0392b"
_CELL = "border:1px solid rgba(128,128,128,.35);padding:3px 8px;overflow-wrap:normal"
_PRE = (
    "margin:6px 0;padding:8px 10px;border:1px solid rgba(128,128,128,.35);border-radius:7px;"
    "overflow:auto;max-height:420px;font-size:12px"
)


def _item_html(item: Item, pictures: Mapping[str, bytes]) -> str:
    if item.kind == "note":
        said = html.escape(f"{item.who.name} {item.text}")
        return f'<div style="{_ITEM};{_SMALL}">{said}</div>'
    who, _, rest = _by_line(item).partition(" · ")
    when = f'<span style="{_SMALL}">{html.escape(rest)}</span>'
    parts = [f'<div style="{_ITEM}"><b>{html.escape(who)}</b> {when}']
    if item.text:
        parts.append(_text_html(item))
    if item.data is not None:
        parts.append(_data_html(item.data))
    parts += [_file_html(file, pictures.get(file["sha256"])) for file in item.files]
    if is_empty(item):
        parts.append(f'<div style="{_SMALL}">{_EMPTY}</div>')
    if item.status in _ENDED:
        parts.append(f'<div style="{_BAD}">{html.escape(_end(item))}</div>')
    return "".join([*parts, "</div>"])


def _text_html(item: Item) -> str:
    if item.who.agent or "```" in item.text:
        return richtext.to_html(richtext.parse(item.text))
    said = MENTION.sub(lambda found: f"@{found[1].partition('@')[0]}", item.text)
    return f'<div style="white-space:pre-wrap;overflow-wrap:anywhere">{html.escape(said)}</div>'


def _data_html(data: Mapping[str, Any]) -> str:
    if "json" in data:
        return f'<pre style="{_PRE}">{html.escape(data["json"])}</pre>'
    right = set(data["numbers"])

    def row(cells: Iterable[str], tag: str) -> str:
        made = [
            f'<{tag} style="{_CELL};text-align:{"right" if nr in right else "left"}">'
            f"{html.escape(cell)}</{tag}>"
            for nr, cell in enumerate(cells)
        ]
        return f"<tr>{''.join(made)}</tr>"

    rows = "".join(row(cells, "td") for cells in data["rows"])
    table = f"<thead>{row(data['columns'], 'th')}</thead><tbody>{rows}</tbody>"
    return (
        f'<div style="overflow:auto;max-height:420px"><table style="border-collapse:collapse;'
        f'font-size:12px;margin:6px 0">{table}</table></div>'
        f'<div style="{_SMALL}">{html.escape(_more(data))}</div>'
    )


def _file_html(file: Mapping[str, Any], content: bytes | None) -> str:
    name = html.escape(f"{one_line(file['name'])}, {size(file['size'])}")
    if content is None or not looks_like(content, file["mime"]):
        return f'<div style="{_SMALL}">[{name}]</div>'
    source = f"data:{file['mime']};base64,{base64.b64encode(content).decode()}"
    return f'<div><img src="{source}" alt="{name}" style="max-width:100%;margin:6px 0"></div>'
