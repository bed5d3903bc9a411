"""``doctor``: what works on this machine, what does not, and what to do about it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable

from aios_nb.cli import output
from aios_nb.cli.connect import home_of
from aios_nb.people.checks import Check, Health
from aios_nb.people.checks.machine import machine
from aios_nb.people.checks.nodes import nodes
from aios_nb.people.checks.storage import storage
from aios_nb.richtext import one_line

_MARKS = {Health.OK: ("ok", "green"), Health.WARN: ("warn", "yellow"), Health.FAIL: ("fail", "red")}


def doctor(args: argparse.Namespace) -> int:
    """1 when something must be fixed."""
    home = home_of(args)
    checks = [*machine(), *storage(home), *asyncio.run(nodes(home))]
    if args.json:
        output.show_json({"ok": not _failed(checks), "checks": [each.fields() for each in checks]})
    else:
        _show(checks)
    return 1 if _failed(checks) else 0


def _failed(checks: Iterable[Check]) -> bool:
    return any(check.health is Health.FAIL for check in checks)


def _show(checks: Iterable[Check]) -> None:
    paint = output.Paint(sys.stdout)
    for check in checks:
        mark, colour = _MARKS[check.health]
        print(f"{paint(f'{mark:4}', colour)}  {check.about:12}  {one_line(check.says)}")
        if check.fix:
            print(f"{' ' * 20}{paint('→ ' + one_line(check.fix), 'bold')}")
