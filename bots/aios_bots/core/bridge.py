"""A bridge between one bot of a chat app and a node: the parts put together.

::

    app ── adapter ── Intake ── Desk ── Voices ── node
                                 |                 |
    app ── adapter ── Postman ── Showing ──────────+

It runs on one loop. Everything it promised is in its store: it may be killed at any moment, and the
next one goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from aios_bots.core import leaving
from aios_bots.core.adapter import Adapter
from aios_bots.core.box import Box
from aios_bots.core.desk import GREETED, WRONG, Desk
from aios_bots.core.flood import HELLO_S, PEOPLE_MAX, Flood
from aios_bots.core.intake import Intake
from aios_bots.core.model import Attachment, Incoming, Kind
from aios_bots.core.pacing import Rates
from aios_bots.core.pairing import CODE_S, FAILURES_S, Offer, Pairing, Role
from aios_bots.core.people import Line, Person
from aios_bots.core.postman import Postman, PostStatus
from aios_bots.core.secret import described
from aios_bots.core.showing import Showing
from aios_bots.core.store import BotStore
from aios_bots.core.voices import Voices
from aios_nb.client import get_file
from aios_nb.errors import AiosError, Busy, ConnectionLost, NotRunning

log = logging.getLogger("aios_bots")

DRAIN_S = 5.0
FORGET_EVERY_S = 3600.0


class Code(msgspec.Struct, frozen=True):
    """A code for somebody, to be shown once."""

    code: str
    link: str
    expires_s: float
    role: Role
    conversation: str = ""


class BridgeStatus(msgspec.Struct, frozen=True):
    """How a bridge is doing."""

    account: str
    name: str
    state: str
    """``running``, or why it is not."""
    trouble: str
    """Why nothing comes in from the app, or goes to the node; empty: all is well."""
    waiting_in: int
    post: PostStatus
    aside: int
    """Updates that could not be dealt with."""
    people: int
    places: int
    again: int = 0
    """Updates that came a second time, and did nothing."""
    notes: tuple[str, ...] = ()


class Bridge:
    """One bot and one node. ``run`` does the work until it is cancelled."""

    def __init__(
        self,
        adapter: Adapter,
        store: BotStore,
        voices: Voices,
        box: Box,
        *,
        rates: Rates | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.adapter, self.store, self._voices, self._box = adapter, store, voices, box
        self._pairing = Pairing(clock, secrets.token_bytes)
        for line in store.people.audit(500, WRONG, clock() - FAILURES_S):
            self._pairing.failed(adapter.account, line.who, line.at / 1000)
        flood = Flood(clock)
        for line in store.people.audit(PEOPLE_MAX, GREETED, clock() - HELLO_S):
            flood.greeted(line.who, line.at / 1000)
        self.postman = Postman(store, adapter, self._content, rates=rates)
        self.showing = Showing(store, voices, self.postman, adapter)
        self.desk = Desk(
            store,
            voices,
            self.postman,
            self.showing,
            adapter,
            self._pairing,
            flood,
            clock,
        )
        self.intake = Intake(store, adapter, self._handle)
        self._state = "not started"
        self._owners: tuple[str, ...] = ()
        self.up = asyncio.Event()
        """Set when it takes updates, or tries to."""
        self.asked_to_stop = asyncio.Event()
        """Set when another program of the owner wants it to end."""

    async def run(self) -> None:
        """Work until cancelled; raises ``AiosError`` for what will not pass by itself."""
        self._state = "starting"
        try:
            await self.adapter.open()
            await self.listen()
            async with asyncio.TaskGroup() as all_of_it:
                for work in (
                    self.postman.run(),
                    self.showing.run(),
                    self._take_in(),
                    self._keep_tidy(),
                ):
                    all_of_it.create_task(work)
        except* AiosError as errors:
            first = next(iter(_flat(errors)))
            self._state = str(first)
            raise first from None
        except* Exception as errors:
            self._state = "; ".join(described(error) for error in _flat(errors))
            raise
        finally:
            if self._state == "running":
                self._state = "stopped"
            await self.intake.close()

    async def _take_in(self) -> None:
        self._state = "running"
        self.up.set()
        waiting = await self.intake.recover()
        if waiting:
            log.info("going on with %d updates", waiting)
        await self._show_commands()
        await self.adapter.intake(self._take)

    async def _take(self, batch: Sequence[tuple[int, str]]) -> None:
        self.postman.retry()  # who hears the app can speak to it
        await self.intake.take(batch)

    async def stop(self) -> None:
        """Let what is on its way out go, for a moment; then the caller cancels ``run``."""
        with contextlib.suppress(TimeoutError):
            await self.postman.drain(DRAIN_S)

    async def _handle(self, incoming: Incoming) -> None:
        if not await self.listen():
            raise NotRunning("somebody is to be taken out first, and the node is away")
        await self.desk.handle(incoming)
        if incoming.kind in {Kind.COMMAND, Kind.BUTTON}:  # by which people come and go
            await self._show_commands()

    async def _show_commands(self) -> None:
        """Owners see their commands in the menu."""
        owners = tuple(one.user_id for one in self.people() if one.role is Role.OWNER)
        if owners != self._owners:
            self._owners = owners
            await self.adapter.set_commands(owners)

    async def listen(self) -> bool:
        """Do what other programs of the owner left for us; gives whether all of it is done.

        Without the node somebody is put out, and not yet taken out of conversations.
        """
        all_done = True
        for path, word in self._box.news():
            if word.stop:
                self.asked_to_stop.set()
            if word.offer is not None:
                await self.store.people.keep(word.offer)
            try:
                if word.revoke:
                    await self.revoke(word.revoke)
            except (NotRunning, ConnectionLost, Busy):
                all_done = False
                continue
            self._box.done(path)
        return all_done

    async def _keep_tidy(self) -> None:
        while True:
            await asyncio.sleep(FORGET_EVERY_S)
            await self.store.inbox.forget()
            await self.store.outbox.forget()

    async def _content(self, file: Attachment) -> bytes:
        return await get_file(self._voices.owner, {"sha256": file.ref, "size": file.size})

    # What the owner does ----------------------------------------------------------------------

    async def pair(
        self, role: Role = Role.MEMBER, agents: Iterable[str] = (), conversation: str = ""
    ) -> Code:
        """A code that lets somebody in."""
        code, offer = self._pairing.offer(
            self.adapter.account, role, agents=agents, conversation=conversation
        )
        await self.store.people.keep(offer)
        return made(self.adapter, code, offer)

    async def revoke(self, user_id: str) -> bool:
        """Put somebody out, of the conversations they are in too; gives whether they were in.

        Raises when the node is away: they are a stranger by then, the rest is to be done again.
        """
        gone = await self.store.people.revoke(user_id)
        if gone:
            await self.store.people.note(user_id, "put out")
        who = f"{self.adapter.platform}:{self.adapter.account}:{user_id}"
        await leaving.leave_all(self._voices.owner, who)
        return gone

    def people(self) -> list[Person]:
        return self.store.people.all()

    def tried(self, limit: int = 50) -> list[Line]:
        """What people did or tried, the newest first."""
        return self.store.people.audit(limit)

    def status(self) -> BridgeStatus:
        trouble = self.adapter.trouble
        return BridgeStatus(
            self.adapter.account,
            self.adapter.name,
            self._state,
            trouble.what if trouble is not None else self.intake.away,
            self.intake.held,
            self.postman.status(),
            len(self.store.inbox.aside()),
            len(self.people()),
            len(self.store.bindings()),
            self.intake.again,
            tuple(self.adapter.notes),
        )


def made(adapter: Adapter, code: str, offer: Offer) -> Code:
    """A fresh code as its owner sees it."""
    return Code(code, adapter.link(code), CODE_S, offer.role, offer.conversation)


def _flat(errors: BaseExceptionGroup[BaseException]) -> Iterable[BaseException]:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _flat(error)
        else:
            yield error
