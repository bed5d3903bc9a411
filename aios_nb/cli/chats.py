"""``chats``, ``history``, ``export``, ``rename``, ``delete``: conversations as they are kept."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aios_nb.cli import output
from aios_nb.cli.connect import talk_to
from aios_nb.cli.messages import Messages
from aios_nb.client import SiteClient
from aios_nb.errors import AiosError, UsageError
from aios_nb.richtext import one_line

PAGE = 1000
_LAST = "last"
_NODE_SHOWN = 8
"""Characters of another node's id; `aios-nb callers` has all of them."""


async def find(client: SiteClient, ref: str) -> str:
    """The id of a conversation by its id, the start of it, its title, or ``last``."""
    rows = (await client.call("chat.list", limit=PAGE))["conversations"]
    if ref == _LAST:
        if not rows:
            raise AiosError("there is no conversation yet", hint="start one: aios-nb chat")
        return str(rows[0]["conversation"])
    if any(row["conversation"] == ref for row in rows):
        return ref
    close = [row for row in rows if row["conversation"].startswith(ref)] or [
        row for row in rows if (row["title"] or "").casefold() == ref.casefold()
    ]
    if len(close) > 1:
        ids = ", ".join(row["conversation"] for row in close[:5])
        raise UsageError(f"{ref!r} fits several conversations: {ids}", hint="give more of the id")
    # An id we do not see in the list may still be an old one: the node has the last word.
    return str(close[0]["conversation"]) if close else ref


def chats(args: argparse.Namespace) -> None:
    answer = talk_to(args, lambda client: client.call("chat.list", limit=args.limit))
    if args.json:
        output.show_json(answer)
    elif not answer["conversations"]:
        output.note("no conversation yet; start one: aios-nb chat")
    else:
        output.table(
            ("CONVERSATION", "LAST USED", "BY", "WITH", "TITLE"),
            (
                (
                    row["conversation"],
                    output.moment(row["updated_at"]),
                    _by(row),
                    ", ".join(agent.partition("@")[0] for agent in row["agents"]),
                    row["title"] or "",
                )
                for row in answer["conversations"]
            ),
        )


def _by(row: Mapping[str, Any]) -> str:
    """Who opened it: you, one of your agents, a bridge, or another node."""
    opener = str(row["opener"])
    name, _, node = opener.partition("@")
    if name == "owner" and node:
        return "an agent" if row["parent"] else "you"
    return opener if opener.startswith("token:") else f"node {opener[:_NODE_SHOWN]}"


async def read(client: SiteClient, conversation: str) -> dict[str, Any]:
    """The whole of a conversation, page by page."""
    whole: dict[str, Any] = await client.call("chat.history", conversation=conversation, limit=PAGE)
    page = whole["messages"]
    while len(page) == PAGE:
        more = await client.call(
            "chat.history", conversation=conversation, after=page[-1]["seq"], limit=PAGE
        )
        page = more["messages"]
        whole["messages"] += page
    return whole


def history(args: argparse.Namespace) -> None:
    async def work(client: SiteClient) -> tuple[str, dict[str, Any]]:
        return client.node_id, await read(client, await find(client, args.conversation))

    node_id, whole = talk_to(args, work)
    if args.json:
        output.show_json(whole)
        return
    show = Messages(output.Paint(sys.stdout), node_id)
    print("\n".join(show.heading(whole)))
    for event in whole["messages"]:
        for line in show.lines(event):
            print(line)


def export(args: argparse.Namespace) -> None:
    to_stdout = str(args.file) == "-"
    form = "md" if to_stdout else form_of(args.file, replace=args.force)

    async def work(client: SiteClient) -> Any:
        conversation = await find(client, args.conversation)
        return await client.call("chat.export", conversation=conversation, format=form)

    answer: Mapping[str, Any] = talk_to(args, work)
    if to_stdout:
        output.show_text(answer["text"])
        return
    write(args.file, answer["text"].encode())
    output.note(f"written to {args.file}")


def form_of(path: Path, *, replace: bool) -> str:
    """The form that a file's name asks for; a file that is there is not replaced unasked."""
    form = path.suffix.removeprefix(".").lower()
    if form not in {"md", "json", "ipynb"}:
        raise UsageError(f"{str(path)!r} names no form", hint="end it in .md, .json or .ipynb")
    if path.exists() and not replace:
        raise UsageError(f"{path} exists", hint="choose another name")
    return form


def write(path: Path, content: bytes) -> None:
    """Put ``content`` into a file the person named."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def rename(args: argparse.Namespace) -> None:
    title = " ".join(args.title)

    async def work(client: SiteClient) -> Any:
        conversation = await find(client, args.conversation)
        return await client.call("chat.rename", conversation=conversation, title=title)

    answer = talk_to(args, work)
    if args.json:
        output.show_json(answer)
    else:
        print(f"{answer['conversation']} is now called {one_line(title)!r}")


def delete(args: argparse.Namespace) -> int:
    if not args.yes and not output.is_tty(sys.stdin):
        raise UsageError("deleting cannot be undone", hint="say --yes")

    async def work(client: SiteClient) -> Any:
        conversation = await find(client, args.conversation)
        if not args.yes:
            whole = await client.call("chat.history", conversation=conversation, limit=1)
            name = one_line(whole.get("title") or conversation)
            # Nothing else happens on this loop meanwhile, so the question may block it.
            said = input(f"Delete {name!r} for good? [y/N] ")  # noqa: ASYNC250
            if said.strip().lower() not in {"y", "yes"}:
                return None
        return await client.call("chat.delete", conversation=conversation)

    answer = talk_to(args, work)
    if answer is None:
        output.note("nothing was deleted")
        return 1
    if args.json:
        output.show_json(answer)
    else:
        print(f"{answer['conversation']} is deleted")
    return 0
