"""``doctor``: what works on this machine, what does not, and what to do about it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Sequence

from aios_nb.cli import output
from aios_nb.cli.connect import home_of
from aios_nb.errors import NotRunning
from aios_nb.home import Home
from aios_nb.people.checks import Check, Health, board
from aios_nb.people.checks.bridges import bridges
from aios_nb.people.checks.machine import machine
from aios_nb.people.checks.nodes import nodes
from aios_nb.people.checks.storage import storage
from aios_nb.people.layout import hanging
from aios_nb.richtext import one_line

_MARKS = {Health.OK: ("ok", "green"), Health.WARN: ("warn", "yellow"), Health.FAIL: ("fail", "red")}
_SAYS = 20
"""Cells before what a check says."""
_ONE = "aios-nb doctor --node NAME looks at one from outside"


def doctor(args: argparse.Namespace) -> int:
    """1 when something must be fixed."""
    home = home_of(args)
    near = [*machine(), *storage(home), *bridges(home)]
    checks = [*near, *asyncio.run(_nodes(home, args.node))]
    if args.json:
        output.show_json({"ok": not _failed(checks), "checks": [each.fields() for each in checks]})
    else:
        _show(checks)
    return 1 if _failed(checks) else 0


async def _nodes(home: Home, name: str | None) -> list[Check]:
    """All of them from near; from outside the one that was meant."""
    found = await nodes(home)
    try:
        run = home.find(name)
    except NotRunning as error:
        if name is not None:
            raise
        if home.running():
            found.append(Check("interop", Health.OK, error.message, _ONE, "interop"))
        return found
    from aios_nb.people.checks.interop import interop

    return [*found, *await interop(run)]


def _failed(checks: Iterable[Check]) -> bool:
    return any(check.health is Health.FAIL for check in checks)


def _show(checks: Sequence[Check]) -> None:
    paint = output.Paint(sys.stdout)
    for title, some in board(checks):
        print(paint(title, "bold"))
        for check in some:
            mark, colour = _MARKS[check.health]
            says = hanging(one_line(check.says), _SAYS)
            print(f"{paint(f'{mark:4}', colour)}  {check.about:12}  {says}")
            if check.fix:
                fix = hanging(one_line(check.fix), _SAYS + 2)
                print(f"{' ' * _SAYS}{paint(f'→ {fix}', 'bold')}")
