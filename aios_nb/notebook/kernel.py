"""Everything that only ipykernel knows, guarded: each trick has a fallback that merely is slower.

Text and widgets come from the node's thread. Which cell a message belongs to, and which of the
kernel's shells hears the answer, ipykernel decides by the *parent* of what is published.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def running_kernel() -> Any:
    """The ipykernel of this process, or None: a terminal, a script."""
    import sys

    base = sys.modules.get("ipykernel.kernelbase")
    if base is None or not base.Kernel.initialized():
        return None
    return base.Kernel.instance()


def unbound(action: Callable[[], T]) -> T:
    """Do it as nobody's request: what is published belongs to no cell.

    From ipykernel 7.4 on, a widget hears the page on the shell whose request it last published
    under. One made in a cell would hear nothing until that cell is over; one that belongs to no
    cell leaves the choice to the page, which takes a shell of its own. Older kernels ignore it.
    """
    kernel = running_kernel()
    parent = getattr(kernel, "_shell_parent", None)
    if not isinstance(parent, contextvars.ContextVar):
        return action()

    def apart() -> T:
        parent.set({})
        return action()

    return contextvars.copy_context().run(apart)
