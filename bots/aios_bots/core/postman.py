"""Brings calls to the app: in order within a place, at the app's pace, across restarts.

What must arrive is a row of the outbox (``delivery``). Previews and typing are not: they pass the
same gates behind everything else (``gatehouse``), and may be dropped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import msgspec

from aios_bots.core.adapter import Adapter, Content
from aios_bots.core.delivery import Delivery
from aios_bots.core.lanes import about
from aios_bots.core.model import Op, Outgoing, Place
from aios_bots.core.pacing import Rank, Rates
from aios_bots.core.store import BotStore

PARKED_KEPT = 20
"""So many of the newest calls wait for a chat that does not want us; the others are given up."""


class PostStatus(msgspec.Struct, frozen=True):
    """What is on its way out."""

    waiting: int = 0
    """Calls that the app has not got, without those of parked chats."""
    lag_s: float = 0.0
    """For how long the oldest of them has waited."""
    gates: dict[str, float] = {}
    """The chats that the app closed, and for how many seconds more."""
    parked: dict[str, str] = {}
    """The chats that do not want the bot, and why."""
    repeated: int = 0
    """Messages that may be there twice."""
    uncertain: int = 0
    """Messages that may not be there."""
    dead: int = 0
    """Calls that the app will never take."""
    away: bool = False
    """The app cannot be reached."""


class Postman:
    """The way out for one bot. Everything on one loop; ``clock`` gives seconds, never back."""

    def __init__(
        self,
        store: BotStore,
        adapter: Adapter,
        content: Content,
        clock: Callable[[], float] = time.monotonic,
        rates: Rates | None = None,
    ) -> None:
        self._store, self._outbox, self._adapter = store, store.outbox, adapter
        self._delivery = Delivery(store, adapter, content, clock, rates)
        self._gates = self._delivery.gates

    # What must arrive --------------------------------------------------------------------------

    async def put(
        self, calls: Sequence[Outgoing], *, shown: tuple[Place, str, int] | None = None
    ) -> None:
        """Keep these calls and bring them, in this order; done when they are safe.

        An edit comes after the send of its message, to the same place. ``shown``: with them that
        place has the events of that conversation up to that ``seq``.
        """
        calls = [self._at(out) for out in calls]
        if shown is not None:
            shown = (self._delivery.now_at(shown[0]), *shown[1:])
        await self._outbox.put(calls, shown=shown)
        for out in calls:
            self._delivery.lanes.touch(out.place, answers=out.op is Op.ANSWER)
        parked = self._delivery.parked
        for chat in {out.place.chat for out in calls} & parked.keys():
            await self._outbox.prune(chat, PARKED_KEPT, parked[chat])
        self._gates.soon()

    async def rewrite(self, key: str, out: Outgoing) -> bool:
        """A send that is not on its way yet says this instead. False: it is too late."""
        return await self._outbox.rewrite(key, self._at(out))

    async def put_out(self, chat: str, why: str) -> None:
        """That chat does not want the bot: what is for it waits."""
        await self._delivery.park(chat, why)

    async def let_in(self, chat: str) -> bool:
        """That chat wants the bot again: bring the newest of what waited; gives if it was shut."""
        if self._delivery.parked.pop(chat, None) is None:
            return False
        await self._store.park(chat, "")
        await self._outbox.prune(chat, PARKED_KEPT, "too old when the chat let us in again")
        self._delivery.touch_all(chat)
        return True

    def now_at(self, place: Place) -> Place:
        """The same place, if its chat has another id now."""
        return self._delivery.now_at(place)

    async def moved(self, old: str, new: str) -> None:
        """The app said that a chat has another id now."""
        await self._delivery.move(old, new)

    # What is shown for a moment ----------------------------------------------------------------

    def typing(self, place: Place) -> None:
        """Show there that something is being written, if that takes nothing else's turn."""
        place = self._delivery.now_at(place)
        if self._adapter.caps.typing and self._open(place.chat):
            out = Outgoing(key="", place=place, op=Op.TYPING)
            self._gates.enter(
                place.topic, place.chat, Rank.TYPING, lambda: self._delivery.small(out)
            )

    async def preview(self, out: Outgoing) -> bool:
        """Edit a message for a moment; done when that was done or dropped.

        False: a newer or the final one came, the chat is closed, the app said no, or it has not
        got the message yet.
        """
        out = self._at(out)
        if not out.target and out.target_key:
            target = self._outbox.fate(out.target_key).msg_id
            out = msgspec.structs.replace(out, target=target)
        chat, message = out.place.chat, about(out)
        if not out.target or not self._adapter.caps.edits or not self._open(chat):
            return False
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def end(*, done: bool = False) -> None:
            if not future.done():
                future.set_result(done)

        async def work() -> None:
            done = False
            try:
                done = await self._delivery.small(out)
            finally:
                end(done=done)

        if not self._gates.enter(message, chat, Rank.PREVIEW, work, dropped=end):
            return False
        try:
            return await future
        except asyncio.CancelledError:  # nobody waits for it any more
            self._gates.drop(message, chat, Rank.PREVIEW)
            raise

    def busy(self, chat: str) -> bool:
        """Whether a call to that chat would have to wait."""
        chat = self._delivery.now_at(Place("", chat)).chat
        return not self._open(chat) or self._gates.busy(chat)

    # Life --------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Bring everything, until cancelled. What was on its way before counts as uncertain."""
        self._outbox.recover()
        for chat, seconds in self._store.gates().items():
            self._gates.close(chat, seconds)
        for binding in self._store.bindings():
            if binding.parked:
                self._delivery.parked[binding.place.chat] = binding.parked
        self._gates.running, self._gates.closing = True, False
        self._delivery.touch_all()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self._gates.stop()
            self._delivery.lanes.clear()

    def retry(self) -> None:
        """There is a sign that the app can be reached: try at once what waits for that."""
        if not self._gates.reach.down:
            return
        self._gates.reach.hurry()
        self._delivery.release()
        self._gates.soon()

    async def drain(self, within_s: float) -> bool:
        """Wait until nothing is out and nothing more can go in that time; gives whether all went.

        For the end: what does not go then waits for the next ``run``.
        """
        await self._gates.drain(within_s)
        self._gates.closing = bool(waiting := self._outbox.open())
        return not waiting

    def status(self) -> PostStatus:
        parked = self._delivery.parked
        waiting = [one for chat, one in self._outbox.open().items() if chat not in parked]
        return PostStatus(
            waiting=sum(count for count, _ in waiting),
            lag_s=max((age for _, age in waiting), default=0.0),
            gates=self._gates.closed(),
            parked=dict(parked),
            away=self._gates.reach.down,
            **self._outbox.odd(),
        )

    def _open(self, chat: str) -> bool:
        return (
            self._gates.running
            and not self._gates.closing
            and not self._gates.reach.down
            and chat not in self._delivery.parked
        )

    def _at(self, out: Outgoing) -> Outgoing:
        place = self._delivery.now_at(out.place)
        return out if place is out.place else msgspec.structs.replace(out, place=place)
