"""``mcp-config``: settings for other programs, to copy."""

from __future__ import annotations

import argparse
import sys

from aios_nb.cli import output
from aios_nb.cli.connect import home_of
from aios_nb.errors import NotRunning
from aios_nb.people.settings_for import BY_URL, Step, settings_for


def mcp_config(args: argparse.Namespace) -> None:
    home = home_of(args)
    try:
        url = home.find(args.node).url
    except NotRunning:
        url = None
    said = settings_for(args.client, home, node=args.node, url=url)
    if args.json:
        output.show_json(said.fields())
        return
    paint = output.Paint(sys.stdout)
    for step in said.by_command:
        _show(step, paint)
    print(f"{paint('Next:', 'bold')} {said.next}\n")
    print(paint(f"{BY_URL}:", "dim"))
    for step in said.by_url:
        _show(step, paint)


def _show(step: Step, paint: output.Paint) -> None:
    print(paint(f"# {step.about}{f': {step.file}' if step.file else ''}", "dim"))
    print(f"{paint(step.text, 'cyan')}\n")
