"""What the librarian says."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aios_nb.agents.library import links
from aios_nb.agents.library.quoting import Needles, block, excerpt, met, needles, span
from aios_nb.agents.library.shelf import Found, Stock
from aios_nb.richtext import plain

COLUMNS = ["path", "line", "cell", "title", "score", "text", "link"]
NEAR = 0.6
"""What a passage without a word of the question must have of the best score to be shown."""
NEAREST_SHOWN = 3
"""Passages that are shown when none has a word of the question."""
_INDENT = "   "
_HOW = "Tell me where to look, for example `look in ~/notes`."
_CAN_READ = "I read notebooks, Markdown, text, code and the headers of tables."

Said = tuple[str, dict[str, Any]]


def said(text: str, folder: Path | None, rows: Sequence[list[Any]] = ()) -> Said:
    where = None if folder is None else plain(str(folder))
    return text, {"folder": where, "columns": COLUMNS, "rows": list(rows)}


def no_folder() -> Said:
    started = "A node can also be started with one: `aios-nb up --library DIR`."
    return said(f"I find passages in a folder, but none is named yet. {_HOW} {started}", None)


def forgotten(folder: Path | None) -> Said:
    if folder is None:
        return no_folder()
    return said(f"I look in {span(str(folder))} no more. {_HOW}", None)


def not_for_agents(folder: Path | None) -> Said:
    return said("Only a person may name the folder; an agent may ask about what is in it.", folder)


def not_there(wanted: Path, current: Path | None) -> Said:
    """For a folder that was named: what is wrong with it, and what may be meant."""
    if wanted.is_file():
        hint = f"Name the folder it is in: `look in` {span(str(wanted.parent))}"
        return said(f"{span(str(wanted))} is a file. {hint}", current)
    try:
        others = [entry.name for entry in wanted.parent.iterdir() if entry.is_dir()]
    except OSError:
        others = []
    near = difflib.get_close_matches(wanted.name, others, n=1)
    hint = f"Did you mean {span(str(wanted.parent / near[0]))}?" if near else "Check its name."
    still = "" if current is None else f" I still look in {span(str(current))}."
    return said(f"There is no folder {span(str(wanted))}. {hint}{still}", current)


def own_home(wanted: Path, current: Path | None) -> Said:
    return said(f"{span(str(wanted))} holds the keys of this node. I do not read it.", current)


def lost(folder: Path, error: OSError) -> Said:
    """For a folder that was named before."""
    shown = span(str(folder))
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return said(f"The folder {shown} is not there any more. {_HOW}", folder)
    return said(f"The folder {shown} cannot be read: {error.strerror}. {_HOW}", folder)


def standing(folder: Path, stock: Stock) -> Said:
    if not stock.passages and not stock.waiting:
        return empty(folder, stock)
    text = f"I look in {span(str(folder))}: {_counted(stock)}. Ask me what you want to find there."
    return said(_with_notes(text, stock), folder)


def empty(folder: Path, stock: Stock) -> Said:
    text = f"There is nothing to find in {span(str(folder))}. {_CAN_READ}"
    return said(_with_notes(f"{text} {_HOW}", stock), folder)


def passages(
    question: str, found: Sequence[Found], folder: Path, stock: Stock, relative_to: Path | None
) -> Said:
    """The passages as a list, each with its place and the lines that fit."""
    if not stock.passages and not stock.waiting:
        return empty(folder, stock)
    where = f"in {span(str(folder))} ({_counted(stock)})"
    if not found:
        return said(
            _with_notes(f"Nothing {where} fits. Try other words, or name another folder.", stock),
            folder,
        )
    wanted = needles(question)
    fitting = [one for one in found if _fits(one, wanted) or one.score >= NEAR * found[0].score]
    text = f"Found {where}:"
    if not any(_fits(one, wanted) for one in found):
        fitting = fitting[:NEAREST_SHOWN]
        text = f"No passage {where} has these words. The nearest in meaning:"
    items, rows = [], []
    for number, one in enumerate(fitting, 1):
        line, lines = excerpt(one.passage, wanted)
        path = folder / one.path
        target = links.link(path, one.passage, line, relative_to)
        title = f" · {span(one.passage.title)}" if one.passage.title.strip() else ""
        head = f"{number}. [{span(links.place(one.path, one.passage, line))}]({target}){title}"
        items.append("\n".join([head, "", *(_INDENT + row for row in block(lines).split("\n"))]))
        texts = plain(str(path)), plain(one.passage.title), plain(one.passage.text)
        rows.append([texts[0], line, one.passage.cell, texts[1], one.score, texts[2], target])
    return said(_with_notes("\n\n".join([text, *items]), stock), folder, rows)


def _fits(one: Found, wanted: Needles) -> bool:
    """Whether it has a word of the question, and not just a like meaning."""
    return met(f"{one.path} {one.passage.title} {one.passage.text}", wanted) > 0


def _counted(stock: Stock) -> str:
    of_them = f", {stock.notebooks} of them notebooks" if stock.notebooks else ""
    return f"{_count(stock.files, 'file')}{of_them}, {_count(stock.passages, 'passage')}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def _with_notes(text: str, stock: Stock) -> str:
    notes = []
    if stock.waiting:
        notes.append(f"{_count(stock.waiting, 'file')} not read yet: ask again and I go on.")
    if not stock.complete:
        notes.append("The folder has more than I can hold; a folder inside it may do.")
    if stock.unreadable:
        notes.append(f"{stock.unreadable:,} could not be read.")
    return "\n\n".join([text, " ".join(notes)]) if notes else text
