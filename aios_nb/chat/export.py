"""A conversation as a file: Markdown to read, JSON to process, a notebook to go on with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from aios_nb.chat.conversation import Conversation
from aios_nb.envelope import Event, Kind, Status
from aios_nb.errors import InvalidParams
from aios_nb.richtext import one_line

NAME_CHARS = 48
"""Of a file that is downloaded."""
_FENCE = "`"


def export(
    conversation: Conversation, events: Sequence[Event], form: str, reader: str
) -> dict[str, Any]:
    """``{name, mime, text}`` in the form ``md``, ``json`` or ``ipynb``, for this reader's eyes."""
    makers = {
        "md": (_markdown, "text/markdown"),
        "json": (_json, "application/json"),
        "ipynb": (_notebook, "application/x-ipynb+json"),
    }
    if form not in makers:
        raise InvalidParams(f"no such form: {form[:20]}", hint="one of md, json, ipynb")
    make, mime = makers[form]
    return {
        "name": f"{_slug(conversation.title) or conversation.id}.{form}",
        "mime": mime,
        "text": make(conversation, _edited(events), reader),
    }


def _edited(events: Sequence[Event]) -> list[Event]:
    """The messages with their last edit applied; other rows as they are."""
    edits = {event.ref: event.text for event in events if event.kind is Kind.EDIT}
    return [
        msgspec.structs.replace(event, text=edits[event.message_id])
        if event.kind is Kind.MESSAGE and event.message_id in edits
        else event
        for event in events
    ]


def _title(conversation: Conversation) -> str:
    return " ".join((conversation.title or f"Conversation {conversation.id}").split())


def _slug(title: str) -> str:
    """Words of it that every system takes for a file's name."""
    return re.sub(r"\W+", "-", title.lower()).strip("-_")[:NAME_CHARS]


def _speaker(who: str, reader: str) -> str:
    name, _, node = who.partition("@")
    if who == reader:
        return "you"
    return f"{name}@{node[:12]}" if node else name


def _spoken(events: Sequence[Event], reader: str) -> list[str]:
    """What was said, message by message."""
    why: dict[str, list[str]] = {}
    for event in events:
        if event.kind is Kind.STATUS and event.ref and event.text and _ended_badly(event):
            why.setdefault(event.ref, []).append(one_line(event.text))
    return [
        _message_markdown(event, reader, why.get(event.message_id, []))
        for event in events
        if event.kind is Kind.MESSAGE
    ]


def _ended_badly(event: Event) -> bool:
    return event.status is not None and event.status.is_final and event.status is not Status.DONE


def _message_markdown(event: Event, reader: str, why: Sequence[str]) -> str:
    """One message: who and when, then the text set off so that it cannot pose as structure."""
    lines = [f"**{_speaker(event.sender.id, reader)}** · {event.at}", ""]
    lines += [f"> {line}".rstrip() for line in (event.text or "").splitlines()]
    if event.data is not None:
        body = msgspec.json.format(msgspec.json.encode(event.data), indent=2).decode()
        fence = _FENCE * max(3, _longest_run(body) + 1)
        lines += ["", f"{fence}json", body, fence]
    lines += [f"- file: {file.name} ({file.mime}, {file.size} bytes)" for file in event.files]
    if event.status is not None and event.status is not Status.DONE:
        lines += ["", f"*{event.status.value}*"]
        lines += [f"> {reason}" for reason in why]
    return "\n".join(lines)


def _longest_run(text: str) -> int:
    longest = run = 0
    for char in text:
        run = run + 1 if char == _FENCE else 0
        longest = max(longest, run)
    return longest


def _markdown(conversation: Conversation, events: Sequence[Event], reader: str) -> str:
    head = f"# {_title(conversation)}\n\nWith {', '.join(conversation.agents)}."
    return "\n\n".join([head, *_spoken(events, reader)]) + "\n"


def _json(conversation: Conversation, events: Sequence[Event], reader: str) -> str:
    del reader  # ids as they are
    form = {
        "conversation": conversation.id,
        "title": conversation.title,
        "agents": conversation.agents,
        "parent": conversation.parent,
        "messages": list(events),
    }
    return msgspec.json.format(msgspec.json.encode(form), indent=2).decode() + "\n"


def _notebook(conversation: Conversation, events: Sequence[Event], reader: str) -> str:
    said = _spoken(events, reader)
    cells = [_cell("markdown", f"# {_title(conversation)}", 0)]
    cells += [_cell("markdown", text, index) for index, text in enumerate(said, start=1)]
    agent = (conversation.agents or ["concierge"])[0]
    go_on = (
        "import aios_nb as aios\n\n"
        "node = aios.up()\n"
        f"node.ask({agent!r}, 'and then?', conversation={conversation.id!r})"
    )
    cells.append(_cell("code", go_on, len(said) + 1))
    form = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return msgspec.json.format(msgspec.json.encode(form), indent=1).decode() + "\n"


def _cell(kind: str, source: str, index: int) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": f"cell-{index}",
        "metadata": {},
        "source": source.splitlines(keepends=True),
    }
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell
