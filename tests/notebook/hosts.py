"""A node that comes and goes, for widgets without a notebook."""

from __future__ import annotations

from collections.abc import Callable

from aios_nb.node import Node


class Switch:
    """Is a panel's ``Host``."""

    def __init__(self, node: Node | None = None, why: str = "stopped") -> None:
        self.told: list[Callable[[], None]] = []
        self._node = node
        self._why = why

    def site(self) -> Node | None:
        return self._node if self._node is not None and self._node.running else None

    def problem(self) -> str:
        return self._why

    def subscribe(self, told: Callable[[], None]) -> Callable[[], None]:
        self.told.append(told)
        return lambda: self.told.remove(told) if told in self.told else None

    def turn(self, node: Node | None) -> None:
        self._node = node
        for told in list(self.told):
            told()
