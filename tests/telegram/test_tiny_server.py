"""The smallest server that somebody might write: a few calls, no field that may be left out."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any, Self

from aiohttp import web

from aios_bots.adapters.telegram import Telegram
from aios_bots.core.pairing import Role
from aios_bots.core.secret import Secret
from aios_nb.agents.definition import describe
from tests.telegram.adapting import run
from tests.telegram.bridging import CEILING_S, parrot, working

TOKEN = "1:a"
ADA = 5


class Tiny:
    """Knows six calls. It keeps updates for ever, filters by offset, and holds no poll."""

    def __init__(self) -> None:
        self.shown: dict[int, str] = {}
        self.buttons: dict[str, str] = {}
        self.answered: list[str] = []
        self._updates: list[dict[str, Any]] = []
        self._ids = itertools.count(1)
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post(f"/bot{TOKEN}/{{method}}", self._call)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/bot"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def tell(self, **update: Any) -> None:
        self._updates.append({"update_id": len(self._updates), **update})

    def says(self, text: str) -> None:
        chat = {"id": ADA, "type": "private"}
        message = {"message_id": next(self._ids), "chat": chat, "from": {"id": ADA}, "text": text}
        self.tell(message=message)

    def presses(self, label: str) -> None:
        self.tell(callback_query={"id": "c", "from": {"id": ADA}, "data": self.buttons[label]})

    async def until(self, words: str) -> int:
        """The message that says this, once there is one."""
        async with asyncio.timeout(CEILING_S):
            while True:
                for number, text in self.shown.items():
                    if words in text:
                        return number
                self._changed.clear()
                await self._changed.wait()

    async def _call(self, request: web.Request) -> web.Response:
        given = dict(await request.post())
        work = getattr(self, f"_{request.match_info['method']}", None)
        if work is None:
            return web.Response(status=404)
        result = work(given)
        self._changed.set()
        return web.json_response({"ok": True, "result": result})

    def _getMe(self, _given: Any) -> Any:  # noqa: N802 - as the call is named
        return {"id": 1, "username": "b"}

    def _getUpdates(self, given: Any) -> Any:  # noqa: N802
        return self._updates[int(given.get("offset", 0)) :]

    def _sendMessage(self, given: Any) -> Any:  # noqa: N802
        number = next(self._ids)
        self.shown[number] = given["text"]
        rows = json.loads(given.get("reply_markup", "{}")).get("inline_keyboard", [])
        self.buttons |= {one["text"]: one["callback_data"] for row in rows for one in row}
        return {"message_id": number}

    def _editMessageText(self, given: Any) -> Any:  # noqa: N802
        self.shown[int(given["message_id"])] = given["text"]
        return True

    def _answerCallbackQuery(self, given: Any) -> Any:  # noqa: N802
        self.answered.append(given["callback_query_id"])
        return True


def test_the_smallest_server_is_enough(make_site, tmp_path):
    site = make_site(describe(parrot, access="public"))

    async def story() -> None:
        async with Tiny() as app:
            adapter = Telegram(Secret(TOKEN), api_url=app.url)
            async with working(adapter, site, tmp_path) as (bridge, _):
                await bridge.up.wait()
                code = await bridge.pair(Role.OWNER)
                assert code.link.startswith("https://t.me/b?start=")
                app.says(f"/start {code.code}")
                await app.until("You are in")
                app.says("/search repeats")
                await app.until("parrot: Repeats what it hears")
                app.presses("Chat parrot")
                await app.until("You talk to parrot")
                app.says("hello")
                await app.until("parrot\nparrot: hello")
                assert app.answered == ["c"]
                assert list(app.shown.values()).count("parrot\nparrot: hello") == 1
                assert bridge.status().trouble == ""

    run(story())
