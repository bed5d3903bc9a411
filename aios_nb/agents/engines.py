"""Where an agent's code runs: what an engine must do, and which engines there are.

An engine turns one ``Job`` into one ``Answer``. Cancelling ``perform`` stops the job. Others plug
in with ``register``: the notebook extension adds ``kernel``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from aios_nb.access import Access
from aios_nb.agents.outputs import Answer, as_data
from aios_nb.config import Limits
from aios_nb.envelope import FILES_PER_MESSAGE, FileRef, Task
from aios_nb.errors import RpcError, TooLarge, UsageError
from aios_nb.parts import File, Reply
from aios_nb.ports import Blobs, Run

if TYPE_CHECKING:
    from aios_nb.agents.definition import Definition
    from aios_nb.agents.slots import Lease


class Job:
    """One run of one agent: what is asked, and the node's services for it."""

    __slots__ = ("_blobs", "bubbled", "definition", "lease", "run", "task")

    def __init__(
        self, definition: Definition, task: Task, run: Run, lease: Lease, blobs: Blobs
    ) -> None:
        self.definition = definition
        self.task = task
        self.run = run
        self.lease = lease
        self.bubbled: list[RpcError] = []
        """Errors of other agents that this one was told of; not its own words when they escape."""
        self._blobs = blobs

    async def call(self, agent: Any, text: str, data: Any, files: Sequence[Any]) -> Reply:
        """Another agent's answer; this run's slot is lent until it comes."""
        ref = agent if isinstance(agent, str) else getattr(agent, "id", None)
        if not isinstance(ref, str):
            raise UsageError("ctx.call takes an agent's name, its id, or a row of ctx.search")
        refs = await self.keep(files)
        plain = None if data is None else as_data(data)
        try:
            outcome = await self.lease.lend(self.run.call(ref, str(text), data=plain, files=refs))
        except RpcError as error:
            self.bubbled.append(error)
            raise
        return Reply.of(outcome)

    async def ask_user(self, question: str) -> str:
        return await self.lease.lend(self.run.ask_user(str(question)))

    async def keep(self, files: Sequence[Any]) -> tuple[FileRef, ...]:
        """References to these files, which are stored in the agent's name where they are new."""
        if len(files) > FILES_PER_MESSAGE:
            raise TooLarge(f"{len(files)} files; a message may have {FILES_PER_MESSAGE}")
        refs = []
        for file in files:
            if isinstance(file, FileRef):
                refs.append(file)
            elif isinstance(file, File):
                ref = await self._blobs.put(
                    file.content,
                    file.name,
                    file.mime,
                    self.task.agent,
                    stranger=self.run.stranger,
                )
                refs.append(ref)
            else:
                raise UsageError(f"not a file: {type(file).__name__}", hint="use aios.File(path)")
        return tuple(refs)

    def read(self, file: FileRef | str) -> bytes:
        return self._blobs.read(file if isinstance(file, str) else file.sha256)


class Engine(Protocol):
    """Runs jobs. One per node, made when the first agent needs it."""

    def perform(self, job: Job) -> Coroutine[Any, Any, Answer]:
        """What the agent answered; raises what the agent raised."""

    async def close(self) -> None:
        """Stop what runs and leave nothing behind that can be stopped."""


class EngineKind(msgspec.Struct, frozen=True, kw_only=True):
    """An engine that agents may ask for by name."""

    name: str
    make: Callable[[Limits], Engine]
    concurrency: int
    """Runs of one agent at once, unless the agent says otherwise."""
    access: Access = Access.NETWORK
    takes_async: bool = True


_KINDS: dict[str, EngineKind] = {}
_ELSEWHERE = {"kernel": "a notebook's kernel, with %load_ext aios_nb"}
"""Engines that something else brings, and what brings them."""


def register(kind: EngineKind) -> None:
    """Offer an engine to agents; again = replace."""
    _KINDS[kind.name] = kind


def unregister(name: str) -> None:
    _KINDS.pop(name, None)


def engine_kind(name: str) -> EngineKind:
    """The engine of that name, or one line that says what to use instead."""
    kind = _KINDS.get(name)
    if kind is not None:
        return kind
    if name in _ELSEWHERE:
        raise UsageError(f'engine="{name}" needs {_ELSEWHERE[name]}')
    raise UsageError(f"there is no engine {name!r}", hint=near(name, _KINDS))


def near(wrong: str, right: Any) -> str:
    """A hint that offers the nearest names, or all when none is near."""
    names = sorted(right)
    close = difflib.get_close_matches(str(wrong).lower(), names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"use one of {', '.join(names)}"
