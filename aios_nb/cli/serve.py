"""``up``: a node in this terminal, until Ctrl-C."""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from aios_nb.cli.output import Paint, note
from aios_nb.config import Settings
from aios_nb.errors import AiosError, NotRunning, UsageError
from aios_nb.home import Home, RunInfo
from aios_nb.richtext import one_line

if TYPE_CHECKING:
    from aios_nb.agents.definition import Definition
    from aios_nb.node import Node

_SHOWN_AGENTS = 8


def up(args: argparse.Namespace) -> int:
    """Run a node; 0 when it was asked to stop."""
    stop = _until_signalled()
    said = _keep_stdout() if args.json else sys.stdout
    # After the descriptors are sorted out: agents may print while they are loaded.
    definitions, node = _started(args)
    try:
        if node.sibling_of is not None:
            note(f"{node.sibling_of} is running already; this node is {node.name}")
        if args.json:
            print(json.dumps(_fields(node)), file=said, flush=True)
        else:
            _welcome(node, said, [definition.name for definition in definitions])
        stop.wait()
    finally:
        node.stop()
    return 0


def _started(args: argparse.Namespace) -> tuple[list[Definition], Node]:
    from aios_nb.loop import own_process
    from aios_nb.node import Node

    own_process()
    _show_log()
    try:
        definitions = _definitions(args.agents)
        return definitions, Node(_settings(args), definitions).start()
    except UsageError as error:
        # The command was understood; what it asked for does not work here.
        raise AiosError(error.message, hint=error.hint) from error


def _show_log() -> None:
    """Warnings, and the tracebacks of failing agents, to whoever started the node."""
    shown = logging.StreamHandler()
    shown.setLevel(logging.WARNING)
    shown.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    logging.getLogger("aios_nb").addHandler(shown)


def _settings(args: argparse.Namespace) -> Settings:
    return Settings(
        name=args.name,
        home=args.home,
        host=args.host,
        port=args.port,
        public_url=args.public_url,
        allow_hosts=tuple(args.allow_host),
        conformance=args.conformance,
    )


def _definitions(refs: Sequence[str]) -> list[Definition]:
    from aios_nb.agents.load import load_agents

    return [definition for ref in refs for definition in load_agents(ref)]


def _until_signalled() -> threading.Event:
    """Set by the first SIGINT, SIGTERM or SIGHUP; a second one ends the process at once."""
    stop = threading.Event()

    def on_signal(number: int, _: FrameType | None) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    return stop


def _keep_stdout() -> TextIO:
    """Standard output for us alone: what agents print, even from C, goes to standard error."""
    sys.stdout.flush()
    ours = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return ours


def _run_of(node: Node) -> RunInfo:
    if node.run_info is None:
        raise NotRunning("the node stopped before it was ready")
    return node.run_info


def _fields(node: Node) -> dict[str, str]:
    run = _run_of(node)
    return {
        "node_id": run.node_id,
        "name": run.name,
        "url": run.url,
        "mcp": f"{run.url}/mcp",
        "token": run.token,
        "home": str(Home(node.settings.home).path),
    }


def _welcome(node: Node, said: TextIO, own: Sequence[str]) -> None:
    run = _run_of(node)
    paint = Paint(said)
    names = [one_line(agent.name) for agent in node.agents()]
    first = next((name for name in own if name in names), "echo")
    more = f" and {len(names) - _SHOWN_AGENTS} more" if len(names) > _SHOWN_AGENTS else ""
    which = f" --node {run.name}"
    print(f"{paint(run.name, 'bold')} is up at {run.url}", file=said)
    print(f"  agents  {', '.join(names[:_SHOWN_AGENTS]) or 'none yet'}{more}", file=said)
    print(f"  ask     aios-nb ask{which} {first} hello", file=said)
    print(f"  chat    aios-nb chat{which}", file=said)
    print(paint("Ctrl-C stops it.", "dim"), file=said, flush=True)
