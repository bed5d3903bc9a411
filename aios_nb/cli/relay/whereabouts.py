"""Which node a client talks to: one that runs, found again after a restart, or one of our own."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from aios_nb.cli.relay.pipes import note
from aios_nb.client import RemoteClient
from aios_nb.errors import AiosError, NotRunning
from aios_nb.home import Home, RunInfo

if TYPE_CHECKING:
    from aios_nb.node import Node

RETURN_S = 3.0
"""How long a node that was there is waited for: a kernel that restarts is back by then."""
_LOOK_S = 0.1


class Place(msgspec.Struct, frozen=True, eq=False):
    """A node that has proven its key, and the token that makes us its owner."""

    run: RunInfo
    stamp: tuple[int, int]
    """Of its run file: a restarted node writes another one."""

    @property
    def url(self) -> str:
        return f"{self.run.url.rstrip('/')}/mcp"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.run.token}"}


class Whereabouts:
    """Finds the node by its run file, as other commands do."""

    def __init__(self, home: Home, name: str | None) -> None:
        self._home = home
        self._name = name or os.environ.get("AIOS_NODE") or None
        self._place: Place | None = None
        self._last: str | None = None
        self._lost_at = asyncio.get_running_loop().time()
        self._own: asyncio.Task[Node] | None = None
        self._finding = asyncio.Lock()

    async def there(self, *, start: bool = True) -> Place:
        """The node. One that was there is waited for; with none at all we start one.

        Raises ``AiosError`` in a line for people.
        """
        async with self._finding:
            if self._place is not None and self._is_current(self._place):
                return self._place
            if self._place is not None:
                self.lost(self._place)
            self._place = await self._found(start=start)
            if self._last is not None:
                note(f"{self._place.run.name} is there again, at {self._place.run.url}")
            self._last = self._place.run.name
            return self._place

    def lost(self, place: Place) -> None:
        """It did not answer, or not to its token: look again."""
        if self._place is place:
            self._place = None
            self._lost_at = asyncio.get_running_loop().time()

    async def close(self) -> None:
        """Stop the node that we started."""
        if self._own is not None:
            with suppress(AiosError):
                await asyncio.to_thread((await self._own).stop)

    async def _found(self, *, start: bool) -> Place:
        until = self._lost_at + RETURN_S
        while True:
            try:
                return await self._proven(self._meant())
            except AiosError as error:
                patient = self._is_awaited() and asyncio.get_running_loop().time() < until
                if not patient and (self._name or not start or self._home.running()):
                    raise
                if not patient and isinstance(error, NotRunning):
                    return await self._started()
            await asyncio.sleep(_LOOK_S)

    def _is_awaited(self) -> bool:
        """Whether the node should be there in a moment: it was, or it is starting."""
        return self._last is not None or bool(self._name and self._home.is_held(self._name))

    def _meant(self) -> RunInfo:
        """The one that was named; else the one we had; else the only one."""
        if self._name is None and self._last is not None:
            for run in self._home.running():
                if run.name == self._last:
                    return run
        return self._home.find(self._name)

    async def _proven(self, run: RunInfo) -> Place:
        """The key before the token: what took a dead node's port gets nothing."""
        stamp = self._stamp(run.name)
        async with await RemoteClient.connect(run):
            return Place(run, stamp)

    async def _started(self) -> Place:
        if self._own is None:
            os.environ.pop("JPY_SESSION_NAME", None)  # that name is its notebook's
            self._own = asyncio.ensure_future(asyncio.to_thread(_start, self._home))
        try:
            node = await asyncio.shield(self._own)
        except AiosError:
            self._own = None
            raise
        run = node.run_info
        if run is None:
            raise NotRunning("the node that was started here has stopped")
        note(f"no node was running; {run.name} is up at {run.url} as long as this is")
        return Place(run, self._stamp(run.name))

    def _is_current(self, place: Place) -> bool:
        """Whether that very node still runs: it alone has its port then, and its token is good."""
        name = place.run.name
        return self._home.is_held(name) and self._stamp(name) == place.stamp

    def _stamp(self, name: str) -> tuple[int, int]:
        try:
            found = self._home.run_path(name).stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino


def _start(home: Home) -> Node:
    from aios_nb.config import Settings
    from aios_nb.node import Node

    return Node(Settings(home=home.path)).start()
