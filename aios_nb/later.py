"""A result that comes later, told in the moment it is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Told = Callable[[T | None, Exception | None], None]


class Later(Generic[T]):
    """A result for one listener: ``then`` costs no task and no turn of the loop.

    It can be awaited as well, by whoever does not mind these.
    """

    __slots__ = ("_come", "_error", "_told", "_value")

    def __init__(self) -> None:
        self._come = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._told: Told[T] | None = None

    def then(self, told: Told[T]) -> None:
        """Call ``told(value, None)`` or ``told(None, error)`` when it is there; now if it is."""
        if self._come:
            told(self._value, self._error)
        else:
            self._told = told

    def come(self, value: T | None, error: Exception | None = None) -> None:
        """Here it is; the first one counts."""
        if self._come:
            return
        self._come = True
        self._value, self._error = value, error
        told, self._told = self._told, None
        if told is not None:
            told(value, error)

    def __await__(self) -> Generator[Any, None, T]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def told(value: T | None, error: Exception | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

        self.then(told)
        value: T = yield from future
        return value
