"""Searching all agents that this node knows, without keeping its loop waiting.

A thread of its own does the work: the model is read and the index is built when the first search
asks for it, or before when many agents are known. What arrives later is taken in slices, so a
search never waits for more than one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import msgspec

from aios_nb.envelope import AgentRow
from aios_nb.filters import Filters, read_query
from aios_nb.hub.diversity import diverse
from aios_nb.hub.others import Light
from aios_nb.index.documents import Document, Hit, Index, Scored

log = logging.getLogger("aios_nb.hub")

MANY = 200
"""So many agents are indexed before anyone asks."""
LATER_S = 2.0
"""They wait so long: a node that has just joined has better things to do."""
SLICE = 64
"""Documents taken in at once: some 20 ms of work."""
GATHER_S = 0.02
"""How long arrivals wait for others: a commit costs the same for one as for fifty."""
COMMIT_DOCUMENTS = 2048
"""During a long build, after how many documents those so far are let be found."""
FEW = 500
FIRST_PATIENCE_S = 0.5
"""How long a first search among a few waits for the model; then the words alone answer it."""
PATIENCE_S = 2.0
"""How long a search waits for a build; then it is answered from what is there."""

T = TypeVar("T")
P = ParamSpec("P")
FOUND_MAX = 1000
"""Deeper nobody reads in what words found; lists by filters alone go to their end."""
Visible = Callable[[AgentRow], bool]


class Page(msgspec.Struct, frozen=True):
    """Some of the agents that were found."""

    rows: Sequence[AgentRow]
    total: int
    """How many there are; of what words found, as many as were compared."""


NOTHING = Page((), 0)


class Cut(msgspec.Struct, frozen=True):
    """Which of what was found, and of what."""

    limit: int = 10
    offset: int = 0
    everyone: bool = False
    """Whether an empty query lists all; else it finds nobody."""


class _ClosedError(Exception):
    """There is no thread any more."""


def _all_live(_: AgentRow) -> Light:
    return Light.LIVE


def _best_index() -> Index:
    from aios_nb.index.opening import open_index

    return open_index()


class Searching:
    """The search of one node. Used on its loop; ``standing`` and ``visible`` run in the thread."""

    def __init__(
        self,
        standing: Callable[[AgentRow], Light] = _all_live,
        open_index: Callable[[], Index] = _best_index,
    ) -> None:
        self._standing = standing
        self._open_index = open_index
        self._rows: dict[str, AgentRow] = {}
        self._documents: dict[str, Document] = {}
        """As last put: what changes in nothing that is searched is not indexed again."""
        self._waiting: dict[str, Document | None] = {}
        self._index: Index | None = None
        """Touched by the thread only."""
        self._thread: ThreadPoolExecutor | None = None
        self._intake: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None
        self._wanted = False
        self._closed = False

    def __len__(self) -> int:
        return len(self._rows)

    async def close(self) -> None:
        """Stop the work. Nothing is found any more."""
        self._closed = True
        if self._later is not None:
            self._later.cancel()
        if self._intake is not None:
            self._intake.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._intake
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    # What is known ---------------------------------------------------------------------------

    def put(self, row: AgentRow, examples: Iterable[str] = ()) -> None:
        """Let this agent be found, from now on as this."""
        document = Document(row.name, row.title, row.about, row.tags, " ".join(examples))
        self._rows[row.id] = row
        if self._documents.get(row.id) != document:
            self._documents[row.id] = document
            self._change(row.id, document)

    def drop(self, agent_id: str) -> None:
        if self._rows.pop(agent_id, None) is not None:
            del self._documents[agent_id]
            self._change(agent_id, None)

    def _change(self, agent_id: str, document: Document | None) -> None:
        self._waiting[agent_id] = document
        with contextlib.suppress(RuntimeError):  # no loop yet: the first search takes it in
            if self._wanted:
                self._take_in()
            elif self._later is None and len(self._waiting) >= MANY:
                loop = asyncio.get_running_loop()
                self._later = loop.call_later(LATER_S, self._take_in)

    def _take_in(self) -> asyncio.Task[None]:
        """Have the thread take in what is waiting, if it does not already."""
        self._wanted = True
        if self._intake is None or self._intake.done():
            loop = asyncio.get_running_loop()
            self._intake = loop.create_task(self._in_slices(), name="aios-search-intake")
        return self._intake

    async def _in_slices(self) -> None:
        since_commit = 0
        await asyncio.sleep(GATHER_S)
        while self._waiting and not self._closed:
            keys = list(self._waiting)[:SLICE]
            changes = [(key, self._waiting.pop(key)) for key in keys]
            since_commit += len(changes)
            commit = not self._waiting or since_commit >= COMMIT_DOCUMENTS
            await self._in_thread(self._apply, changes, commit)
            if commit:
                since_commit = 0

    # Searching -------------------------------------------------------------------------------

    async def search(
        self, query: str, limit: int = 10, visible: Visible | None = None
    ) -> list[AgentRow]:
        """The agents that fit best, best first, each with its score and why."""
        return list((await self.page(query, Cut(limit), visible)).rows)

    async def page(self, query: str, cut: Cut, visible: Visible | None = None) -> Page:
        """A part of them, and how many there are."""
        try:
            return await self._page(query, cut, visible)
        except _ClosedError:
            return NOTHING

    async def _page(self, query: str, cut: Cut, visible: Visible | None) -> Page:
        words, filters = read_query(query)
        if not words:
            if filters == Filters() and not cut.everyone:
                return NOTHING
            return await self._in_thread(self._listed, filters, cut, visible)
        self._wanted = True
        new = self._index is None and len(self._rows) <= FEW
        if self._waiting or (self._intake is not None and not self._intake.done()):
            patience = FIRST_PATIENCE_S if new else PATIENCE_S
            await asyncio.wait([self._take_in()], timeout=patience)
        limit = min(cut.offset + cut.limit, FOUND_MAX)
        if self._index is None and new:
            # In a thread of its own: the usual one is busy reading the model.
            hits, total = await asyncio.to_thread(self._by_words, words, filters, limit, visible)
            if self._closed:
                raise _ClosedError
        else:
            hits, total = await self._in_thread(self._find, words, filters, limit, visible)
        rows = (self._shown(hit) for hit in hits[cut.offset :])
        return Page([row for row in rows if row is not None], min(total, FOUND_MAX))

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        if self._closed:
            raise _ClosedError
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="aios-search")
        try:
            return await asyncio.wrap_future(self._thread.submit(work, *args, **named))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and task is not None and not task.cancelling():
                raise _ClosedError from None  # the thread has ended, not the one who asks
            raise

    def _shown(self, hit: Hit) -> AgentRow | None:
        row = self._rows.get(hit.key)
        if row is None:  # dropped while the thread was looking
            return None
        return _judged(row, self._standing(row), hit.score, hit.why)

    # In the thread ---------------------------------------------------------------------------

    def _opened(self) -> Index:
        if self._index is None:
            self._index = self._open_index()
        return self._index

    def _apply(self, changes: Sequence[tuple[str, Document | None]], commit: bool) -> None:  # noqa: FBT001
        index = self._opened()
        for key, document in changes:
            try:
                if document is None:
                    index.drop(key)
                else:
                    index.put(key, document)
            except Exception:
                log.exception("%s cannot be indexed", key)
        if commit:
            index.refresh()

    def _find(
        self, words: str, filters: Filters, limit: int, visible: Visible | None
    ) -> tuple[list[Hit], int]:
        return self._counted(self._opened(), words, limit, self._keeper(filters, visible))

    def _by_words(
        self, words: str, filters: Filters, limit: int, visible: Visible | None
    ) -> tuple[list[Hit], int]:
        """The same, while the model is being read: by words alone, among a few."""
        from aios_nb.index.opening import open_plain

        index = open_plain()
        for key, document in list(self._documents.items()):
            index.put(key, document)
        index.refresh()
        return self._counted(index, words, limit, self._keeper(filters, visible))

    def _counted(
        self, index: Index, words: str, limit: int, keep: Callable[[str], bool]
    ) -> tuple[list[Hit], int]:
        """The best, and how many fit: an index ranks more than it returns."""
        total = 0

        def arrange(ranked: Sequence[Scored]) -> Sequence[Scored]:
            nonlocal total
            total = len(ranked)
            return self._arranged(ranked)

        return index.search(words, limit, keep, arrange), total

    def _keeper(self, filters: Filters, visible: Visible | None) -> Callable[[str], bool]:
        def keep(key: str) -> bool:
            row = self._rows.get(key)
            return row is not None and self._admits(row, filters, visible)

        return keep

    def _admits(self, row: AgentRow, filters: Filters, visible: Visible | None) -> bool:
        standing = self._standing(row)
        if standing is Light.GONE or not filters.admit(row):
            return False
        if filters.live is not None and filters.live is not (standing is Light.LIVE):
            return False
        return visible is None or visible(row)

    def _arranged(self, ranked: Sequence[Scored]) -> Sequence[Scored]:
        """No node fills the page, and who may be away comes last."""
        mixed = diverse(ranked, lambda key: key.rpartition("@")[2])
        return sorted(mixed, key=lambda scored: self._may_be_away(scored[0]))

    def _may_be_away(self, key: str) -> bool:
        row = self._rows.get(key)
        return row is None or self._standing(row) is not Light.LIVE

    def _listed(self, filters: Filters, cut: Cut, visible: Visible | None) -> Page:
        """For filters without words: who passes them, by name."""
        rows = [row for row in list(self._rows.values()) if self._admits(row, filters, visible)]
        rows.sort(key=lambda row: (self._may_be_away(row.id), row.name, row.id))
        shown = rows[cut.offset : cut.offset + cut.limit]
        why = filters.why
        return Page([_judged(row, self._standing(row), 1.0, why) for row in shown], len(rows))


def _judged(row: AgentRow, standing: Light, score: float, why: str) -> AgentRow:
    live = standing is Light.LIVE
    return msgspec.structs.replace(row, live=live, score=score, why=why)
