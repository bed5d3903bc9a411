"""One AgentSite in this process: starts and stops its rooms, in a thread of its own."""

from __future__ import annotations

import atexit
import sys
import time
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from aios_nb.agents.definition import Definition, describe
from aios_nb.config import Settings
from aios_nb.current import program
from aios_nb.errors import UsageError
from aios_nb.home import Claim, Home, RunInfo
from aios_nb.journal import keep_journal
from aios_nb.loop import EXIT_S, LoopThread
from aios_nb.rooms import Rooms
from aios_nb.site import Site

if TYPE_CHECKING:
    from aios_nb.wire.methods import Method

_running: weakref.WeakSet[Node] = weakref.WeakSet()


class Node(Site):
    """A node in this process, in a thread of its own.

    ``start`` returns when it answers, or raises what kept it from starting. ``stop`` leaves no
    thread, port, file or task behind. Several nodes may live in one process.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        definitions: Iterable[Definition] = (),
        *,
        methods: Sequence[Method] = (),
    ) -> None:
        super().__init__(LoopThread("aios-node"))
        self.settings = settings or Settings()
        self._definitions = tuple(definitions)
        self._methods = tuple(methods)
        self._claim: Claim | None = None
        self._rooms: Rooms | None = None
        self.run_info: RunInfo | None = None
        self.on_withdrawn: Callable[[str], None] = lambda _: None
        """Told which agent is offered no more."""

    def start(self) -> Node:
        """Take a name, open the house, answer."""
        if self._claim is not None:
            raise UsageError("this node is running already")
        keep_journal()
        home = Home(self.settings.home)
        self._claim = home.claim(self.settings.name)
        try:
            self.loop.start()
            self.run(self._open)
        except BaseException:
            self.stop()
            raise
        _running.add(self)
        return self

    def stop(self, within_s: float | None = None) -> None:
        """Stop answering, log what was cut, let go of the name. A second call does nothing.

        ``within_s``: at the end of the program, which does not wait for an agent that holds the
        loop. What was cut is then found by the next node of that name.
        """
        if self.loop.is_here():
            raise UsageError("a node cannot be stopped by one of its own async agents")
        is_programs = False
        try:
            is_programs = program.leaves(self)  # what is declared from now on is for the next one
            self._end(within_s)
        finally:
            if is_programs:
                program.ended()

    def _end(self, within_s: float | None) -> None:
        _running.discard(self)
        until = None if within_s is None else time.monotonic() + within_s
        try:
            if self.loop.running:
                try:
                    if self._rooms is not None:
                        self.loop.sync(self._rooms.close, within_s)
                finally:
                    self._rooms = self._client = None
                    self.loop.stop(None if until is None else max(0, until - time.monotonic()))
        finally:
            # However it ended: a name that is held on would be lost to the next node here.
            claim, self._claim, self.run_info = self._claim, None, None
            if claim is not None:
                claim.release()

    def __enter__(self) -> Self:
        if not self.running:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        return self.run_info is not None

    @property
    def name(self) -> str:
        return self._info_now().name

    @property
    def node_id(self) -> str:
        return self._info_now().node_id

    @property
    def url(self) -> str:
        return self._info_now().url

    @property
    def sibling_of(self) -> str | None:
        """The name that was wanted, if it was taken and a numbered one is used."""
        return self._claim.sibling_of if self._claim is not None else None

    def _info_now(self) -> RunInfo:
        if self.run_info is None:
            raise UsageError("the node is not running", hint="start it with aios.up()")
        return self.run_info

    def host(self, agent: Any, **card: Any) -> str:
        """Offer an agent on this node, or replace it; takes what ``@agent`` takes. Its id."""
        definition = agent if isinstance(agent, Definition) else describe(agent, **card)
        return self.run(lambda: self._open_rooms().host(definition))

    def withdraw(self, name: str) -> None:
        """Stop offering an agent."""
        self.run(lambda: self.client.call("agents.withdraw", name=name))

    def offered(self, name: str) -> str | None:
        """The version of an agent that it hosts now, or None; for any thread, never waits."""
        rooms = self._rooms
        hosted = None if rooms is None else rooms.host_room.find(name)
        return None if hosted is None else hosted.card.version

    def _withdrawn(self, name: str) -> None:
        self.on_withdrawn(name)

    def adopt(self, definition: Definition) -> None:
        """Host what ``@agent`` declared; for any thread, the node's own included."""
        if self.loop.is_here():
            self._open_rooms().host_soon(definition)
        else:
            self.host(definition)

    def _open_rooms(self) -> Rooms:
        if self._rooms is None:
            raise UsageError("the node is not running", hint="start it with aios.up()")
        return self._rooms

    async def _open(self) -> None:
        claim = self._claim
        if claim is None:
            raise UsageError("the node has no name yet")
        self._rooms = rooms = Rooms(claim, self.settings)
        rooms.on_withdrawn = self._withdrawn
        info = await rooms.open(self._definitions, self._methods)
        claim.publish(info)
        self._client, self._node_id = rooms.client, info.node_id
        self.run_info = info

    def __repr__(self) -> str:
        info = self.run_info
        return f"<node {info.name} at {info.url}>" if info else "<node, not running>"


class _Callable(types.ModuleType):
    """``aios_nb.node`` is this module and, in the contract, a function: ``aios_nb.node()``."""

    def __call__(self) -> Node:
        node: Node = program.there()
        return node


sys.modules[__name__].__class__ = _Callable


@atexit.register
def _stop_all() -> None:
    for node in list(_running):
        with suppress(TimeoutError):
            node.stop(EXIT_S)
