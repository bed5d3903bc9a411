"""The Internet of AgentSites, from a notebook.

::

    import aios_nb as aios

    node = aios.up()
    node.ask("echo", "hello")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aios_nb._version import __version__

if TYPE_CHECKING:
    from aios_nb.agents.decorator import agent, define
    from aios_nb.errors import AiosError
    from aios_nb.lifecycle import down, up
    from aios_nb.node import Node
    from aios_nb.parts import File
    from aios_nb.site import Reply

__all__ = [
    "AiosError", "File", "Node", "Reply", "__version__", "agent", "define", "down", "node", "up",
]  # fmt: skip

_LATE = {
    "agent": "aios_nb.agents.decorator",
    "define": "aios_nb.agents.decorator",
    "AiosError": "aios_nb.errors",
    "File": "aios_nb.parts",
    "Node": "aios_nb.node",
    "Reply": "aios_nb.site",
    "down": "aios_nb.lifecycle",
    "up": "aios_nb.lifecycle",
}


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext aios_nb``."""
    from aios_nb.notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext aios_nb``, and the first half of ``%reload_ext``."""
    from aios_nb.notebook.extension import unload

    unload(shell)


def running_node() -> Node:
    """The running node of this program: ``aios.node()``. Waits for one that is starting."""
    from aios_nb.current import program

    node: Node = program.there()
    return node


if not TYPE_CHECKING:

    def node() -> Node:
        """The running node of this program.

        Once the module ``node`` is loaded it stands in this place; calling it does the same.
        """
        return running_node()


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
