"""The agents of one node: add, replace, withdraw, and carry tasks to them."""

from __future__ import annotations

import asyncio
import difflib
import logging

from aios_nb.access import Access
from aios_nb.agents.card import Card
from aios_nb.agents.definition import Definition
from aios_nb.agents.engines import Engine, Job, engine_kind
from aios_nb.agents.failure import author_traceback, explain, one_line
from aios_nb.agents.inline import Stray
from aios_nb.agents.pool import Stopped
from aios_nb.agents.slots import Lease, Slots
from aios_nb.config import Limits
from aios_nb.envelope import Outcome, Task
from aios_nb.errors import (
    AgentFailed,
    Busy,
    Cancelled,
    InvalidParams,
    NoSuchAgent,
    NotAllowed,
    RpcError,
    TooLarge,
    UsageError,
)
from aios_nb.ports import Blobs, Run

log = logging.getLogger("aios_nb.agents")

SAID_ON_PURPOSE = (AgentFailed, Busy, Cancelled, InvalidParams, NotAllowed, TooLarge)
"""Errors an agent may raise for its caller to see as they are. All others, and these when they came
out of ``ctx.call`` unhandled, become ``AgentFailed``: to the caller they would speak of an agent,
a deadline or a host that is not the one it asked."""


class Hosted:
    """One agent as this node offers it. Is a ``ports.Target``."""

    __slots__ = (
        "access", "builtin", "card", "carrier", "definition", "engine", "id", "idempotent",
        "is_remote", "may_call", "name", "node_id", "published", "slots", "timeout_s",
    )  # fmt: skip

    source = ""
    live = True
    changed = False

    def __init__(
        self,
        definition: Definition,
        node_id: str,
        carrier: AgentHost,
        engine: Engine,
        *,
        builtin: bool,
    ) -> None:
        self.definition = definition
        self.name = definition.name
        self.node_id = node_id
        self.card: Card = definition.card(node_id)
        self.published: Card = definition.published(node_id)
        self.id = self.card.id
        self.access: Access = definition.access
        self.idempotent = definition.idempotent
        self.timeout_s = definition.timeout_s
        self.may_call = definition.may_call
        self.is_remote = False
        self.carrier = carrier
        self.builtin = builtin
        """Comes with every node: answers its owner and is never published."""
        self.engine = engine
        self.slots = Slots(definition.concurrency)

    @property
    def running(self) -> int:
        """Runs that hold a slot now, cancelled threads that go on included."""
        return self.slots.limit - self.slots.free


class AgentHost:
    """What this node can do. Lives on the node's loop. Is a ``ports.Carrier``."""

    def __init__(self, node_id: str, blobs: Blobs, limits: Limits | None = None) -> None:
        self.node_id = node_id
        self._blobs = blobs
        self._limits = limits or Limits()
        self._hosted: dict[str, Hosted] = {}
        self._by_id: dict[str, Hosted] = {}
        self._shadowed: dict[str, Definition] = {}
        self._engines: dict[str, Engine] = {}
        self._closed = False

    def host(self, definition: Definition, *, builtin: bool = False) -> Hosted:
        """Offer this agent from now on. Runs that go on finish with the old code."""
        old = self._hosted.get(definition.name)
        hosted = Hosted(
            definition, self.node_id, self, self._engine(definition.engine), builtin=builtin
        )
        if old is not None and old.builtin and not builtin:
            self._shadowed[old.name] = old.definition
        self._hosted[hosted.name] = hosted
        self._by_id[hosted.id] = hosted
        if old is not None:
            old.slots.close()
        return hosted

    def withdraw(self, name: str) -> Hosted:
        """Stop offering an agent; runs that go on finish. A built-in it replaced comes back."""
        hosted = self.get(name)
        if hosted.builtin:
            raise UsageError(f"{name} comes with the node and cannot be withdrawn")
        del self._hosted[name]
        del self._by_id[hosted.id]
        hosted.slots.close()
        shadowed = self._shadowed.pop(name, None)
        if shadowed is not None:
            self.host(shadowed, builtin=True)
        return hosted

    def get(self, name: str) -> Hosted:
        """The agent of that name; ``NoSuchAgent`` with near names."""
        hosted = self._hosted.get(name)
        if hosted is None:
            close = difflib.get_close_matches(name, self._hosted, n=3)
            hint = f"did you mean {' or '.join(close)}?" if close else None
            raise NoSuchAgent(f"no agent {one_line(name, 60)!r} on this node", hint=hint)
        return hosted

    def find(self, name: str) -> Hosted | None:
        return self._hosted.get(name)

    def listing(self, *, builtins: bool = True) -> list[Hosted]:
        """All agents by name; those of the user first."""
        found = [h for h in self._hosted.values() if builtins or not h.builtin]
        return sorted(found, key=lambda h: (h.builtin, h.name))

    async def carry(self, task: Task, run: Run) -> Outcome:
        """The agent's answer. Cancelling this call stops the work.

        Waiting for a free slot is part of it, so it counts in the caller's deadline. Strangers
        wait behind everyone else.
        """
        stranger = run.stranger
        while True:
            if self._closed:
                raise Busy("this node is stopping")
            hosted = self._by_id.get(task.agent)
            if hosted is None:
                raise NoSuchAgent(f"no agent {task.agent} on this node")
            slots = hosted.slots
            if slots.take_now(stranger=stranger) or await slots.take(stranger=stranger):
                break  # else it was replaced or withdrawn while we waited: look again
        run.begin()
        lease = Lease(slots, stranger=stranger)
        job = Job(hosted.definition, task, run, lease, self._blobs)
        try:
            answer = await hosted.engine.perform(job)
            files = await job.keep(answer.files) if answer.files else ()
            return Outcome(answer.text, answer.data, files)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - SystemExit of an agent ends its run, not us
            failure = _for_the_caller(error, job)
        finally:
            lease.drop()
        raise failure

    async def close(self) -> None:
        """Stop every run in a thread and refuse new ones; no thread or task is left."""
        self._closed = True
        for hosted in self._hosted.values():
            hosted.slots.close()
        for engine in self._engines.values():
            await engine.close()

    def _engine(self, name: str) -> Engine:
        engine = self._engines.get(name)
        if engine is None:
            engine = self._engines[name] = engine_kind(name).make(self._limits)
        return engine


def _for_the_caller(error: BaseException, job: Job) -> RpcError:
    """The one line the caller gets; the author finds the rest in the log."""
    task = job.task
    bubbled = any(error is told for told in job.bubbled)
    if isinstance(error, SAID_ON_PURPOSE) and not bubbled:
        log.info("agent %s said no to message %s: %s", task.agent, task.message_id, error)
        error.message = one_line(error.message)
        return error
    if isinstance(error, Stopped):
        return Cancelled("the run was stopped")
    if isinstance(error, Stray):
        error = error.__cause__ or error
    log.error(
        "agent %s failed on message %s",
        task.agent,
        task.message_id,
        exc_info=(type(error), error, author_traceback(error)),
    )
    said = error.message if bubbled and isinstance(error, RpcError) else explain(error)
    return AgentFailed(one_line(f"{job.definition.name} failed: {said}"))
