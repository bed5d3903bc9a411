"""``withdraw``, ``block``, ``allow``, ``callers``, ``token``: who may do what."""

from __future__ import annotations

import argparse
import sys

from aios_nb.cli import output
from aios_nb.cli.connect import found, home_of, talk_to
from aios_nb.envelope import NODE_ID
from aios_nb.errors import UsageError


def withdraw(args: argparse.Namespace) -> None:
    answer = talk_to(args, lambda client: client.call("agents.withdraw", name=args.name))
    _done(args, answer, f"{args.name} is no longer offered")


def block(args: argparse.Namespace) -> None:
    node = _node_id(args.target)
    answer = talk_to(args, lambda client: client.call("nodes.block", node=node))
    _done(args, answer, f"{args.target} is shut out")


def allow(args: argparse.Namespace) -> None:
    node = _node_id(args.target)
    answer = talk_to(args, lambda client: client.call("nodes.allow", node=node))
    _done(args, answer, f"{args.target} may call agents with access `known`")


def _node_id(text: str) -> str:
    """All of it: a prefix may name another node tomorrow."""
    node = text.rpartition("@")[2]
    if not NODE_ID.fullmatch(node):
        raise UsageError(
            f"{text!r} is not a node id", hint="all 32 characters; `aios-nb callers` shows them"
        )
    return node


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
                    row["id"],
                    row["calls"],
                    f"{row['seconds']:.1f} s",
                    output.moment(row["last_at"] or ""),
                    "blocked" if row.get("blocked") else "",
                )
                for row in answer["callers"]
            ),
        )


def token(args: argparse.Namespace) -> None:
    """Where the token is and how to use it; the token itself only when asked for."""
    run = found(args)
    path = home_of(args).run_path(run.name)
    if args.json:
        shown = {"token": run.token} if args.action else {}
        output.show_json({"name": run.name, "url": run.url, "path": str(path), **shown})
        return
    if args.action:
        print(run.token)
        return
    paint = output.Paint(sys.stdout)
    print(f"{run.name} makes a new token at each start and keeps it in {path}.")
    print("Who has it owns the node. To use it from another program:")
    print(
        paint(
            f"""  curl {run.url}/rpc -H "Authorization: Bearer $(aios-nb token show"""
            f""" --node {run.name})" -H "Content-Type: application/json" \\
       -d '{{"jsonrpc": "2.0", "id": 1, "method": "node.info"}}'""",
            "cyan",
        )
    )
