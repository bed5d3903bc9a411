"""``hub add``, ``hub list``, ``hub approve`` and so on: programs of others."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import msgspec

from aios_nb.cli import output
from aios_nb.cli.connect import talk_to
from aios_nb.errors import UsageError
from aios_nb.people.guests import added, approved, how_to_add, remarks
from aios_nb.rows import Import, Listed


def add(args: argparse.Namespace) -> None:
    given = {
        "name": args.name,
        "kind": args.kind,
        "local": args.local or None,
        "access": args.access,
        "token_env": args.token_env,
    }
    wanted = {name: value for name, value in given.items() if value is not None}
    answer = _ask(args, "hub.add", address=_address(args), **wanted)
    if answer is not None:
        row = msgspec.convert(answer, Import)
        print(added(row), *remarks(row), sep="\n")


def _address(args: argparse.Namespace) -> str | list[str]:
    words: list[str] = args.address
    if args.dashed:
        program = Path(words[0])
        if len(program.parts) > 1 and program.exists():  # of this folder, not of the node's
            words = [str(program.absolute()), *words[1:]]
        return words
    if len(words) > 1 or "://" not in words[0]:
        raise UsageError(
            f"{' '.join(words)[:60]} is no URL",
            hint="it begins with https:// or http://; a command stands behind --",
        )
    return words[0]


def everyone(args: argparse.Namespace) -> None:
    _show(args, _ask(args, "hub.list"))


def refresh(args: argparse.Namespace) -> None:
    _show(args, _ask(args, "hub.refresh", **({"name": args.name} if args.name else {})))


def _show(args: argparse.Namespace, answer: Any) -> None:
    if args.json:
        return
    rows = msgspec.convert(answer["imports"], list[Import])
    if not rows:
        output.note("no program of others yet; bring one in: aios-nb hub add URL")
        return
    output.table(
        ("NAME", "KIND", "STATE", "ACCESS", "ADDRESS"),
        ((row.name, row.kind, row.state, row.access, row.place) for row in rows),
        below=[" · ".join(remarks(row)) for row in rows],
    )


def approve(args: argparse.Namespace) -> None:
    answer = _ask(args, "hub.approve", name=args.name)
    if answer is not None:
        print(approved(msgspec.convert(answer, Import)))


def remove(args: argparse.Namespace) -> None:
    if _ask(args, "hub.remove", name=args.name) is not None:
        print(f"{args.name} is forgotten")


def catalog(args: argparse.Namespace) -> None:
    answer = _ask(args, "hub.import", url=args.url, local=args.local)
    if answer is None:
        return
    rows = msgspec.convert(answer["entries"], list[Listed])
    if not rows:
        output.note("the catalog lists nothing")
        return
    output.table(
        ("NAME", "KIND", "ABOUT"),
        ((row.name, row.kind or "?", row.about) for row in rows),
        below=[how_to_add(row) for row in rows],
    )


def _ask(args: argparse.Namespace, method: str, **params: Any) -> Any:
    """The answer; printed as JSON if that is wanted, and then None."""
    answer = talk_to(args, lambda client: client.call(method, **params))
    if not args.json:
        return answer
    output.show_json(answer)
    return None
