"""Webhooks: updates pushed to the bot's URL with its secret, again and again until taken."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.telegram.botapi.settings import WEBHOOK_CONNECTIONS, Settings, Times
from tests.telegram.botapi.updates import Update, Updates

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"
Reply = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass
class Target:
    """What setWebhook was told."""

    url: str = ""
    secret: str = field(default="", repr=False)
    ip_address: str = ""
    max_connections: int = WEBHOOK_CONNECTIONS
    certificate: bool = False


class Webhook:
    """The push side of one bot's updates; in order within a chat, side by side between chats."""

    def __init__(self, updates: Updates, times: Times, settings: Settings, reply: Reply) -> None:
        self.target = Target()
        self.deliveries: list[tuple[int, int | str]] = []
        """Update id and status of each attempt, or what went wrong with the line."""
        self._updates = updates
        self._times = times
        self._settings = settings
        self._reply = reply
        self._error: tuple[int, str] | None = None
        self._task: asyncio.Task[None] | None = None
        self._posts: set[asyncio.Task[None]] = set()

    def info(self) -> dict[str, Any]:
        """The answer to getWebhookInfo."""
        self._updates.drop_old()
        body: dict[str, Any] = {
            "url": self.target.url,
            "has_custom_certificate": self.target.certificate,
            "pending_update_count": len(self._updates.pending),
        }
        if self.target.url:
            body["max_connections"] = self.target.max_connections
            if self.target.ip_address:
                body["ip_address"] = self.target.ip_address
            if self._error:
                body["last_error_date"], body["last_error_message"] = self._error
        if self._updates.allowed:
            body["allowed_updates"] = sorted(self._updates.allowed)
        return body

    def set(self, target: Target) -> None:
        """Push to there from now on; an empty URL means nowhere."""
        self.target, self._error = target, None
        self._updates.webhook_active = bool(target.url)
        for update in self._updates.pending:
            update.not_before = 0.0
        if target.url and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        self._updates.arrived.set()

    async def close(self) -> None:
        tasks = [*self._posts, *([self._task] if self._task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        timeout = aiohttp.ClientTimeout(total=self._settings.webhook_timeout_s)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                self._updates.arrived.clear()
                if self.target.url:
                    for update in self._ready():
                        update.busy = True
                        post = asyncio.create_task(self._post(session, update))
                        self._posts.add(post)
                        post.add_done_callback(self._posts.discard)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):
                        await self._updates.arrived.wait()

    def _ready(self) -> list[Update]:
        """The first waiting update of each chat, as far as there are connections."""
        self._updates.drop_old()
        free = self.target.max_connections - len(self._posts)
        now, seen, ready = self._times.now(), set(), []
        for update in self._updates.pending:
            if update.queue not in seen and not update.busy and update.not_before <= now:
                ready.append(update)
            seen.add(update.queue)
        return ready[: max(free, 0)]

    def _pause(self) -> float:
        """Seconds until the next one may be tried again."""
        now = self._times.now()
        waits = [u.not_before - now for u in self._updates.pending if u.not_before > now]
        return min([1.0, *waits])

    async def _post(self, session: aiohttp.ClientSession, update: Update) -> None:
        target = self.target
        headers = {SECRET_HEADER: target.secret} if target.secret else {}
        taken, answer, wait = False, None, 0.0
        try:
            async with session.post(target.url, json=update.body, headers=headers) as response:
                status = response.status
                self.deliveries.append((update.id, status))
                taken = 200 <= status < 300
                if taken:
                    answer = await _answer(response)
                else:
                    self._fail(f"Wrong response from the webhook: {status} {response.reason}")
                    with contextlib.suppress(ValueError):
                        wait = float(response.headers.get("Retry-After", "0"))
        except TimeoutError:
            self.deliveries.append((update.id, "timeout"))
            self._fail("Read timeout expired")
        except (aiohttp.ClientError, OSError) as error:
            self.deliveries.append((update.id, type(error).__name__))
            refused = "refused" in str(error).lower() or "connect call failed" in str(error).lower()
            self._fail("Connection refused" if refused else "Connection closed")
        update.busy = False
        if taken:
            self._updates.done(update)
        else:
            grown = self._settings.webhook_retry_s * 2 ** min(update.tries, 10)
            update.tries += 1
            pause = min(max(grown, wait), self._settings.webhook_retry_most_s)
            update.not_before = self._times.now() + pause
        self._updates.arrived.set()
        if answer:
            await self._reply(answer)

    def _fail(self, why: str) -> None:
        self._error = (self._times.date(), why)
        self._updates.changed()


async def _answer(response: aiohttp.ClientResponse) -> dict[str, Any] | None:
    """A call that the bot made by answering the push, if it did."""
    if response.content_type != "application/json":
        return None
    with contextlib.suppress(ValueError):
        body = await response.json()
        if isinstance(body, dict) and body.get("method"):
            return body
    return None
