"""Getting updates by being told: an HTTP server for the app, behind a proxy that speaks TLS.

Whoever can reach it could make up updates, so each push must carry the secret; and it listens on
loopback unless it is told otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from aios_bots.adapters.telegram.answers import Lost, Refused
from aios_bots.adapters.telegram.polling import (
    ANSWER_S,
    BASIC,
    KINDS,
    PAUSE_MAX_S,
    PAUSE_S,
    Ask,
    Trouble,
    as_numbered,
    in_words,
    is_token_wrong,
    wrong_token,
)
from aios_bots.core.adapter import Take
from aios_bots.core.secret import described
from aios_nb.errors import UsageError

HEADER = "X-Telegram-Bot-Api-Secret-Token"
BODY_MAX_BYTES = 1 << 20
SECRET_MIN_CHARS = 32
CHECK_S = 60.0
"""Between looks at whether the app still knows where to push."""
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")
_PATH = "/telegram"


class Webhook(msgspec.Struct, frozen=True):
    """Where the app finds us. ``url`` is its side of the proxy; empty for a server on loopback."""

    url: str = ""
    port: int = 0
    """Zero: any that is free."""
    host: str = "127.0.0.1"
    secret: str = ""
    """Of 32 characters or more; empty: a new one at each start."""
    allow_insecure_loopback: bool = False
    """Take pushes without a secret, on loopback only: for tests by hand."""

    def __repr__(self) -> str:
        return f"Webhook(url={self.url!r}, host={self.host!r}, port={self.port})"

    def checked(self) -> Webhook:
        """With a secret. Raises ``UsageError`` for what cannot be meant."""
        if self.secret and (
            len(self.secret) < SECRET_MIN_CHARS or _SECRET.fullmatch(self.secret) is None
        ):
            raise UsageError(
                "that is no secret for a webhook",
                hint=f"{SECRET_MIN_CHARS} to 256 of A-Z a-z 0-9 _ -, or leave it out",
            )
        if self.allow_insecure_loopback and not is_loopback(self.host):
            raise UsageError("without a secret a webhook listens on 127.0.0.1 only")
        if self.url and urlsplit(self.url).scheme not in {"http", "https"}:
            raise UsageError("the address of a webhook begins with https://")
        secret = self.secret or secrets.token_urlsafe(SECRET_MIN_CHARS)
        return msgspec.structs.replace(self, secret=secret)


def is_loopback(host: str) -> bool:
    """Whether only this machine is reached by it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Pushes:
    """Takes pushes until cancelled, and keeps the app told where they go."""

    def __init__(self, hook: Webhook, ask: Ask, trouble: Trouble) -> None:
        self._hook = hook.checked()
        self._ask, self._trouble = ask, trouble
        self._kinds: tuple[str, ...] = KINDS
        self.refused = 0
        """Pushes without the secret."""
        self.url = hook.url
        self.look = asyncio.Event()
        """Set it when something seems wrong: then it is looked at now."""

    async def run(self, take: Take) -> None:
        app = web.Application(client_max_size=BODY_MAX_BYTES)
        app.router.add_post(urlsplit(self._hook.url).path or _PATH, self._door(take))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await self._listen(runner)
            await self._stay_known()
        finally:
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> None:
        try:
            await web.TCPSite(runner, self._hook.host, self._hook.port).start()
        except OSError as error:
            raise UsageError(
                f"cannot listen on {self._hook.host}:{self._hook.port}: {error.strerror}",
                hint="choose another port for the webhook",
            ) from None
        host, port = runner.addresses[0][:2]
        self.url = self._hook.url or f"http://{host}:{port}{_PATH}"

    def _door(self, take: Take) -> Callable[[web.Request], Any]:
        async def door(request: web.Request) -> web.Response:
            if not self._is_known(request):
                self.refused += 1
                return web.Response(status=403)
            numbered = as_numbered(await request.read())
            if numbered is None:
                return web.Response(status=400)
            try:
                await take([numbered])
            except Exception as error:  # noqa: BLE001 - not kept: the app pushes it again
                self._trouble(f"updates cannot be kept: {described(error)}")
                return web.Response(status=500)
            return web.Response()

        return door

    def _is_known(self, request: web.Request) -> bool:
        given = request.headers.get(HEADER, "")
        if not given and self._hook.allow_insecure_loopback:
            return True
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._hook.secret.encode())

    # The app's side

    async def _stay_known(self) -> None:
        pause = PAUSE_S
        known = False
        while True:
            try:
                if not known:
                    await self._set()
                    known, pause = True, PAUSE_S
                    self._trouble("")
                await self._wait(CHECK_S)
                known = await self._is_set()
            except (Lost, Refused) as failure:
                known = False
                await self._raise_if_final(failure)
                self._trouble(in_words(failure))
                await asyncio.sleep(max(pause, getattr(failure, "pause_s", 0.0)))
                pause = min(2 * pause, PAUSE_MAX_S)

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.look.wait()
        self.look.clear()

    async def _set(self) -> None:
        """Tell the app where we are. What waits there stays: it is pushed now."""
        params: dict[str, Any] = {"url": self.url, "secret_token": self._hook.secret}
        while True:
            kinds = {"allowed_updates": list(self._kinds)} if self._kinds else {}
            try:
                await self._ask("setWebhook", params | kinds)
            except Refused as refused:
                if refused.code != 400 or not self._kinds or refused.says("webhook", "url"):  # noqa: PLR2004
                    raise
                self._kinds = BASIC if self._kinds is KINDS else ()
            else:
                return

    async def _is_set(self) -> bool:
        """Whether the app still pushes to us; what it cannot say is taken for yes."""
        await self._ask("getMe")
        try:
            answer = await self._ask("getWebhookInfo", read_s=ANSWER_S)
            info = msgspec.json.decode(answer)
        except (Lost, Refused, msgspec.MsgspecError):
            return True
        if not isinstance(info, dict) or not isinstance(info.get("url"), str):
            return True
        if info["url"] != self.url:
            self._trouble("another program has changed this bot's webhook; setting it again")
            return False
        waiting, said = info.get("pending_update_count"), info.get("last_error_message")
        if waiting and isinstance(said, str) and said:
            self._trouble(f"Telegram cannot push to us: {described(Exception(said[:200]))}")
        else:
            self._trouble("")
        return True

    async def _raise_if_final(self, failure: Lost | Refused) -> None:
        if not isinstance(failure, Refused) or failure.code not in {400, 401, 404}:
            return
        if failure.code in {401, 404} and await is_token_wrong(self._ask):
            raise wrong_token() from None
        raise UsageError(
            f"Telegram does not take this webhook: {failure}", hint="or let the bot ask for news"
        ) from None
