"""Conversations as people name them, read them and put them into files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from aios_nb.client import SiteClient, pages
from aios_nb.envelope import ID
from aios_nb.errors import AiosError, UsageError
from aios_nb.people.naming import NODE_SHOWN, app_of
from aios_nb.richtext import one_line

LISTED = 1000
_AT_ONCE = 200
_LOOKED_AT = 5_000
"""Of all conversations of a node, the busiest agents' callers included, these are gone through."""
_LAST = "last"
_YOU = "you"
_TOKEN = "token:"  # noqa: S105 - what its id begins with


async def yours(client: SiteClient) -> AsyncIterator[dict[str, Any]]:
    """The conversations you opened, here or on a phone, last used first.

    Not those of your agents, nor of whoever else asks them: what is said in these is not for you.
    """
    before: dict[str, str] = {}
    for _ in range(_LOOKED_AT // _AT_ONCE):
        listed = await client.call("chat.list", limit=_AT_ONCE, **before)
        rows = listed["conversations"]
        for row in rows:
            if row["parent"] is None and (opened_by(row) == _YOU or opened_in(row)):
                yield row
        if len(rows) < _AT_ONCE:
            return
        before = {"before": rows[-1]["cursor"]}


async def recent(client: SiteClient, most: int) -> list[dict[str, Any]]:
    """So many of yours at most."""
    found: list[dict[str, Any]] = []
    async for row in yours(client):
        found.append(row)
        if len(found) == most:
            break
    return found


async def find(client: SiteClient, ref: str) -> str:
    """The id of a conversation by its id, the start of it, its title, or ``last``."""
    if not ref.strip():  # an empty variable is the start of every id
        raise UsageError("no conversation is named", hint="its id, its title, or last")
    if ref == _LAST:
        for row in await recent(client, 1):
            return str(row["conversation"])
        raise AiosError("there is no conversation yet", hint="start one: aios-nb chat")
    rows = (await client.call("chat.list", limit=LISTED))["conversations"]
    if any(row["conversation"] == ref for row in rows):
        return ref
    close = [row for row in rows if row["conversation"].startswith(ref)] or [
        row for row in rows if (row["title"] or "").casefold() == ref.casefold()
    ]
    if len(close) > 1:
        ids = ", ".join(row["conversation"] for row in close[:5])
        raise UsageError(f"{ref!r} fits several conversations: {ids}", hint="give more of the id")
    if not close and not ID.fullmatch(ref):
        raise UsageError(f"no such conversation: {ref[:60]}", hint="`aios-nb chats` lists yours")
    # An id we do not see in the list may still be an old one: the node has the last word.
    return str(close[0]["conversation"]) if close else ref


async def find_kept(client: SiteClient, ref: str) -> str:
    """The same for somebody who uses it later: one that is not there is said now."""
    found = await find(client, ref)
    await client.call("chat.history", conversation=found, limit=1)
    return found


def opened_by(row: Mapping[str, Any]) -> str:
    """Who opened it: you, one of your agents, a bridge, or another node."""
    opener = str(row["opener"])
    name, _, node = opener.partition("@")
    if name == "owner" and node:
        return "an agent" if row["parent"] else _YOU
    if opener.startswith(_TOKEN):
        return opened_in(row) or opener
    return f"node {opener[:NODE_SHOWN]}"


def opened_in(row: Mapping[str, Any]) -> str:
    """The chat app where it was opened; empty for all others."""
    people = row["members"] if row["opener"].startswith(_TOKEN) else ()
    return next(filter(None, map(app_of, people)), "")


async def read(client: SiteClient, conversation: str) -> dict[str, Any]:
    """The whole of a conversation, and how it stands."""
    told = [page async for page in pages(client, conversation)]
    return {**told[-1], "messages": [row for page in told for row in page["messages"]]}


def renamed(conversation: str, title: str) -> str:
    """What became of it, in words."""
    if not title:
        return f"{conversation} has no title now: its first words stand for it again"
    return f"{conversation} is now called {one_line(title)!r}"


def form_of(path: Path, *, replace: bool) -> str:
    """The form that a file's name asks for; a file that is there is not replaced unasked."""
    form = path.suffix.removeprefix(".").lower()
    if form not in {"md", "json", "ipynb"}:
        raise UsageError(f"{str(path)!r} names no form", hint="end it in .md, .json or .ipynb")
    if path.exists() and not replace:
        raise UsageError(f"{path} exists", hint="choose another name, or --force")
    return form


def write(path: Path, content: bytes) -> None:
    """Put ``content`` into a file the person named."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
