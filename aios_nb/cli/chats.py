"""``chats``, ``history``, ``export``, ``rename``, ``delete``: conversations as they are kept."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from aios_nb.cli import output
from aios_nb.cli.connect import talk_to
from aios_nb.client import SiteClient
from aios_nb.errors import UsageError
from aios_nb.people.conversations import find, form_of, opened_by, read, renamed, write
from aios_nb.people.layout import moment
from aios_nb.people.messages import Messages
from aios_nb.richtext import one_line


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
                    moment(row["updated_at"]),
                    opened_by(row),
                    ", ".join(agent.partition("@")[0] for agent in row["agents"]),
                    row["title"] or "",
                )
                for row in answer["conversations"]
            ),
        )


def history(args: argparse.Namespace) -> None:
    async def work(client: SiteClient) -> tuple[str, dict[str, Any]]:
        return client.node_id, await read(client, await find(client, args.conversation))

    node_id, whole = talk_to(args, work)
    if args.json:
        output.show_json(whole)
        return
    show = Messages(node_id, output.Paint(sys.stdout))
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


def rename(args: argparse.Namespace) -> None:
    title = " ".join(args.title).strip()

    async def work(client: SiteClient) -> Any:
        conversation = await find(client, args.conversation)
        return await client.call("chat.rename", conversation=conversation, title=title)

    answer = talk_to(args, work)
    if args.json:
        output.show_json(answer)
    else:
        print(renamed(answer["conversation"], title))


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
