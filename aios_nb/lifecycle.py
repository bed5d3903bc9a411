"""This program's own node: started with what was chosen, and stopped."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aios_nb.agents import decorator
from aios_nb.config import Settings
from aios_nb.current import program
from aios_nb.errors import UsageError
from aios_nb.home import Home
from aios_nb.joining import addresses, network_name
from aios_nb.loop import waited
from aios_nb.tilde import expanded

if TYPE_CHECKING:
    from aios_nb.node import Node


def up(
    name: str | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    public_url: str | None = None,
    allow_hosts: tuple[str, ...] = (),
    home: str | Path | None = None,
    join: str | Sequence[str] = (),
    network: str = "main",
) -> Node:
    """Start this program's node, or give the one that runs. Agents declared before are hosted.

    ``join``: ``URL`` or ``URL#NODEID`` of a node to link to, or several. A node that only came
    along with ``%load_ext`` is replaced by one with these choices.
    """
    wanted = choices(
        name=name,
        host=host,
        port=port,
        public_url=public_url,
        allow_hosts=allow_hosts,
        home=home,
        join=join,
        network=network,
    )
    return have(wanted, chosen=True)


def have(wanted: Settings, *, chosen: bool) -> Node:
    """The node that runs, if it is as wanted, else a new one, which is ``chosen`` or came along."""
    before: Settings | None = None
    while not program.begin():
        running: Node | None = program.running
        if running is None:
            continue
        problem = _differs(running, wanted)
        if problem is None:
            program.chosen |= wanted != Settings()  # who wants nothing has chosen nothing
            return running
        if program.chosen:
            raise UsageError(problem, hint="aios.down() stops it first")
        before = running.settings
        down()
    try:
        return launch(wanted, chosen=chosen)
    except BaseException:
        # What cannot be had must not cost what was there.
        if before is not None and program.begin(wait=False):
            with suppress(Exception):
                launch(before, chosen=False)
        raise


def down(within_s: float | None = None) -> None:
    """Stop this program's node, if it runs. ``TimeoutError``: it goes on behind.

    An interrupt ends only the wait: half stopped, a node would keep its name and its files, and
    the next one here would be another.
    """
    running: Node | None = program.running
    if running is not None and running.loop.is_here():
        raise UsageError("a node cannot be stopped by one of its own async agents")
    ended: Future[None] = Future()
    node: Node | None = None
    behind = threading.Thread(target=lambda: _end(node, ended), name="aios-stop", daemon=True)
    try:
        node = program.take(within_s)
        if node is None:
            return
        behind.start()
    except RuntimeError:  # at the end of a program no thread begins any more
        _end(node, ended, within_s)
    except BaseException:
        if node is not None and behind.ident is None:  # interrupted: nobody would stop it
            program.came(node, chosen=program.chosen)
        raise
    waited(ended, within_s)


def _end(node: Node | None, ended: Future[None], within_s: float | None = None) -> None:
    try:
        try:
            if node is not None:
                node.stop(within_s)
        finally:
            program.ended()
    except BaseException as error:  # noqa: BLE001 - told to who waits, if anybody still does
        ended.set_exception(error)
    else:
        ended.set_result(None)


def choices(**given: Any) -> Settings:
    """The settings of a node from what ``up`` takes; ``UsageError`` for what cannot be meant."""
    plain = {"home": None, "join": (), "network": Settings().network, **given}
    _check(plain)
    home = plain["home"]
    # Not where the program is later: a cell may change its folder.
    plain["home"] = None if home is None else expanded(home).absolute()
    plain["join"] = addresses(plain["join"])
    plain["network"] = network_name(plain["network"])
    plain["allow_hosts"] = tuple(plain.get("allow_hosts", ()))
    return Settings(**plain)


def launch(wanted: Settings | None = None, *, chosen: bool) -> Node:
    """Start the node that ``program.begin()`` promised."""
    started: Node | None = None
    try:
        from aios_nb.node import Node  # the most of what a program loads; here its failure is told

        hosted = dict(decorator.declared)
        started = Node(wanted, tuple(hosted.values()))
        # Not in the context of a cell: what others ask later is not that cell's business.
        contextvars.Context().run(started.start)
        started.on_withdrawn = decorator.forget
        decorator.set_sink(started.adopt)
        # What was declared while it started went nowhere.
        while hosted != (declared := dict(decorator.declared)):
            for name, one in declared.items():
                if hosted.get(name) is not one:
                    started.adopt(one)
            hosted = declared
    except BaseException as error:
        try:
            if started is not None:
                started.stop()
        finally:  # interrupted once more: what was begun must end all the same
            program.failed(str(error) or type(error).__name__)
        raise
    program.came(started, chosen=chosen)
    return started


def _differs(running: Node, wanted: Settings) -> str | None:
    """What was chosen that the running node has not, in one line. Not chosen is what is default."""
    used, default = running.settings, Settings()
    if wanted.name is not None and wanted.name not in (running.name, running.sibling_of):
        return f"this program's node is {running.name}"
    others = [
        field
        for field in ("host", "port", "public_url", "allow_hosts", "network")
        if getattr(wanted, field) not in (getattr(used, field), getattr(default, field))
    ]
    if not set(wanted.join) <= set(used.join):
        others.append("join")
    if wanted.home is not None and Home(wanted.home).path != Home(used.home).path:
        others.append("home")
    return f"{running.name} runs already, without that {others[0]}" if others else None


def _check(given: dict[str, Any]) -> None:
    """Raises ``UsageError`` for a value that cannot be meant."""
    path, texts = (str, Path), (tuple, list)
    kinds: dict[str, tuple[type | tuple[type, ...], str]] = {
        "name": (str, "a text"),
        "host": (str, "a text"),
        "port": (int, "a number"),
        "public_url": (str, "a text"),
        "home": (path, "a path"),
        "allow_hosts": (texts, "a list of texts"),
        "join": ((str, *texts), "a list of texts"),
        "network": (str, "a text"),
    }
    for name, (kind, said) in kinds.items():
        value = given.get(name)
        if value is None and (name not in given or name in {"name", "public_url", "home"}):
            continue
        if isinstance(value, bool) or not isinstance(value, kind):
            raise UsageError(f"{name} must be {said}, not {value!r:.40}")
