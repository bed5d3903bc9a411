"""A crash at a given point: the so-manyth time that a bridge writes, calls the node or the app."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from aios_nb.client import Flow, SiteClient
from aios_nb.store import Store

T = TypeVar("T")


class Fuse:
    """Ends a bridge at its ``at``th point; each act has one before it and one behind it."""

    def __init__(self, at: int) -> None:
        self._left = at
        self._task: asyncio.Task[None] | None = None

    def light(self, task: asyncio.Task[None]) -> None:
        """This is what it ends."""
        self._task = task

    @property
    def blown(self) -> bool:
        return self._left <= 0

    async def around(self, act: Callable[[], Awaitable[T]]) -> T:
        await self._point()
        done = await act()
        await self._point()
        return done

    async def _point(self) -> None:
        self._left -= 1
        if self.blown:  # and nothing goes on from here, in no task
            if self._task is not None:
                self._task.cancel()
            await asyncio.get_running_loop().create_future()


class FusedClient:
    """A node, to a bridge that ends."""

    def __init__(self, client: SiteClient, fuse: Fuse) -> None:
        self._client, self._fuse = client, fuse

    @property
    def node_id(self) -> str:
        return self._client.node_id

    @property
    def name(self) -> str:
        return self._client.name

    async def call(self, method: str, /, **params: Any) -> Any:
        return await self._fuse.around(lambda: self._client.call(method, **params))

    def notices(self, method: str, /, **params: Any) -> Flow:
        return self._client.notices(method, **params)

    async def close(self) -> None:
        await self._client.close()


class FusedStore:
    """A database, to a bridge that ends."""

    def __init__(self, store: Store, fuse: Fuse) -> None:
        self._store, self._fuse = store, fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, apply: Any, *more: Any) -> Awaitable[Any]:
        return self._fuse.around(lambda: self._store.write(apply, *more))

    def write_through(self, apply: Any, *more: Any) -> Awaitable[Any]:
        return self._fuse.around(lambda: self._store.write_through(apply, *more))
