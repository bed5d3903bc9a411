"""What an agent gets besides the text: ``ctx``.

The names are the same for all agents. In async agents ``call``, ``search`` and ``ask_user`` are
awaited; in thread agents they block the agent's own thread and return.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from aios_nb.envelope import AgentRow, Event, FileRef, Sender
from aios_nb.parts import Reply

if TYPE_CHECKING:
    from aios_nb.agents.engines import Job

T = TypeVar("T")
SEARCH_LIMIT = 10


class Context:
    """What both kinds share: the request, the time left, progress."""

    __slots__ = ("_job",)

    def __init__(self, job: Job) -> None:
        self._job = job

    @property
    def messages(self) -> Sequence[Event]:
        """The conversation so far, oldest first, without the request itself."""
        return self._job.run.messages

    @property
    def caller(self) -> str:
        """The id of the authenticated caller: whose rights this run has."""
        return self._job.task.caller

    @property
    def sender(self) -> Sender:
        """Who wrote the request, as the caller says."""
        return self._job.task.sender

    @property
    def conversation(self) -> str:
        return self._job.task.conversation

    @property
    def data(self) -> Any:
        """The data that came with the request."""
        return self._job.task.data

    @property
    def files(self) -> tuple[FileRef, ...]:
        """The files that came with the request; ``read`` gives their bytes."""
        return self._job.task.files

    @property
    def deadline(self) -> float:
        """Seconds left until the caller stops waiting."""
        return self._job.run.seconds_left

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits any longer: tidy up and return."""
        return self._job.run.cancelled

    def read(self, file: FileRef) -> bytes:
        """The bytes of a file of the request or of another agent's reply."""
        return self._job.read(file)

    def progress(self, note: str, fraction: float | None = None) -> None:
        """Tell those who wait what is going on; ``fraction`` from 0 to 1."""
        self._job.run.progress(str(note), None if fraction is None else float(fraction))


class AsyncContext(Context):
    """``ctx`` of agents on the node's loop."""

    __slots__ = ()

    async def call(
        self, agent: str | AgentRow, text: str, data: Any = None, files: Sequence[Any] = ()
    ) -> Reply:
        """Another agent's answer. Other runs of this agent may go on meanwhile."""
        return await self._job.call(agent, text, data, files)

    async def search(self, words: str, limit: int = SEARCH_LIMIT) -> Sequence[AgentRow]:
        """Agents for a task, best first."""
        return await self._job.run.search(str(words), limit)

    async def ask_user(self, question: str) -> str:
        """The person's answer to this question."""
        return await self._job.ask_user(question)


class ThreadContext(Context):
    """``ctx`` of agents in threads. Everything that touches the node happens on its loop."""

    __slots__ = ("_on_loop", "_post", "_seconds_left", "_stopped")

    def __init__(
        self,
        job: Job,
        *,
        on_loop: Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any],
        post: Callable[[Callable[[], None]], None],
        seconds_left: Callable[[], float],
        stopped: Callable[[], bool],
    ) -> None:
        super().__init__(job)
        self._on_loop = on_loop
        self._post = post
        self._seconds_left = seconds_left
        self._stopped = stopped

    @property
    def messages(self) -> Sequence[Event]:
        """The conversation so far, oldest first, without the request itself."""
        run = self._job.run

        async def read() -> Sequence[Event]:
            return run.messages

        found: Sequence[Event] = self._on_loop(read)
        return found

    @property
    def deadline(self) -> float:
        """Seconds left until the caller stops waiting."""
        return self._seconds_left()

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits any longer: tidy up and return."""
        return self._stopped() or self._job.run.cancelled

    def progress(self, note: str, fraction: float | None = None) -> None:
        """Tell those who wait what is going on; ``fraction`` from 0 to 1."""
        run, said = self._job.run, str(note)
        part = None if fraction is None else float(fraction)
        self._post(lambda: run.progress(said, part))

    def call(
        self, agent: str | AgentRow, text: str, data: Any = None, files: Sequence[Any] = ()
    ) -> Reply:
        """Another agent's answer. Other runs of this agent may go on meanwhile."""
        reply: Reply = self._on_loop(lambda: self._job.call(agent, text, data, files))
        return reply

    def search(self, words: str, limit: int = SEARCH_LIMIT) -> Sequence[AgentRow]:
        """Agents for a task, best first."""
        rows: Sequence[AgentRow] = self._on_loop(lambda: self._job.run.search(str(words), limit))
        return rows

    def ask_user(self, question: str) -> str:
        """The person's answer to this question."""
        answer: str = self._on_loop(lambda: self._job.ask_user(question))
        return answer
