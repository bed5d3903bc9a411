"""A page in Python that hears what a real one hears, and agents to chat with."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from aios_nb.notebook.widgets.chat import AgentChat
from aios_nb.site import Site
from tests.notebook.hosts import Switch
from tests.sites import TestSite

CEILING_S = 30.0
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
NASTY = "<script>alert(1)</script> <img src=x onerror=alert(2)> \u202eevil"
Make = Callable[..., TestSite]
Open = Callable[..., "Window"]


class Page:
    """What a page knows by what it was told; does what chat.js does with it."""

    def __init__(self) -> None:
        self.items: dict[str, dict[str, Any]] = {}
        self.head: dict[str, Any] = {}
        self.other: list[dict[str, Any]] = []

    def take(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "state":
            self.head = message["head"]
            self.items = {item["id"]: item for item in message["items"]}
        elif kind == "items":
            self.items |= {item["id"]: item for item in message["items"]}
        elif kind == "grow":
            item = self.items[message["id"]]
            item["blocks"] = [*item.get("blocks", [])[: message["keep"]], *message["blocks"]]
        elif kind == "head":
            self.head = message["head"]
        else:
            self.other.append(message)

    def sorted(self) -> list[dict[str, Any]]:
        return sorted(self.items.values(), key=lambda item: item["order"])

    def said(self) -> list[tuple[str, str]]:
        """Who said what, in the order in which it is shown."""
        return [(item["who"]["name"], item.get("text", "")) for item in self.sorted()]


class Window(AgentChat):
    """A chat whose words to pages are kept, and a page that hears all of them."""

    def __init__(
        self, site: Site | None, agent: str | None = None, tag: str = "", **options: Any
    ) -> None:
        """``tag``: in its messages' ids, which no two windows share."""
        self.tag = tag
        self.page = Page()
        self.batches: list[dict[str, Any]] = []
        self.news = threading.Condition()
        self.ids = iter(range(1, 1000))
        super().__init__(Switch(site), agent, **options)
        self.say("hello", view="1")

    def send(self, content: Any, buffers: Any = None) -> None:
        with self.news:
            self.batches.append(content)
            for message in content["messages"]:
                first, count = message.get("buffers", (0, 0))
                self.page.take({**message, "bytes": (buffers or [])[first : first + count]})
            self.news.notify_all()

    def say(self, kind: str, *buffers: bytes, **fields: Any) -> None:
        self._handle_custom_msg({"type": kind, **fields}, list(buffers))

    def attach(self, file: str, name: str, *, last: bool = True) -> None:
        """Upload a picture, or the beginning of one."""
        self.say("upload", PNG, id=file, name=name, mime="image/png", offset=0, last=last)

    def write(self, text: str, **fields: Any) -> str:
        """Send a message as a page does; its id."""
        message_id = fields.pop("id", None) or f"m{self.tag}-{next(self.ids)}"
        place = fields.pop("place", self.page.head.get("place"))
        self.say("send", id=message_id, text=text, place=place, **fields)
        return message_id

    def until(self, holds: Callable[[Page], Any]) -> Any:
        with self.news:
            found = self.news.wait_for(lambda: holds(self.page), CEILING_S)
            assert found, (self.page.said(), self.page.head, self.page.other)
            return found

    def hears(self, kind: str) -> dict[str, Any]:
        """A message of that type; heard once."""

        def heard(page: Page) -> dict[str, Any] | None:
            return next((message for message in page.other if message["type"] == kind), None)

        message = self.until(heard)
        self.page.other.remove(message)
        return message

    def answered(self, text: str) -> dict[str, Any]:
        """The reply with this text, when it is there."""
        return self.until(
            lambda page: next(
                (
                    item
                    for item in page.items.values()
                    if item["who"].get("agent")
                    and item.get("text") == text
                    and not item.get("status")
                ),
                None,
            )
        )

    def item(self, **fields: Any) -> dict[str, Any]:
        """An item with these fields, when it is there."""

        def fits(item: dict[str, Any]) -> bool:
            return all(item.get(name, "") == value for name, value in fields.items())

        return self.until(lambda page: next(filter(fits, page.sorted()), None))


async def upper(text: str) -> str:
    return text.upper()


async def spell(text: str) -> AsyncIterator[str]:
    for char in text:
        yield f"{char} "
        await asyncio.sleep(0)


async def asker(text: str, ctx: Any) -> AsyncIterator[str]:
    yield "Let me see. "
    name = await ctx.ask_user("Your name?")
    yield f"Hello {name}!"


async def forever(text: str, ctx: Any) -> AsyncIterator[str]:
    ctx.progress("at it", 0.5)
    yield "on and on"
    await asyncio.Event().wait()


async def moody(text: str) -> str:
    if "please" in text:
        return "all right"
    raise ValueError(f"not {text}")


async def burst(text: str) -> AsyncIterator[str]:
    for nr in range(6000):
        yield f"w{nr} "


AGENTS = (upper, spell, asker, forever, moody, burst)
