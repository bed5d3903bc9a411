"""The Internet of AgentSites, from a notebook.

::

    import aios_nb as aios

    node = aios.up()
    node.ask("echo", "hello")
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aios_nb._version import __version__

if TYPE_CHECKING:
    from aios_nb.agents.decorator import agent, define
    from aios_nb.node import Node
    from aios_nb.parts import File
    from aios_nb.site import Reply

__all__ = ["File", "Node", "Reply", "__version__", "agent", "define", "down", "node", "up"]

_lock = threading.Lock()
_node: Node | None = None

_LATE = {
    "agent": "aios_nb.agents.decorator",
    "define": "aios_nb.agents.decorator",
    "File": "aios_nb.parts",
    "Node": "aios_nb.node",
    "Reply": "aios_nb.site",
}


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

    ``join``: ``URL`` or ``URL#NODEID`` of a node to link to, or several.
    """
    global _node  # noqa: PLW0603 - one program, one node of its own
    with _lock:  # before the imports, which take a while: aios.node() waits for all of it
        from aios_nb.agents import decorator
        from aios_nb.config import Settings
        from aios_nb.errors import UsageError
        from aios_nb.joining import addresses, network_name
        from aios_nb.node import Node

        _check(name=(name, str), host=(host, str), port=(port, int), public_url=(public_url, str))
        _check(home=(home, (str, Path)), allow_hosts=(allow_hosts, (tuple, list)))
        _check(join=(join, (str, tuple, list)), network=(network, str))
        joins, net = addresses(join), network_name(network)
        if _node is not None and _node.running:
            used = _node.settings
            if name is not None and name not in (_node.name, _node.sibling_of):
                raise UsageError(
                    f"this program's node is {_node.name}", hint="aios.down() stops it first"
                )
            if not set(joins) <= set(used.join) or net not in (used.network, Settings().network):
                raise UsageError(
                    f"{_node.name} runs already, without that join or network",
                    hint="aios.down() stops it first",
                )
            return _node
        settings = Settings(
            name=name,
            host=host,
            port=port,
            public_url=public_url,
            allow_hosts=tuple(allow_hosts),
            home=None if home is None else Path(home),
            join=joins,
            network=net,
        )
        started = Node(settings, tuple(decorator.declared.values())).start()
        decorator.set_sink(started.adopt)
        started.on_withdrawn = decorator.forget
        _node = started
        return started


def _check(**given: tuple[object, type | tuple[type, ...]]) -> None:
    """Raises ``UsageError`` for a value that cannot be meant."""
    from aios_nb.errors import UsageError

    words: dict[object, str] = {int: "a number", str: "a text", (str, Path): "a path"}
    for name, (value, wanted) in given.items():
        if value is None and name in {"name", "public_url", "home"}:
            continue
        if isinstance(value, bool) or not isinstance(value, wanted):
            said = words.get(wanted, "a list of texts")
            raise UsageError(f"{name} must be {said}, not {value!r:.40}")


def running_node() -> Node:
    """The running node of this program: ``aios.node()``."""
    from aios_nb.errors import NotRunning

    with _lock:  # waits for one that is starting
        if _node is None or not _node.running:
            raise NotRunning("no node is running in this program", hint="start it with aios.up()")
        return _node


if not TYPE_CHECKING:

    def node() -> Node:
        """The running node of this program.

        Once the module ``node`` is loaded it stands in this place; calling it does the same.
        """
        return running_node()


def down() -> None:
    """Stop this program's node, if it runs."""
    global _node  # noqa: PLW0603 - as above
    from aios_nb.agents import decorator

    with _lock:
        if _node is not None:
            _node.stop()
        _node = None
        decorator.set_sink(None)


def __getattr__(name: str) -> Any:
    """Load the rest when it is first used: ``import aios_nb`` costs nearly nothing."""
    if name in _LATE:
        import importlib

        value = getattr(importlib.import_module(_LATE[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is meant to be used."""
    return sorted(__all__)
