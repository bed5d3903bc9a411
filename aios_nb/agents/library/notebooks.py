"""The passages of a notebook: its cells, and the text of what they put out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from aios_nb.agents.library.passages import Outline, Passage, cut, markdown
from aios_nb.richtext import plain

OUTPUT_CHARS = 3000
"""Of the outputs of one cell."""
_SHOWN_TYPES = ("text/markdown", "text/plain")

Lines = str | list[str]


class _Output(msgspec.Struct):
    text: Lines = ""
    """Of a stream."""
    data: dict[str, msgspec.Raw] = {}
    """By type; only text is ever decoded, pictures are large."""
    ename: str = ""
    evalue: str = ""


class _Cell(msgspec.Struct):
    cell_type: str = ""
    source: Lines = ""
    id: Any = ""
    outputs: list[_Output] = []


class _Notebook(msgspec.Struct):
    cells: list[_Cell]


_decode = msgspec.json.Decoder(_Notebook).decode


def notebook(content: bytes) -> Iterator[Passage]:
    """Raises ``msgspec.MsgspecError`` for what is no notebook of version 4."""
    outline = Outline()
    for number, cell in enumerate(_decode(content).cells, 1):
        lines = _joined(cell.source).splitlines()
        found = (
            markdown(lines, outline)
            if cell.cell_type == "markdown"
            else cut(lines, title=outline.title)
        )
        cell_id = cell.id if isinstance(cell.id, str) else ""
        for passage in found:
            yield msgspec.structs.replace(passage, cell=number, cell_id=cell_id)
        said = "\n".join(filter(None, map(_said, cell.outputs)))[:OUTPUT_CHARS]
        for passage in cut(said.splitlines(), title=outline.title):
            yield msgspec.structs.replace(passage, cell=number, cell_id=cell_id, is_output=True)


def _said(output: _Output) -> str:
    """What an output says in words, without the colours of a terminal."""
    text = _joined(output.text)
    if output.ename:
        text = f"{output.ename}: {output.evalue}"
    for kind in _SHOWN_TYPES:
        if not text and kind in output.data:
            text = _joined(msgspec.json.decode(output.data[kind], type=Lines))
    return plain(text[: 2 * OUTPUT_CHARS]).strip()


def _joined(lines: Lines) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
