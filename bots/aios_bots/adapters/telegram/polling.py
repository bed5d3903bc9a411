"""Getting updates by asking for them: each batch is confirmed once it is safe here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec

from aios_bots.adapters.telegram.answers import Lost, Refused
from aios_bots.core.adapter import Take
from aios_bots.core.secret import described
from aios_nb.errors import UsageError

POLL_S = 25
"""How long the server holds a question to which there is no news yet."""
ANSWER_S = 10.0
BATCH = 100
PAUSE_S, PAUSE_MAX_S = 0.5, 15.0
"""Between tries when something is wrong: at first, and at most."""
AT_ONCE_S, AT_ONCE_MAX_S = 0.02, 0.3
"""Between questions to a server that does not hold them."""
HELD_S = 0.25
SILENCE_S = 6 * 86_400
"""After a week without news a server may begin with other numbers, lower ones too."""
BASIC = ("message", "edited_message", "callback_query", "inline_query", "my_chat_member")
KINDS = (*BASIC, "message_reaction", "stopped_message_generation")
"""What the bridge wants to hear of; some are told only to those who name them."""

Ask = Callable[..., Awaitable[bytes]]
Clock = Callable[[], float]
Trouble = Callable[[str], None]
"""Says why nothing comes in; empty: it does again."""


def wrong_token() -> UsageError:
    return UsageError(
        "Telegram does not know this bot token", hint="BotFather shows the right one: /mybots"
    )


def in_words(failure: Lost | Refused) -> str:
    """Why nothing comes in, for people."""
    if isinstance(failure, Lost):
        return f"no connection to Telegram: {failure}"
    if failure.pause_s:
        return f"Telegram wants a pause of {failure.pause_s:g} s"
    if failure.code == 409:  # noqa: PLR2004 - HTTP's own
        if failure.says("webhook"):
            return "this bot has a webhook, so it cannot be asked for news; trying to remove it"
        return "another program gets the messages of this bot (409); stop it there"
    return f"Telegram answers {failure}"


class Polling:
    """Asks for updates until cancelled."""

    def __init__(self, ask: Ask, trouble: Trouble, clock: Clock = time.time) -> None:
        """``clock``: unix seconds, which go on while the machine sleeps."""
        self._ask, self._trouble, self._clock = ask, trouble, clock
        self._offset = 0
        self._kinds: tuple[str, ...] = KINDS
        self._hook_gone = False
        self._pause, self._idle = PAUSE_S, AT_ONCE_S

    async def run(self, take: Take) -> None:
        loop = asyncio.get_running_loop()
        last_news = self._clock()
        while True:
            if self._clock() - last_news > SILENCE_S:
                self._offset, last_news = 0, self._clock()
            began = loop.time()
            batch = await self._kept(take)
            if batch is None:
                continue
            self._trouble("")
            self._pause = PAUSE_S
            newest = max((number for number, _ in batch), default=-1)
            if newest >= self._offset:
                self._idle = AT_ONCE_S
            elif loop.time() - began < HELD_S:  # with nothing, or with what was confirmed
                await asyncio.sleep(self._idle)
                self._idle = min(2 * self._idle, AT_ONCE_MAX_S)
            if batch:
                self._offset, last_news = newest + 1, self._clock()

    async def _kept(self, take: Take) -> list[tuple[int, str]] | None:
        """The next batch, safe here. None: something was wrong, and it was waited for."""
        try:
            if not self._hook_gone:
                await self._drop_webhook()
            batch = await self._batch()
            if batch:
                await take(batch)
        except (Lost, Refused) as failure:
            self._trouble(in_words(failure))
            if not await self._mended(failure):
                await self._wait(failure.pause_s if isinstance(failure, Refused) else 0.0)
        except Exception as error:  # noqa: BLE001 - not kept, so not confirmed: it comes again
            self._trouble(f"updates cannot be kept: {described(error)}")
            await self._wait()
        else:
            return batch
        return None

    async def _wait(self, least_s: float = 0.0) -> None:
        await asyncio.sleep(max(least_s, self._pause))
        self._pause = min(2 * self._pause, PAUSE_MAX_S)

    async def _batch(self) -> list[tuple[int, str]]:
        params: dict[str, Any] = {"timeout": POLL_S, "limit": BATCH}
        if self._offset:
            params["offset"] = self._offset
        if self._kinds:
            params["allowed_updates"] = list(self._kinds)
        answer = await self._ask("getUpdates", params, read_s=POLL_S + ANSWER_S)
        try:
            updates = msgspec.json.decode(answer, type=list[msgspec.Raw])
        except msgspec.MsgspecError:
            raise Refused(0, "something that is no list of updates") from None
        batch = [numbered for update in updates if (numbered := as_numbered(bytes(update)))]
        if updates and not batch:
            raise Refused(0, "updates without numbers")
        return batch

    async def _drop_webhook(self) -> None:
        """Where there is a webhook, asking is refused. Not every server knows the call."""
        try:
            await self._ask("deleteWebhook", {"drop_pending_updates": False}, read_s=ANSWER_S)
        except Lost as lost:
            if not lost.sent:
                raise
        except Refused:
            pass  # then there is none; else asking says so
        self._hook_gone = True

    async def _mended(self, failure: Lost | Refused) -> bool:
        """Whether something was changed so that it may work now. Raises for a wrong token."""
        if isinstance(failure, Lost):
            return False
        if failure.code in {401, 404} and await is_token_wrong(self._ask):
            raise wrong_token() from None
        if failure.code == 409 and failure.says("webhook"):  # noqa: PLR2004 - HTTP's own
            self._hook_gone = False  # once more, after a pause
        if failure.code == 400 and self._kinds:  # noqa: PLR2004 - HTTP's own
            # A server that refuses kinds it does not know: fewer, then whatever it has.
            self._kinds = BASIC if self._kinds is KINDS else ()
            return True
        return False


async def is_token_wrong(ask: Ask) -> bool:
    """Whether the server says so again: it may be a proxy that has lost its way."""
    try:
        await ask("getMe")
    except Refused as refused:
        return refused.code in {401, 404}
    except Lost:
        pass
    return False


def as_numbered(update: bytes) -> tuple[int, str] | None:
    """An update's number and its text; None for one that has no number, so cannot be kept."""
    try:
        found = msgspec.json.decode(update, type=_Numbered)
    except msgspec.MsgspecError:
        return None
    return found.update_id, update.decode("utf-8", "replace")


class _Numbered(msgspec.Struct):
    update_id: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
    """One that a database can keep."""
