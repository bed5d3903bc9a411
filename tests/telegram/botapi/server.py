"""The server: HTTP on loopback, in a thread of its own, with everything that tests look at."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Self, TypeVar

from aiohttp import web

from tests.telegram.botapi.accounts import Bot, User
from tests.telegram.botapi.args import Args, read_args
from tests.telegram.botapi.errors import ApiError
from tests.telegram.botapi.faults import Fault, Faults
from tests.telegram.botapi.flood import Flood, counts_as_message
from tests.telegram.botapi.methods import METHODS, Asked, Said
from tests.telegram.botapi.people import Group, Person, new_token
from tests.telegram.botapi.record import CEILING_S, Call, Record
from tests.telegram.botapi.settings import MIB, Settings, Times
from tests.telegram.botapi.updates import Alive, Updates
from tests.telegram.botapi.webhooks import Webhook
from tests.telegram.botapi.world import World

TOKEN = re.compile(r"[1-9]\d{0,18}:[A-Za-z0-9_-]{10,70}")
RESET = struct.pack("ii", 1, 0)
T = TypeVar("T")


class _Cut(Exception):
    """The line goes dead instead of an answer."""


class BotApi:
    """A running Bot API server with one bot; all its methods may be called from any thread."""

    def __init__(self, port: int = 0, settings: Settings | None = None, **bot: Any) -> None:
        self.port = port
        self.clock = Times()
        self.settings = settings or Settings()
        self.record = Record(self.clock.now)
        self.flood = Flood(self.clock)
        self.world = World(self.clock, self.settings, self.record)
        self._bot_settings = bot
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="botapi", daemon=True)
        self.faults = Faults(self._loop)

    # Life

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._thread.start()
        self._wait_for(self._open())
        self.bot = self.new_bot(**self._bot_settings)

    def stop(self) -> None:
        self._wait_for(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CEILING_S)
        self._loop.close()

    def go_down(self) -> None:
        """Nobody answers any more: open lines are cut, new ones refused."""
        self._wait_for(self._silence())

    def come_back(self) -> None:
        """Answer again, at the same address, with all that was there before."""
        self._wait_for(self._listen())

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        self.go_down()
        try:
            yield
        finally:
            self.come_back()

    @property
    def base_url(self) -> str:
        """As client libraries want it: the token comes right behind it."""
        return f"http://127.0.0.1:{self.port}/bot"

    @property
    def base_file_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/file/bot"

    # Who is there

    def new_bot(self, name: str = "Helper", username: str = "", **settings: Any) -> Bot:
        """Another bot, as BotFather would make it."""

        def work() -> Bot:
            number = self.world.new_user_id()
            user = username or f"helper_{number}_bot"
            token = settings.pop("token", "") or new_token(number)
            number = int(token.partition(":")[0])
            bot = Bot(number, name, user, is_bot=True, token=token, **settings)
            bot.updates = Updates(self.clock, self.settings, self.record.changed)
            bot.webhook = Webhook(
                bot.updates, self.clock, self.settings, lambda body: self._webhook_reply(bot, body)
            )
            self.world.bots[token] = bot
            self.world.users[number] = bot
            return bot

        return self.run(work)

    def revoke(self, bot: Bot | None = None) -> None:
        """BotFather takes a token back: nobody knows it, and nothing is pushed any more."""
        self._wait_for(self._revoke(bot or self.bot))

    def person(self, name: str = "Ada", username: str | None = None, **more: Any) -> Person:
        def work() -> Person:
            user = User(more.pop("id", None) or self.world.new_user_id(), name, username, **more)
            self.world.users[user.id] = user
            return Person(self, user)

        return self.run(work)

    def group(
        self,
        owner: Person,
        *members: Person | Bot,
        kind: str = "group",
        title: str = "A group",
        topics: bool = False,
    ) -> Group:
        """A group, or with ``kind="supergroup"`` a large one, which can have topics."""

        def work() -> Group:
            chat = self.world.new_chat("supergroup" if topics else kind, title, is_forum=topics)
            chat.members[owner.id] = (owner.user, "creator")
            return Group(self, owner, chat)

        group = self.run(work)
        for member in members:
            group.add(member)
        return group

    # For tests

    def run(self, work: Callable[[], T]) -> T:
        """Do something on the server's own loop, and wait for it."""
        if threading.current_thread() is self._thread:
            return work()

        async def now() -> T:
            return work()

        return self._wait_for(now())

    def inject(self, raw: dict[str, Any], bot: Bot | None = None, queue: int = 0) -> int:
        """An update of any shape: an unknown kind, unknown fields, or a broken one."""
        return self.run(lambda: (bot or self.bot).updates.inject(raw, queue))

    def wait(self, happened: Callable[[], T], timeout: float = CEILING_S) -> T:
        """What ``happened()`` gives once it is true."""
        value: T = self.record.wait(happened, timeout)
        return value

    async def until(self, happened: Callable[[], T], timeout: float = CEILING_S) -> T:  # noqa: ASYNC109
        """The same for tests that run on a loop."""
        return await asyncio.to_thread(self.record.wait, happened, timeout)

    # HTTP

    async def _open(self) -> None:
        app = web.Application(client_max_size=self.settings.upload_bytes + MIB)
        app.router.add_route("*", "/bot{token}/{method}", self._answer)
        app.router.add_get("/file/bot{token}/{path:.+}", self._download)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._listen()

    async def _listen(self) -> None:
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await self._site.start()
        self.port = self._runner.addresses[0][1]

    async def _silence(self) -> None:
        await self._site.stop()
        for bot in self.world.bots.values():
            bot.updates.cut()
        server = self._runner.server
        for connection in list(server.connections) if server else []:
            if connection.transport:
                _reset(connection.transport)

    async def _revoke(self, bot: Bot) -> None:
        self.world.bots.pop(bot.token, None)
        bot.updates.cut()
        await bot.webhook.close()

    async def _close(self) -> None:
        self.faults.clear()
        for bot in list(self.world.bots.values()):
            await self._revoke(bot)
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            bot = self._bot_of(request.match_info["token"])
            args = await read_args(request)
        except ApiError as error:
            return web.json_response(error.body(), status=error.code)
        try:
            status, body = await self._call(
                bot, request.match_info["method"], args, lambda: not _gone(request)
            )
        except (_Cut, ConnectionResetError):
            if request.transport:
                _reset(request.transport)
            return web.Response(status=500)
        if isinstance(body, str):
            return web.Response(status=status, text=body, content_type="text/html")
        headers = {}
        if "retry_after" in body.get("parameters", {}):
            headers["Retry-After"] = str(body["parameters"]["retry_after"])
        return web.json_response(body, status=status, headers=headers)

    def _bot_of(self, token: str) -> Bot:
        """Whose token it is: 401 for a wrong one, 404 for what is no token at all."""
        if token not in self.world.bots:
            raise ApiError(401 if TOKEN.fullmatch(token) else 404)
        return self.world.bots[token]

    async def _call(
        self, bot: Bot, given: str, args: Args, alive: Alive = lambda: True
    ) -> tuple[int, Any]:
        name, function = METHODS.get(given.lower(), (given, _no_such_method))
        files = {name: f"<{len(upload.data)} bytes>" for name, upload in args.uploads.items()}
        call = self.record.begin(name, bot.id, {**args.values, **files})
        try:
            if broken := await self._suffer(call, after=False):
                status, body = broken
            else:
                status, body = await self._effect(
                    function, Asked(self.world, bot, args, alive), call
                )
                if broken := await self._suffer(call, after=True):
                    status, body = broken
        except (_Cut, ConnectionResetError):
            self.record.end(call, None, "cut")
            raise
        described = body.get("description", "") if isinstance(body, dict) else body
        self.record.end(call, status, described)
        return status, body

    async def _effect(self, function: Any, asked: Asked, call: Call) -> tuple[int, dict[str, Any]]:
        try:
            self.flood.check(call.chat_id, is_message=counts_as_message(call.method))
            result = function(asked)
            if inspect.isawaitable(result):
                result = await result
        except ApiError as error:
            return error.code, error.body()
        body: dict[str, Any] = {"ok": True}
        if isinstance(result, Said):
            body["description"], result = result.description, result.result
        # A copy as of now: what is held up must not change on its way.
        body["result"] = call.result = json.loads(json.dumps(result))
        call.effect = True
        return 200, body

    async def _suffer(self, call: Call, *, after: bool) -> tuple[int, Any] | None:
        """Whatever is planned to go wrong with a call now."""
        fault: Fault | None = self.faults.take(call.method, call.chat_id, after=after)
        if fault is None:
            return None
        if fault.delay_s:
            await asyncio.sleep(fault.delay_s)
        if fault.hold:
            await fault.hold.stop_here()
        if fault.cut:
            raise _Cut
        return (fault.answer.status, fault.answer.body) if fault.answer else None

    async def _webhook_reply(self, bot: Bot, body: dict[str, Any]) -> None:
        """A call made as the answer to a push; nobody learns how it went."""
        method = str(body.pop("method"))
        with contextlib.suppress(_Cut, ConnectionResetError):
            await self._call(bot, method, Args(body))

    async def _download(self, request: web.Request) -> web.StreamResponse:
        call = self.record.begin("download", 0, {"path": request.match_info["path"]})
        stored = self.world.files.at(request.match_info["path"])
        if request.match_info["token"] not in self.world.bots or stored is None:
            self.record.end(call, 404)
            return web.json_response(ApiError(404).body(), status=404)
        if broken := await self._suffer(call, after=False):
            self.record.end(call, broken[0])
            return web.Response(status=broken[0])
        self.record.end(call, 200)
        return web.Response(body=stored.data, content_type="application/octet-stream")

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CEILING_S)


def _no_such_method(_asked: Asked) -> None:
    raise ApiError(404)


def _gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


def _reset(transport: asyncio.BaseTransport) -> None:
    """A reset, not a polite end: the other side cannot know how far it got."""
    line: socket.socket | None = transport.get_extra_info("socket")
    if line is not None:
        with contextlib.suppress(OSError):
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()
