"""AgentChat: a conversation with agents under a cell."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from aios_nb import parts
from aios_nb.client import put_file
from aios_nb.envelope import new_id
from aios_nb.errors import AiosError, InvalidParams, NoSuchAgent, UsageError
from aios_nb.notebook.kernel import unbound
from aios_nb.notebook.widgets.items import as_plain
from aios_nb.notebook.widgets.panel import Host, Panel, asset
from aios_nb.notebook.widgets.requests import Requests
from aios_nb.notebook.widgets.showing import Showing
from aios_nb.notebook.widgets.talk import DEADLINE_S, Talk
from aios_nb.site import Reply, Site, cancel, spoken, spoken_async

START_S = 5.0
"""How long a new chat waits for its conversation to be read, and a question for the node."""
SAVED_ITEMS = 100
SAVED_BYTES = 200_000
SAVE_PAUSE_S = 2.0


class AgentChat(Panel):
    """A chat with an agent: goes on where the last one with it ended.

    ``agent``: its name or id, the node's concierge without one. ``conversation``: that one.
    ``new``: a new conversation. ``chat.ask("…")`` speaks in it from Python.
    """

    _esm = asset(
        "common.js",
        "drafts.js",
        "fetched.js",
        "store.js",
        "messages.js",
        "composer.js",
        "frame.js",
        "chat.js",
    )
    _css = asset("common.css", "chat.css")

    aside = Panel.aside | {"calm", "complete", "drafting", "names"}

    def __init__(
        self,
        host: Host,
        agent: str | None = None,
        *,
        conversation: str | None = None,
        new: bool = False,
    ) -> None:
        self._agent = agent
        self._conversation = conversation
        self._new = new
        self._place = 0
        self.talk: Talk | None = None
        """The conversation as it is shown; None while there is no node. On the node's loop."""
        self._told_head = b""
        self._saving: asyncio.TimerHandle | None = None
        self._saved_at = 0.0
        self._requests = Requests(self)
        self._showing = Showing(self)
        super().__init__(host)
        try:
            self.begin()
            self._wait_for_start()
        except BaseException:  # interrupted: nobody has it, and it would follow for good
            self.close()
            raise

    def _wait_for_start(self) -> None:
        """Raises at once, where somebody can read it, for a name or an id that leads nowhere."""
        site = self.host.site()
        if site is None or site.loop.is_here():
            return

        async def started() -> Talk:
            async with asyncio.timeout(START_S):
                return await self._ready(site)

        try:
            talk = site.run(started, "opening the chat")
        except (TimeoutError, AiosError):
            return  # it shows what is wrong
        if isinstance(talk.problem, NoSuchAgent | InvalidParams) and not talk.agent:
            raise talk.problem

    # From Python ---------------------------------------------------------------------------------

    @property
    def conversation(self) -> str | None:
        """Its id, for ``node.history`` and others; None until something was said."""
        talk = self.talk
        return self._conversation if talk is None else talk.here.conversation

    def ask(
        self,
        text: str,
        *,
        files: parts.Files = (),
        deadline_s: float = DEADLINE_S,
    ) -> Reply:
        """Say it here and wait for the answer; ``@name`` asks that agent, as in the window.

        Of several agents the first one's answer is returned; all are in the conversation.
        """
        site = self._site()
        said, read = spoken(text, files)
        doing = "waiting for the answer"  # of whom, the text may say
        return site.run(lambda: self._ask(site, said, read, deadline_s), doing)

    async def ask_async(
        self,
        text: str,
        *,
        files: parts.Files = (),
        deadline_s: float = DEADLINE_S,
    ) -> Reply:
        site = self._site()
        said, read = await spoken_async(text, files)
        return await site.on_loop(lambda: self._ask(site, said, read, deadline_s))

    async def _ask(
        self,
        site: Site,
        text: str,
        files: list[parts.File],
        deadline_s: float,
    ) -> Reply:
        async with self._speaking(site) as talk:
            await talk.ready.wait()
            refs = [
                await put_file(site.client, file.content, file.name, file.mime) for file in files
            ]
            return await self._said(site, talk, text, refs, deadline_s)

    @asynccontextmanager
    async def _speaking(self, site: Site) -> AsyncIterator[Talk]:
        """The conversation, for somebody who says something; nobody else may look at it."""
        talk = self._talk_on(site)
        talk.speakers += 1
        try:
            yield talk
        finally:
            talk.speakers -= 1
            if not talk.speakers and (self.resting or talk is not self.talk):
                if talk is self.talk:
                    self.detached("resting")
                await asyncio.shield(talk.close())

    async def _said(
        self, site: Site, talk: Talk, text: str, refs: Sequence[Any], deadline_s: float
    ) -> Reply:
        message_id = new_id("m")
        try:
            replies = await talk.send(
                text, message_id=message_id, files=refs, deadline_s=deadline_s
            )
            if not replies:
                raise UsageError("nobody is there to answer", hint="name an agent: @name …")
            results = [await self._result(talk, reply["reply_id"]) for reply in replies]
        except asyncio.CancelledError:
            await asyncio.shield(cancel(talk.client, message_id))
            raise
        return Reply.made(results[0], replies[0]["agent"], site)

    async def _result(self, talk: Talk, reply_id: str) -> dict[str, Any]:
        flow = talk.client.notices("chat.stream", message_id=reply_id, offset=0)
        try:
            result: dict[str, Any] = await flow.result()
        except AiosError:
            await talk.here.settled(reply_id)
            raise
        finally:
            flow.close()
        await talk.here.settled(reply_id)
        return result

    def _site(self) -> Site:
        """The running node; waits a little for one that is starting."""
        came = threading.Event()
        leave = self.host.subscribe(came.set)
        try:
            if self.host.site() is None and self.host.problem() == "starting":
                came.wait(START_S)
        finally:
            leave()
        return self.there()

    # The node ------------------------------------------------------------------------------------

    async def attached(self, site: Site) -> None:
        self._talk_on(site)

    def detached(self, problem: str) -> None:
        talk, self.talk = self.talk, None
        if talk is not None:  # its tasks went with the node's loop
            self._agent = talk.wanted
            self._conversation, self._new = talk.stands()
            self._place = talk.place
        super().detached(problem)

    def _talk_on(self, site: Site) -> Talk:
        talk = self.talk
        if talk is None or talk.client is not site.client:
            talk = self.talk = Talk(
                site.client,
                self._agent,
                conversation=self._conversation,
                new=self._new,
                place=self._place,
                changed=self._changed,
            )
            self._told_head = b""
            self._saving = None  # a timer of the last node's loop went with it
            self.work(talk.start())
        return talk

    async def _ready(self, site: Site) -> Talk:
        talk = self._talk_on(site)
        await talk.ready.wait()
        return talk

    def _changed(self) -> None:
        self.stir()
        self._showing.changed()

    def pour(self) -> Iterable[dict[str, Any]]:
        talk = self.talk
        if talk is None:
            return
        if talk.here.turned:
            yield self._state(talk)
            self._save_soon()
            if talk.here.transcript.lags:  # what was written meanwhile comes after it
                self.stir()
            return
        news, later = talk.here.transcript.news()
        yield from news
        head = talk.head()
        told = msgspec.json.encode(head)
        if told != self._told_head:
            self._told_head = told
            yield {"type": "head", "head": head}
        if later:
            self.stir()
        if any(message["type"] != "grow" for message in news):
            self._save_soon()

    def _state(self, talk: Talk) -> dict[str, Any]:
        """Everything, for a page that knows nothing."""
        head = talk.head()
        items = [as_plain(item) for item in talk.here.transcript.whole()]
        self._told_head = msgspec.json.encode(head)
        talk.here.turned = False  # last: what cannot be told is tried again
        return {"type": "state", "head": head, "items": items}

    # What a page shows that cannot ask -----------------------------------------------------------

    def _save_soon(self) -> None:
        loop = asyncio.get_running_loop()
        if self._saving is None or self._saving.when() < loop.time() - SAVE_PAUSE_S:
            at = max(loop.time(), self._saved_at + SAVE_PAUSE_S)
            self._saving = loop.call_at(at, self._save)

    def _save(self) -> None:
        self._saving = None
        self._saved_at = asyncio.get_running_loop().time()
        talk = self.talk
        if talk is None:
            return
        kept: list[dict[str, Any]] = []
        room = SAVED_BYTES
        for item in reversed(talk.here.transcript.sorted()[-SAVED_ITEMS:]):
            plain = as_plain(item)
            room -= len(msgspec.json.encode(plain))
            if room < 0:
                break
            kept.append(plain)
        saved = {"head": talk.head(), "items": kept[::-1]}
        unbound(lambda: setattr(self, "saved", saved))

    # What the page says --------------------------------------------------------------------------

    async def receive(self, message: dict[str, Any], buffers: Sequence[bytes]) -> None:
        site = self.host.site()
        if site is None:
            return
        if message.get("type") in {"hello", "calm", "bye"}:
            self._showing.heard(message)
        async with self._speaking(site) as talk:
            if message.get("type") == "hello":
                talk.here.turned = True  # once, however many pages or greetings there are
                self.stir()
            else:
                await self._requests.take(talk, message, buffers)

    # Without widgets, and in print ---------------------------------------------------------------

    def _ipython_display_(self) -> None:
        self.shown()
        self._showing.display()

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        self.shown()
        return self.mimebundle()

    def mimebundle(
        self, printed: dict[str, str] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget; for who has none, the conversation as text and as HTML."""
        bundle, metadata = self.widget_bundle() or ({}, {})
        return {**bundle, **(printed or self._showing.bundle())}, metadata

    def rested(self) -> None:
        talk = self.talk
        super().rested()
        self._showing.close()
        if talk is not None:
            self._on_loop(lambda: _end(talk))

    def ended(self) -> None:
        self._showing.close()
        self._on_loop(self._closed)

    async def _closed(self) -> None:
        """Behind an ``attached`` that came first: nothing else can make another one."""
        talk, self.talk = self.talk, None
        if talk is not None:
            await _end(talk)

    def _on_loop(self, make: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        site = self.host.site()
        if site is not None:
            self._hand_over(site, make, self._deeds)


async def _end(talk: Talk) -> None:
    if not talk.speakers:  # else the last of them does it
        await talk.close()
