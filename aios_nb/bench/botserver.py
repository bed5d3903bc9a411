"""A Bot API server as small as possible: people's messages in, a bot's calls out, each with a time.

For load on loopback. It checks nothing: that is what the strict one of the tests is for.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from aios_nb.bench.spec import Broken

ACCOUNT = "4242"
TOKEN = f"{ACCOUNT}:{'benchmark' * 4}"
"""Good for nothing: this server is the only one that knows it."""
NAME = "bench_bot"
BATCH = 100
HEARD_S = 120.0
LATER_S = 3.1
"""People take their time: each message of a chat is dated so long after the one before."""
SINCE_S = 800.0
"""The first one is dated so long ago; what is older than a quarter of an hour is asked about."""
WORD = re.compile(r"w\d+")

now = time.perf_counter


class Call(NamedTuple):
    at: float
    chat: str
    method: str
    taken: bool


class BotServer:
    """One bot. Everything on one loop."""

    def __init__(self) -> None:
        self.url = ""
        self.calls: list[Call] = []
        """Those that show something: sends and edits."""
        self.handed: dict[int, float] = {}
        """When each update was given to the bot, by number."""
        self.shut: dict[str, float] = {}
        """The chats that want nothing until then."""
        self._updates: deque[tuple[int, bytes]] = deque()
        self._news = asyncio.Event()
        self._numbers = itertools.count(1000)
        self._messages = itertools.count(1)
        self._dates: dict[str, float] = {}
        self._words = itertools.count()
        self._heard: dict[str, asyncio.Future[float]] = {}
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/bot{token}/{method}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/bot"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    # People -------------------------------------------------------------------------------------

    def word(self) -> str:
        """One that was never said."""
        return f"w{next(self._words)}"

    def says(self, chat: str, text: str, group: str = "") -> tuple[int, float]:
        """Somebody writes; the number of the update, and when that was."""
        number, place = next(self._numbers), group or chat
        date = self._dates.get(place, time.time() - SINCE_S) + LATER_S
        self._dates[place] = date
        entities = [
            {"type": kind, "offset": found.start(), "length": len(found[0])}
            for kind, shape in (("bot_command", r"^/[\w@]+"), ("mention", rf"@{NAME}"))
            for found in re.finditer(shape, text)
        ]
        message: dict[str, Any] = {
            "message_id": next(self._messages),
            "date": int(date),
            "from": {"id": int(chat), "is_bot": False, "first_name": f"Person {chat}"},
            "chat": {"id": int(place), "type": "group" if group else "private"},
            "text": text,
        }
        if entities:
            message["entities"] = entities
        update = {"update_id": number, "message": message}
        self._updates.append((number, msgspec.json.encode(update)))
        self._news.set()
        return number, now()

    def expects(self, words: Iterable[str]) -> None:
        """Somebody will ask when these are ``heard``."""
        loop = asyncio.get_running_loop()
        self._heard.update({word: loop.create_future() for word in words})

    async def heard(self, word: str) -> float:
        """When the bot first said that word, which was expected; it is forgotten then."""
        try:
            async with asyncio.timeout(HEARD_S):
                return await self._heard[word]
        except TimeoutError:
            raise Broken(f"the bot never said {word}") from None
        finally:
            self._heard.pop(word, None)

    # The bot ------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        if method == "getUpdates":
            return await self._poll(await _fields(request))
        if method == "getMe":
            return _ok({"id": int(ACCOUNT), "is_bot": True, "first_name": "B", "username": NAME})
        if method in {"sendMessage", "editMessageText"}:
            return self._said(method, await _fields(request), now())
        return _ok(result=True)

    async def _poll(self, fields: dict[str, Any]) -> web.Response:
        offset = int(fields.get("offset", 0))
        while self._updates and self._updates[0][0] < offset:
            self._updates.popleft()
        if not self._updates:
            self._news.clear()
            try:
                async with asyncio.timeout(float(fields.get("timeout", 0))):
                    await self._news.wait()
            except TimeoutError:
                pass
        batch = list(itertools.islice(self._updates, BATCH))
        at = now()
        for number, _ in batch:
            self.handed.setdefault(number, at)
        body = b'{"ok":true,"result":[' + b",".join(update for _, update in batch) + b"]}"
        return web.Response(body=body, content_type="application/json")

    def _said(self, method: str, fields: dict[str, Any], at: float) -> web.Response:
        chat, text = str(fields["chat_id"]), str(fields["text"])
        left = self.shut.get(chat, 0.0) - at
        self.calls.append(Call(at, chat, method, left <= 0))
        if left > 0:
            pause = int(left) + 1
            body = {"ok": False, "error_code": 429, "parameters": {"retry_after": pause}}
            return web.json_response(body, status=429)
        for word in WORD.findall(text):
            future = self._heard.get(word)
            if future is not None and not future.done():
                future.set_result(at)
        number = int(fields.get("message_id", 0)) or next(self._messages)
        place = {"id": int(chat), "type": "private" if int(chat) > 0 else "group"}
        return _ok({"message_id": number, "date": 0, "chat": place, "text": text})


def _ok(result: Any) -> web.Response:
    return web.Response(
        body=msgspec.json.encode({"ok": True, "result": result}), content_type="application/json"
    )


async def _fields(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        fields: dict[str, Any] = msgspec.json.decode(await request.read())
        return fields
    return {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
