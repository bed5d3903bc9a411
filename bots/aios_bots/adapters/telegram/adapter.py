"""A bot on Telegram, or on any server that speaks its Bot API."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec

from aios_bots.adapters.telegram import reading
from aios_bots.adapters.telegram.abilities import Abilities
from aios_bots.adapters.telegram.answers import Lost, Refused
from aios_bots.adapters.telegram.calling import Calls
from aios_bots.adapters.telegram.menu import set_menu
from aios_bots.adapters.telegram.polling import (
    PAUSE_MAX_S,
    PAUSE_S,
    Polling,
    in_words,
    wrong_token,
)
from aios_bots.adapters.telegram.webhook import Pushes, Webhook
from aios_bots.core.adapter import Caps, Content, NotTaken, Take, Trouble
from aios_bots.core.model import Attachment, Incoming, Outgoing
from aios_bots.core.secret import Secret, guard_logs
from aios_nb.errors import UsageError
from aios_nb.richtext import one_line

if TYPE_CHECKING:
    from aios_bots.adapters.telegram.line import Line

API_URL = "https://api.telegram.org/bot"
PRIVACY = (
    "privacy mode is on: in groups the bot sees commands, replies to it and mentions"
    " (BotFather: /setprivacy; then add the bot to the group again)"
)


class Telegram:
    """One bot, by polling, or with ``webhook`` by pushes.

    ``api_url`` is what the token is put behind, as for python-telegram-bot: for a server of one's
    own such as ``http://127.0.0.1:8081/bot``.
    """

    platform = reading.PLATFORM

    def __init__(
        self,
        token: Secret,
        *,
        api_url: str = "",
        webhook: Webhook | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._token, self._clock = token, clock
        self._api_url, self._file_url = _addresses(api_url)
        self._webhook = webhook.checked() if webhook is not None else None
        self._reader = reading.Reader(token.account, clock)
        self._abilities = Abilities(clock)
        self._line: Line | None = None
        self._calls: Calls | None = None
        self._pushes: Pushes | None = None
        self._me: dict[str, Any] = {}
        self._trouble: Trouble | None = None
        self._owners: tuple[str, ...] = ()
        self._menu: asyncio.Task[None] | None = None
        self._unguard: Callable[[], None] = lambda: None

    def __repr__(self) -> str:
        return f"<Telegram bot {self.account} {self.name}>"

    # What it is

    @property
    def account(self) -> str:
        return self._token.account

    @property
    def address(self) -> str:
        return f"{self._api_url} {self._webhook or 'polling'}"

    @property
    def name(self) -> str:
        """Its user name, by which it is mentioned; else what it is called."""
        return self._username or one_line(str(self._me.get("first_name") or ""), 64)

    @property
    def caps(self) -> Caps:
        return self._abilities.caps

    @property
    def trouble(self) -> Trouble | None:
        return self._trouble

    @property
    def notes(self) -> Sequence[str]:
        notes = self._abilities.lines
        if self._me.get("can_read_all_group_messages") is False:
            notes.append(PRIVACY)
        if self._pushes is not None and self._pushes.refused:
            notes.append(f"{self._pushes.refused} pushes without the webhook's secret were refused")
        if _is_open(self._api_url):
            notes.append("the Bot API server is reached without TLS: the token can be read")
        return notes

    @property
    def webhook_url(self) -> str:
        """Where the app pushes to; empty without a webhook."""
        return self._pushes.url if self._pushes is not None else ""

    @property
    def _username(self) -> str:
        name = self._me.get("username")
        return name if isinstance(name, str) and name.isascii() else ""

    def is_group(self, chat: str) -> bool:
        """Groups and channels have negative numbers."""
        return chat.startswith("-")

    def link(self, code: str) -> str:
        return f"https://t.me/{self._username}?start={quote(code)}" if self._username else ""

    # Life

    async def open(self) -> None:
        """Say hello. Raises ``UsageError`` for a token that the server does not know."""
        if self._line is None:
            self._unguard = guard_logs()
            self._line = _new_line(self._token, self._api_url, self._file_url)
            self._calls = Calls(self._line, self._abilities)
            await self._line.open()
        try:
            await self._hello()
        except (Lost, Refused) as failure:
            self._troubled(in_words(failure))

    async def close(self) -> None:
        """Hang up: what waits for an answer ends at once."""
        line, self._line, self._calls = self._line, None, None
        if self._menu is not None:
            self._menu.cancel()
            await asyncio.wait([self._menu])
            self._menu = None
        if line is not None:
            await line.shut()
        self._unguard()
        self._unguard = lambda: None

    async def intake(self, take: Take) -> None:
        """Hand over updates until cancelled, or until ``close``. Raises for a revoked token."""
        await self._until_known()
        self._show_menu()
        if self._webhook is not None:
            self._pushes = Pushes(self._webhook, self._ask, self._troubled)
            await self._pushes.run(take)
        else:
            await Polling(self._ask, self._troubled, self._clock).run(take)

    async def _until_known(self) -> None:
        pause = PAUSE_S
        while not self._me:
            try:
                await self._hello()
            except (Lost, Refused) as failure:
                self._troubled(in_words(failure))
                await asyncio.sleep(max(pause, getattr(failure, "pause_s", 0.0)))
                pause = min(2 * pause, PAUSE_MAX_S)

    async def _hello(self) -> None:
        try:
            me = msgspec.json.decode(await self._ask("getMe"))
        except Refused as refused:
            if refused.code in {401, 404}:
                raise wrong_token() from None
            raise
        self._me = me if isinstance(me, dict) and me else {"id": int(self.account)}
        self._reader.know(self._me.get("id"), self._username)
        self._troubled("")

    async def set_commands(self, owners: Sequence[str] = ()) -> None:
        """Show the menu of commands, in the owners' chats with theirs, from ``intake`` on."""
        gone = [one for one in self._owners if one not in owners]
        self._owners = tuple(owners)
        if self._menu is not None:
            self._show_menu(gone)

    def _show_menu(self, gone: Sequence[str] = ()) -> None:
        if self._menu is not None:
            self._menu.cancel()
        if self._calls is not None:
            work = set_menu(self._calls.ask, self._owners, gone)
            self._menu = asyncio.get_running_loop().create_task(work)

    # Updates and calls

    def read(self, raw: str) -> Incoming:
        return self._reader.read(raw)

    async def call(self, out: Outgoing, content: Content) -> str:
        try:
            return await self._open_calls.make(out, content)
        except NotTaken:
            if self._pushes is not None:
                self._pushes.look.set()
            raise

    async def fetch(self, file: Attachment) -> bytes:
        return await self._open_calls.fetch(file)

    @property
    def _open_calls(self) -> Calls:
        if self._calls is None:
            raise NotTaken("the bot is closed")
        return self._calls

    async def _ask(self, method: str, params: dict[str, Any] | None = None, **how: Any) -> bytes:
        if self._line is None:
            raise asyncio.CancelledError  # closed meanwhile: whoever asks ends too
        return await self._line.ask(method, params, **how)

    def _troubled(self, what: str) -> None:
        if not what:
            self._trouble = None
        elif self._trouble is None or self._trouble.what != what:
            self._trouble = Trouble(what, self._trouble.since if self._trouble else self._clock())


def _new_line(token: Secret, api_url: str, file_url: str) -> Line:
    try:
        from aios_bots.adapters.telegram.line import Line
    except ImportError as error:
        if error.name != "telegram":
            raise
        raise UsageError(
            "python-telegram-bot is not installed", hint="pip install 'aios-nb[telegram]'"
        ) from None
    return Line(token, api_url, file_url)


def _addresses(api_url: str) -> tuple[str, str]:
    """What the token is put behind, for calls and for files."""
    url = (api_url or API_URL).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError("that is no address of a Bot API server", hint=f"as {API_URL}")
    if not parts.path:
        url += "/bot"
    front, _, last = url.rpartition("/")
    return url, f"{front}/file/{last}"


def _is_open(url: str) -> bool:
    """Whether the token goes over the net for everybody to read."""
    parts = urlsplit(url)
    if parts.scheme == "https" or parts.hostname == "localhost":
        return False
    try:
        return not ipaddress.ip_address(parts.hostname or "").is_private
    except ValueError:
        return True
