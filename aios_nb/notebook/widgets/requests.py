"""What a page may ask of a chat: one method for each type of message, ``on_`` and its name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from aios_nb.client import SiteClient, get_file
from aios_nb.errors import AiosError, NoSuchAgent, UsageError
from aios_nb.notebook.widgets import printed
from aios_nb.notebook.widgets.panel import PAUSE_S
from aios_nb.notebook.widgets.talk import Talk
from aios_nb.notebook.widgets.uploads import Uploads
from aios_nb.people.wording import NOTEBOOK, typed
from aios_nb.richtext import one_line

Message = dict[str, Any]

CHUNK_BYTES = 1 << 20
"""Of a file on its way to a page: what follows a large one need not wait for all of it."""
NAMES_MAX = 50
"""In one draft."""
DRAFT_CHARS = 8
"""A draft shorter than this says nothing about who could help."""
TAKEN_MAX = 1000
"""Messages that a page may say again although they are in a log."""


class Page(Protocol):
    """The part of a panel that answers."""

    def tell(self, message: Message, *buffers: bytes) -> None: ...
    def work(self, job: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]: ...


class Requests:
    """Does what pages ask for, in the conversation of ``talk``. Lives on the node's loop."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._uploads: Uploads | None = None
        self._helping: asyncio.Task[Any] | None = None
        self._logged: dict[str, None] = {}
        """What was said last, by its id."""

    async def take(self, talk: Talk, message: Message, buffers: Sequence[bytes]) -> None:
        """Do it; what is no message of ours is ignored."""
        kind = str(message.get("type"))
        if kind == "upload":  # its pieces must stay in order: nothing is waited for before
            taking = self._uploads_to(talk.client).take(message, buffers)
            await self._refusing("unloadable", message, taking)
            return
        do: Callable[[Talk, Message], Awaitable[None]] | None = getattr(self, f"on_{kind}", None)
        if do is not None:
            await talk.ready.wait()
            await do(talk, message)

    def _uploads_to(self, client: SiteClient) -> Uploads:
        """A node that is started again has another loop, and nothing waits from one to another."""
        if self._uploads is None or self._uploads.client is not client:
            self._uploads = Uploads(client, self._uploads.there if self._uploads else {})
        return self._uploads

    async def _refusing(self, word: str, message: Message, job: Awaitable[Any]) -> None:
        """What has an id of the page's own is refused under that id."""
        try:
            await job
        except AiosError as error:
            said = {
                "text": one_line(error.message),
                "hint": one_line(typed(error.hint or "", NOTEBOOK)),
                "nobody": isinstance(error, NoSuchAgent),
            }
            self._page.tell({"type": word, "id": message.get("id"), **said})

    # Saying something --------------------------------------------------------------------------

    async def _attached(self, talk: Talk, message: Message) -> list[dict[str, Any]]:
        """Its files, when they are all on the node."""
        uploads = self._uploads_to(talk.client)
        return [await uploads.done(str(one)) for one in message.get("files") or ()]

    async def on_send(self, talk: Talk, message: Message) -> None:
        place = _place(message, talk)

        async def send() -> None:
            # Outside of the talk's order: a file of a page that was closed may never come.
            await talk.send(
                str(message["text"]),
                message_id=str(message["id"]),
                files=await self._attached(talk, message),
                mentioned=dict(message.get("mentioned") or {}),
                place=place,
            )

        await self._saying(message, send)

    async def on_again(self, talk: Talk, message: Message) -> None:
        text = message.get("text")
        place = _place(message, talk)

        async def again() -> None:
            await talk.again(
                str(message["of"]),
                message_id=str(message["id"]),
                text=None if text is None else str(text),
                files=await self._attached(talk, message),
                mentioned=dict(message.get("mentioned") or {}),
                place=place,
            )

        await self._saying(message, again)

    async def on_answer(self, talk: Talk, message: Message) -> None:
        async def answer() -> None:
            await talk.answer(str(message["reply"]), str(message["question"]), str(message["text"]))

        await self._saying(message, answer)

    async def _saying(self, message: Message, say: Callable[[], Awaitable[None]]) -> None:
        """Once: a page that missed what became of it says it again, perhaps elsewhere."""
        said = str(message["id"])

        async def once() -> None:
            if said not in self._logged:
                await say()
                self._logged[said] = None
                if len(self._logged) > TAKEN_MAX:
                    del self._logged[next(iter(self._logged))]
            self._page.tell({"type": "taken", "id": said})

        await self._refusing("refused", message, once())

    async def on_stop(self, talk: Talk, message: Message) -> None:
        await talk.stop(str(message.get("reply") or ""))

    # While something is typed ------------------------------------------------------------------

    async def on_complete(self, talk: Talk, message: Message) -> None:
        typed = str(message.get("typed", ""))
        rows = await talk.company.complete(typed, talk.members())
        self._page.tell({"type": "complete", "typed": typed, "rows": rows})

    async def on_names(self, talk: Talk, message: Message) -> None:
        """Which of the words with an @ are names of somebody."""
        names = [str(name) for name in message.get("names") or ()][:NAMES_MAX]
        known = [name for name in names if talk.knows(name)]
        self._page.tell({"type": "names", "names": names, "known": known})

    async def on_drafting(self, talk: Talk, message: Message) -> None:
        """Who could help with what is being typed; the latest draft counts."""
        if self._helping is not None:
            self._helping.cancel()
        draft = str(message.get("text", "")).strip()

        async def help_with() -> None:
            rows = []
            if len(draft) >= DRAFT_CHARS:
                rows = await talk.company.helpful(draft, talk.members())
            self._page.tell({"type": "helpers", "view": message.get("view"), "rows": rows})

        self._helping = self._page.work(help_with())

    # The conversation as a thing ---------------------------------------------------------------

    async def on_earlier(self, talk: Talk, _: Message) -> None:
        await talk.here.earlier()

    async def on_chats(self, talk: Talk, message: Message) -> None:
        rows = await talk.chats()
        self._page.tell({"type": "chats", "view": message.get("view"), "rows": rows})

    async def on_open(self, talk: Talk, message: Message) -> None:
        await talk.open(str(message["conversation"]))

    async def on_new(self, talk: Talk, _: Message) -> None:
        await talk.fresh()

    async def on_rename(self, talk: Talk, message: Message) -> None:
        await talk.rename(one_line(str(message["title"])))

    async def on_delete(self, talk: Talk, message: Message) -> None:
        await talk.delete(str(message["conversation"]))
        if message.get("listed"):
            await self.on_chats(talk, message)

    async def on_export(self, talk: Talk, message: Message) -> None:
        made = await talk.export(str(message["form"]))
        about = {"type": "export", "name": made["name"], "mime": made["mime"]}
        self._page.tell({**about, "view": message.get("view")}, made["text"].encode())

    async def on_fetch(self, talk: Talk, message: Message) -> None:
        wanted = str(message["sha256"])
        await self._refusing("unfetchable", {"id": wanted}, self._fetch(talk, wanted))

    async def _fetch(self, talk: Talk, wanted: str) -> None:
        """A file of the conversation, piece by piece."""
        file = talk.here.transcript.file(wanted)
        if file is None:
            raise UsageError("that file is not in this conversation")
        content = await get_file(talk.client, file)
        shown = printed.is_picture(file) and printed.looks_like(content, file["mime"])
        about = {"type": "file", "sha256": wanted, "size": len(content), "picture": shown}
        for offset in range(0, len(content) or 1, CHUNK_BYTES):
            self._page.tell({**about, "offset": offset}, content[offset : offset + CHUNK_BYTES])
            await asyncio.sleep(PAUSE_S)


def _place(message: Message, talk: Talk) -> int:
    """Where it was written; a page that has just opened does not know how that counts."""
    place = message.get("place")
    return place if isinstance(place, int) else talk.place
