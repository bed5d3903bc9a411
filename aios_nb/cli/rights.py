"""``withdraw``, ``block``, ``allow``, ``callers``, ``token``: who may do what."""

from __future__ import annotations

import argparse
import sys

from aios_nb.cli import output
from aios_nb.cli.connect import found, home_of, talk_to
from aios_nb.people.layout import moment
from aios_nb.people.naming import caller, whole_node_id


def withdraw(args: argparse.Namespace) -> None:
    answer = talk_to(args, lambda client: client.call("agents.withdraw", name=args.name))
    _done(args, answer, f"{args.name} is no longer offered")


def block(args: argparse.Namespace) -> None:
    node = whole_node_id(args.target)
    answer = talk_to(args, lambda client: client.call("nodes.block", node=node))
    _done(args, answer, f"{args.target} is shut out")


def allow(args: argparse.Namespace) -> None:
    node = whole_node_id(args.target)
    answer = talk_to(args, lambda client: client.call("nodes.allow", node=node))
    _done(args, answer, f"{args.target} may call agents with access `known`")


def _done(args: argparse.Namespace, answer: object, line: str) -> None:
    if args.json:
        output.show_json(answer)
    else:
        print(line)


def callers(args: argparse.Namespace) -> None:
    answer = talk_to(args, lambda client: client.call("node.callers"))
    if args.json:
        output.show_json(answer)
    elif not answer["callers"]:
        output.note("nobody has called yet")
    else:
        output.table(
            ("CALLER", "CALLS", "TIME", "LAST", ""),
            (
                (
                    caller(row["id"], row.get("name", "")),
                    row["calls"],
                    f"{row['seconds']:.1f} s",
                    moment(row["last_at"] or ""),
                    "blocked" if row.get("blocked") else "",
                )
                for row in answer["callers"]
            ),
        )


def token(args: argparse.Namespace) -> None:
    """Where the owner's token is and how to use it, without the token itself."""
    run = found(args)
    path = home_of(args).run_path(run.name)
    if args.json:
        output.show_json({"name": run.name, "url": run.url, "path": str(path)})
        return
    paint = output.Paint(sys.stdout)
    print(f"{run.name} makes a new token at each start and keeps it in {path}.")
    print("Who has it owns the node. `aios-nb token create` makes one that may only chat.")
    print("To use it from another program:")
    print(
        paint(
            f"""  curl {run.url}/rpc -H "Authorization: Bearer $(aios-nb token show"""
            f""" --node {run.name})" -H "Content-Type: application/json" \\
       -d '{{"jsonrpc": "2.0", "id": 1, "method": "node.info"}}'""",
            "cyan",
        )
    )


def token_show(args: argparse.Namespace) -> None:
    """The owner's token itself."""
    run = found(args)
    if args.json:
        path = home_of(args).run_path(run.name)
        output.show_json({"name": run.name, "url": run.url, "path": str(path), "token": run.token})
    else:
        print(run.token)


def token_create(args: argparse.Namespace) -> None:
    """A scoped token, alone on stdout so that a script can keep it."""
    wanted = {"scope": args.scope, "prefix": args.prefix}
    if args.as_whom:
        wanted["as"] = args.as_whom
    answer = talk_to(args, lambda client: client.call("tokens.create", **wanted))
    if args.json:
        output.show_json(answer)
        return
    rights = "the owner" if args.as_whom else "a known node"
    output.note(
        f"token {answer['id']}: chats for senders {args.prefix}… with the rights of {rights};"
        " it is shown only this once"
    )
    print(answer["token"])


def token_list(args: argparse.Namespace) -> None:
    answer = talk_to(args, lambda client: client.call("tokens.list"))
    if args.json:
        output.show_json(answer)
    elif not answer["tokens"]:
        output.note("no scoped tokens; `aios-nb token create` makes one")
    else:
        output.table(
            ("ID", "SCOPE", "SENDERS", "RIGHTS", "MADE"),
            (
                (
                    row["id"],
                    row["scope"],
                    f"{row['prefix']}…",
                    row["as"] or "known",
                    moment(row["created_at"]),
                )
                for row in answer["tokens"]
            ),
        )


def token_revoke(args: argparse.Namespace) -> None:
    answer = talk_to(args, lambda client: client.call("tokens.revoke", id=args.id))
    _done(args, answer, f"{args.id} is good for nothing any more")
