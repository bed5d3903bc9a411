"""A reply while it is written, in every place that shows its conversation.

What is shown here is a preview: it may be dropped, and the event in the log says what the reply is.
The first words are a message that is kept and sent like any other, because the reply ends as an
edit of it; what it grows by goes as edits that nobody misses if they are left out.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable

from aios_bots.core.letters import Letter
from aios_bots.core.postman import Postman
from aios_bots.core.turn import Do, Step, Turn
from aios_nb.client import SiteClient
from aios_nb.errors import AiosError

GRACE_S = 0.15
"""What comes within this is shown when it is whole: a quick answer is one message, no edit."""
LINGER_S = 60.0
"""So long after its last word, the log should have told of a reply."""
NOT_YET_S = 0.1
"""A place that was not told of the question yet is looked at again after this."""


class Page:
    """A reply in one place."""

    def __init__(
        self,
        letter: Letter,
        turn: Turn,
        ready: Callable[[], bool],
        catch_up: Callable[[], Awaitable[None]],
    ) -> None:
        """``catch_up``: brings to the place what is in the log by now."""
        self.letter, self.turn, self._ready, self._catch_up = letter, turn, ready, catch_up
        self.news = asyncio.Event()
        self.over = asyncio.Event()
        """The log has told of the reply: nothing here may touch it any more."""
        self._putting: asyncio.Task[None] | None = None
        self._level = turn.begun > 0

    async def level(self) -> None:
        """Let everything go before it that was said before its first word.

        The log may be behind: after a restart, the answer before this one would come after it.
        """
        if not self._level and self.turn.text:
            self._level = True
            await self._catch_up()

    @property
    def closed(self) -> bool:
        return self.over.is_set()

    @property
    def ready(self) -> bool:
        """Whether what the reply answers is there, or before it in the line."""
        return self.turn.begun > 0 or self._ready()

    async def close(self) -> Turn:
        """The turn, which is the caller's from now on."""
        self.over.set()
        self.news.set()
        if self._putting is not None:  # it has its place in the line, or fails to
            await asyncio.wait([self._putting])
        return self.turn

    async def show(self, step: Step, postman: Postman, clock: Callable[[], float]) -> None:
        """Do what the turn wants."""
        if step.do is Do.TYPING:
            postman.typing(self.letter.place)
            return
        if not step.final:
            shown = await postman.preview(self.letter.edit(step.part, step.rich))
            if not self.closed:
                (self.turn.done if shown else self.turn.failed)(step, clock())
            return
        # Not to be cut in the middle: whoever closes this must know whether it is in the line.
        putting = asyncio.ensure_future(self._put(step, postman, clock))
        self._putting = putting
        try:
            await asyncio.shield(putting)
        finally:
            if putting.done():
                self._putting = None

    async def _put(self, step: Step, postman: Postman, clock: Callable[[], float]) -> None:
        await postman.put([self.letter.call(step, self.turn.text, ":full")])
        self.turn.done(step, clock())


class Writing:
    """One reply. ``run`` follows it until it has ended."""

    def __init__(
        self,
        client: SiteClient,
        reply_id: str,
        postman: Postman,
        clock: Callable[[], float],
        pages: Iterable[Page],
    ) -> None:
        """``client``: the one that asked; only it hears the reply."""
        self._client, self._reply_id = client, reply_id
        self._postman, self._clock = postman, clock
        self.pages = {page.letter.place: page for page in pages}
        self._length = 0
        self._quiet = False
        """Nothing is to be shown now: the agent waits for an answer, or all is said."""

    async def run(self) -> None:
        """Show the reply as it grows. What goes wrong is told by the log."""
        async with asyncio.TaskGroup() as all_of_it:
            for page in self.pages.values():
                all_of_it.create_task(self._drive(page))
            all_of_it.create_task(self._listen())

    def wake(self) -> None:
        """The agent goes on."""
        self._hush(quiet=False)

    async def _listen(self) -> None:
        with contextlib.suppress(AiosError):  # why is in the log
            await self._read()
        self._hush(quiet=True)
        try:
            async with asyncio.timeout(LINGER_S):
                for page in self.pages.values():
                    await page.over.wait()
        except TimeoutError:
            for page in self.pages.values():
                await page.close()

    async def _read(self) -> None:
        question: dict[str, str] = {}
        while True:
            flow = self._client.notices(
                "chat.stream", message_id=self._reply_id, offset=self._length, **question
            )
            try:
                async for delta in flow:
                    self._feed(str(delta["text"]), done=bool(delta["done"]))
                result = await flow.result()
            finally:
                flow.close()
            if result["status"] != "input_required":
                return
            question = {"question": result["question"]}
            self._hush(quiet=True)

    def _feed(self, text: str, *, done: bool) -> None:
        self._length += len(text)
        self._quiet = done  # then the log tells of it any moment now
        now = self._clock()
        for page in self.pages.values():
            if not page.closed:
                page.turn.feed(text, now)
                page.news.set()

    def _hush(self, *, quiet: bool) -> None:
        self._quiet = quiet
        for page in self.pages.values():
            page.news.set()

    async def _drive(self, page: Page) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await page.over.wait()
        while not page.closed:
            wait = await self._step(page)
            if not page.closed:
                await _within(page, wait)

    async def _step(self, page: Page) -> float | None:
        """Do what there is to do in one place; gives for how long there is nothing more."""
        if self._quiet:
            return None
        if not page.ready:
            return NOT_YET_S
        await page.level()
        if page.closed:
            return None
        now, busy = self._clock(), self._postman.busy(page.letter.place.chat)
        step = page.turn.step(now, busy=busy)
        if step is None:
            return page.turn.wait(now, busy=busy)
        await page.show(step, self._postman, self._clock)
        return 0.0


async def _within(page: Page, seconds: float | None) -> None:
    """Until there is news of a page, or so long; without a time until there is news."""
    if seconds is not None and seconds <= 0:
        await asyncio.sleep(0)
        return
    page.news.clear()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await page.news.wait()
