"""What an agent answered: its text as rich text, data as a table, pictures, files to save."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator, Sequence
from typing import Any

from aios_nb.errors import AiosError
from aios_nb.notebook.show import page
from aios_nb.notebook.show.agents import spoken
from aios_nb.notebook.show.page import Bundle, dim, esc
from aios_nb.notebook.widgets.contents import data_view
from aios_nb.notebook.widgets.printed import looks_like
from aios_nb.people.layout import size
from aios_nb.people.values import (
    data_lines,
    is_table,
    is_table_alone,
    says_nothing,
    says_the_same,
)
from aios_nb.richtext import one_line, plain
from aios_nb.site import Reply, ReplyFile

PICTURE_MAX_BYTES = 1 << 20
"""A larger picture is named, not shown: it would be in the notebook's file for good."""
PICTURES_MAX_BYTES = 4 << 20
"""All pictures of one reply."""
LINK_MAX_BYTES = 64 << 10
"""A larger file is saved by ``reply.files[n].save()``."""
SHOWN_CHARS = 200_000
"""Of a text: fifty screens, which stay in the notebook's file."""
CELL_WHOLE = 24
"""Characters of a cell that is one line: 40 columns side by side leave no room for a digit."""
EMPTY = "(empty answer)"
"""For the page, where a frame around nothing looks broken; a program gets the empty text."""
ANSWER = 'reply.answer("…")'


def reply(
    said: Reply, took_s: float | None = None, before: str = "", sent: Sequence[str] = ()
) -> Bundle:
    """An answer, or a question with how to answer it; ``before`` it stands ready HTML.

    ``sent``: the files that went with what was asked. One that was taken for a file by mistake
    is seen here.
    """
    return page.bundle(_page(said, took_s, before, sent), text(said, sent))


def with_files(names: Sequence[str]) -> str:
    """A few words about what was sent along; empty for nothing."""
    return f"with {one_line(', '.join(names))}" if names else ""


def duration(took_s: float) -> str:
    return f"{took_s:.1f} s" if took_s >= 1 else f"{took_s * 1000:.0f} ms"


def byline(agent: str, *more: str) -> str:
    """Who speaks, and a few words about it."""
    name, place = spoken(agent)
    words = " · ".join(filter(None, (place, *more)))
    return f'<div class="h"><b>{esc(name)}</b>{dim(words) if words else ""}</div>'


def _page(said: Reply, took_s: float | None, before: str, sent: Sequence[str]) -> str:
    asks = said.status == "input_required"
    took = "" if took_s is None or asks else duration(took_s)
    status = {"input_required": "asks", "accepted": "accepted"}.get(said.status, "")
    head = byline(said.agent, with_files(sent), status, took)
    body = before + "".join(_body(said))
    return page.bare(f'{head}<div class="b">{body or dim(EMPTY)}</div>')


def _body(said: Reply) -> Iterator[str]:
    view, repeats = data_view(str(said), said.data)
    if said.strip() and not (repeats and view):
        yield page.rich(said[:SHOWN_CHARS])
        if len(said) > SHOWN_CHARS:
            more = f"… {len(said) - SHOWN_CHARS:,} more characters: str(reply) has all"
            yield f"<div>{dim(more)}</div>"
    if view is not None:
        yield data_html(view)
    yield from files_html(said.files)
    if said.status == "input_required":
        yield f"<div>{dim('answer with')} <code>{html.escape(ANSWER)}</code></div>"
    elif said.status == "accepted":
        yield f"<div>{dim('its answer, when it has come:')} <code>reply.wait()</code></div>"


def data_html(view: dict[str, Any]) -> str:
    """Data that ``data_view`` made ready."""
    if "json" in view:
        cut = f"\n… {view['of'] - len(view['json'])} more characters" if "of" in view else ""
        shown = f'<pre class="p">{page.lines(view["json"] + cut)}</pre>'
        opened = " open" if view.get("open") else ""
        return f"<details{opened}><summary>data</summary>{shown}</details>"
    numbers = set(view["numbers"])
    head = "".join(f"<th>{_cell(name)}</th>" for name in view["columns"])
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{"num" if at in numbers else ""}">{_cell(cell)}</td>'
            for at, cell in enumerate(row)
        )
        + "</tr>"
        for row in view["rows"]
    )
    more = [
        f"{view[of] - len(view[what])} more {what}"
        for what, of in (("rows", "of_rows"), ("columns", "of_columns"))
        if view[of] > len(view[what])
    ]
    rest = f"… {', '.join(more)}: reply.df() has all"
    note = f"<div>{dim(rest)}</div>" if more else ""
    rows = f'<table class="v"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="x" tabindex="0">{rows}</div>{note}'


def _cell(text: object) -> str:
    """A number or a few words in one line, the table may be wide; what is longer is broken."""
    said = esc(text)
    return said if len(said) <= CELL_WHOLE else page.free(said)


def files_html(files: Sequence[ReplyFile]) -> Iterator[str]:
    """Pictures that are small enough, links to small files, names of the rest."""
    room = PICTURES_MAX_BYTES
    for number, file in enumerate(files):
        content = _content(file) if file.size <= min(PICTURE_MAX_BYTES, room) else None
        if content and looks_like(content, file.mime):
            room -= len(content)
            yield f'<div><img alt="{esc(file.name)}" src="{_uri(content, file.mime)}"></div>'
        else:
            yield f"<div>{_named(file, content)} {dim(f'reply.files[{number}].save()')}</div>"


def _named(file: ReplyFile, content: bytes | None) -> str:
    name, about = esc(file.name), dim(f"{file.mime}, {size(file.size)}")
    if content and len(content) <= LINK_MAX_BYTES:
        # As bytes to save: a page of theirs must not open in the notebook's origin.
        uri = _uri(content, "application/octet-stream")
        return f'📎 <a href="{uri}" download="{name}">{name}</a> {about}'
    return f"📎 {name} {about}"


def _content(file: ReplyFile) -> bytes | None:
    try:
        return file.read()
    except AiosError:  # its node is stopped, or the file is gone
        return None


def _uri(content: bytes, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"


def text(said: Reply, sent: Sequence[str] = ()) -> str:
    """The same for a terminal."""
    alone = is_table_alone(str(said), said.data)
    shown = [plain_text(str(said))] if said and not alone else []
    return "\n".join([*shown, *beside(said, alone=alone, sent=sent)])


def plain_text(said: str) -> str:
    return plain(said).rstrip("\n")


def beside(said: Reply, *, alone: bool, sent: Sequence[str] = ()) -> list[str]:
    """What there is besides the text, in lines; ``alone``: the table stands for the text."""
    data, lines = said.data, list[str]()
    asks = said.status == "input_required"
    if not says_nothing(data) and (alone or is_table(data) or not says_the_same(str(said), data)):
        lines += data_lines(data)
    lines += [
        f"[{one_line(file.name)}, {size(file.size)}: reply.files[{number}].save()]"
        for number, file in enumerate(said.files)
    ]
    if sent:
        lines.append(f"[{with_files(sent)}]")
    if asks:
        lines.append(f"[{spoken(said.agent)[0]} asks; answer with {ANSWER}]")
    elif said.status == "accepted":
        lines.append("[accepted; its answer, when it has come: reply.wait()]")
    return lines
