"""``up``: a node in this terminal, until Ctrl-C."""

from __future__ import annotations

import argparse
import json
import logging
import os
import queue
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from aios_nb.cli.output import Paint, note
from aios_nb.config import Settings
from aios_nb.errors import AiosError, NotRunning, UsageError
from aios_nb.home import Home, RunInfo
from aios_nb.joining import addresses
from aios_nb.richtext import one_line

if TYPE_CHECKING:
    from aios_nb.agents.definition import Definition
    from aios_nb.node import Node

log = logging.getLogger("aios_nb.cli")

FORCE_AFTER_S = 1.0
"""A signal this long after the first one ends the process without waiting any more."""
LOOK_S = 0.5
_SIGNALLED = 128
"""As the shell reports a program that died of a signal: this plus its number."""
_SHOWN_AGENTS = 8


def up(args: argparse.Namespace) -> int:
    """Run a node; 0 when it was asked to stop."""
    signals = _Signals()
    try:
        # The descriptors first: agents may print while they are loaded.
        with _stdout_for_us() if args.json else nullcontext(sys.stdout) as said:
            _run(args, signals, said)
    except _Ended as ended:
        if ended.number == signal.SIGINT:
            raise
        note(f"ended by {signal.Signals(ended.number).name} before the node was up")
        return _SIGNALLED + ended.number
    signals.ignore()
    return 0


def _run(args: argparse.Namespace, signals: _Signals, said: TextIO) -> None:
    definitions, node = _started(args)
    signals.node_is_up()
    try:
        if node.sibling_of is not None:
            note(f"{node.sibling_of} is running already; this node is {node.name}")
        if args.json:
            print(json.dumps(_fields(node)), file=said, flush=True)
        else:
            _welcome(node, said, [definition.name for definition in definitions])
        signals.wait()
    finally:
        node.stop()


def _started(args: argparse.Namespace) -> tuple[list[Definition], Node]:
    from aios_nb.loop import own_process
    from aios_nb.node import Node

    _show_log()
    try:
        definitions = _definitions(args.agents)
        node = Node(_settings(args), definitions).start()
    except UsageError as error:
        # The command was understood; what it asked for does not work here.
        raise AiosError(error.message, hint=error.hint) from error
    own_process()
    return definitions, node


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
        network=args.network,
        join=addresses(args.join),
        gossip=not args.no_gossip,
        dht=not args.no_dht,
        library=args.library,
        conformance=args.conformance,
    )


def _definitions(refs: Sequence[str]) -> list[Definition]:
    from aios_nb.agents.load import load_agents

    found: dict[str, Definition] = {}
    for ref in refs:
        for definition in load_agents(ref):
            if definition.name in found:
                log.warning("%s is in several files; that of %s is offered", definition.name, ref)
            found[definition.name] = definition
    return list(found.values())


class _Ended(KeyboardInterrupt):
    """A signal before the node was up."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class _Signals:
    """SIGINT, SIGTERM and SIGHUP: they end a start at once, and a running node in good order.

    Terminals and supervisors often send two in one moment. That is one wish; a person who asks
    again after a while means it, and the process ends as it stands.
    """

    def __init__(self) -> None:
        self._first_at: float | None = None
        self._up = False
        # Not an Event: its lock may be held by the very code that a signal interrupts.
        self._asked: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._set(self._on_signal)

    def node_is_up(self) -> None:
        """From now on a signal ends ``wait`` instead of raising."""
        self._up = True

    def wait(self) -> None:
        # A signal that comes just before the wait begins does not end it: Python's handler runs
        # between two steps of the program, so there must be another one soon.
        while True:
            with suppress(queue.Empty):
                self._asked.get(timeout=LOOK_S)
                return

    def ignore(self) -> None:
        """All is stopped: what comes now can only spoil the exit code."""
        self._set(signal.SIG_IGN)

    def _set(self, handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, handler)  # under nohup a hang-up stays unheard

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        now = time.monotonic()
        if self._first_at is not None:
            if now - self._first_at >= FORCE_AFTER_S:
                os._exit(_SIGNALLED + number)
            return
        self._first_at = now
        if not self._up:
            raise _Ended(number)
        self._asked.put(number)


@contextmanager
def _stdout_for_us() -> Iterator[TextIO]:
    """Standard output for us alone: what agents print, even from C, goes to standard error."""
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as ours:
        os.dup2(2, 1)
        try:
            yield ours
        finally:
            sys.stdout.flush()
            os.dup2(ours.fileno(), 1)


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
    network = node.settings.network
    where = "" if network == Settings().network else f" in the network {network}"
    print(f"{paint(run.name, 'bold')} is up at {run.url}{where}", file=said)
    print(f"  agents  {', '.join(names[:_SHOWN_AGENTS]) or 'none yet'}{more}", file=said)
    print(f"  ask     aios-nb ask{which} {first} hello", file=said)
    print(f"  chat    aios-nb chat{which}", file=said)
    print(f"  join    {_how_to_join(node)}", file=said)
    print(paint("Ctrl-C stops it.", "dim"), file=said, flush=True)


def _how_to_join(node: Node) -> str:
    """What others type to link to this node."""
    run, settings = _run_of(node), node.settings
    url = settings.public_url or run.url
    if settings.allow_hosts and not settings.public_url:
        url = f"http://{settings.allow_hosts[0]}:{run.url.rpartition(':')[2]}"
    network = settings.network
    apart = "" if network == Settings().network else f" --network {network}"
    return f"aios-nb up --join {url.rstrip('/')}#{run.node_id}{apart}"
