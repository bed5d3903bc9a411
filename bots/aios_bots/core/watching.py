"""Places that watch a conversation: told now and then, of all that was said since.

How far a place is moves only with what it is told. What was gathered for it is in memory; after a
crash it is read from the log again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from aios_bots.core.adapter import Adapter
from aios_bots.core.bringing import Bringing
from aios_bots.core.buttons import Action, Draft, new_id
from aios_bots.core.collapsing import Bundle, Crowd, Entry
from aios_bots.core.letters import BUNDLE_PART, Letter
from aios_bots.core.model import Button, Outgoing, Place, Rich
from aios_bots.core.postman import Postman
from aios_bots.core.secret import described
from aios_bots.core.spans import units
from aios_bots.core.store import Binding, BotStore
from aios_bots.core.wording import ENDED_BADLY, Row, Wording, joined, note
from aios_nb.errors import AiosError

log = logging.getLogger("aios_bots.watching")

AGAIN_S = 5.0
SHOW = "show"
"""What the button under a summary does: bring the events of ``conversation`` behind ``number``, up
to the one in ``words``."""


class Watching:
    """What the watching places of one bot were not told yet."""

    def __init__(
        self,
        store: BotStore,
        postman: Postman,
        adapter: Adapter,
        wording: Wording,
        bringing: Bringing,
        clock: Callable[[], float],
    ) -> None:
        self._store, self._postman, self._adapter = store, postman, adapter
        self._wording, self._bringing, self._clock = wording, bringing, clock
        self._locks: dict[Place, asyncio.Lock] = {}
        self._crowds: dict[Place, tuple[str, Crowd]] = {}
        """By place: which conversation, and what happened there."""
        self._tellers: dict[Place, asyncio.Task[None]] = {}

    def lock(self, place: Place) -> asyncio.Lock:
        """Held by whoever brings something to that place."""
        return self._locks.setdefault(place, asyncio.Lock())

    def at(self, binding: Binding) -> int:
        """How far that place is, with what is gathered for it."""
        crowd = self._crowd(binding)
        return binding.last_seq if crowd is None else max(crowd.upto, binding.last_seq)

    def _crowd(self, binding: Binding) -> Crowd | None:
        conversation, crowd = self._crowds.get(binding.place, ("", None))
        if crowd is not None and (conversation, True) != (binding.conversation, binding.is_watch):
            del self._crowds[binding.place]  # it shows something else now, or all of it
            return None
        return crowd

    async def close(self) -> None:
        for task in self._tellers.values():
            task.cancel()
        await asyncio.gather(*self._tellers.values(), return_exceptions=True)
        self._tellers.clear()
        self._crowds.clear()

    def gather(self, binding: Binding, row: Row) -> None:
        """Something happened in what that place watches. Its lock is held."""
        place = binding.place
        crowd = self._crowd(binding)
        if crowd is None:
            crowd = Crowd(binding.last_seq)
            self._crowds[place] = (binding.conversation, crowd)
        if row["kind"] == "edit":
            crowd.change(str(row["ref"]), self._wording.edited(row, str(row["text"])).brief())
        crowd.add(row["seq"], self._entry(place, row), self._clock())
        teller = self._tellers.get(place)
        if teller is None or teller.done():
            self._tellers[place] = asyncio.get_running_loop().create_task(self._tell_on(place))

    def _entry(self, place: Place, row: Row) -> Entry | None:
        kind = row["kind"]
        looks: Rich | None = None
        if kind == "message":
            if not self._bringing.came_from(place, row["conversation"], row["message_id"]):
                looks = self._wording.said(row).brief()
        elif kind == "status" and row["status"] == "input_required":
            looks = self._wording.question(row).brief()
        elif kind == "status" and row["status"] in ENDED_BADLY:
            looks = Rich(self._wording.ended(row))
        elif kind in {"join", "leave"} and row["ref"] != f"{self._bringing.prefix}{place.chat}":
            looks = note(self._wording.member(row))
        if looks is None:
            return None
        who = self._wording.whose(row)
        return Entry(row["seq"], row["message_id"], who, looks, said=kind == "message")

    async def _tell_on(self, place: Place) -> None:
        """Tell a place what was gathered for it, each time it may be told, until all is told."""
        while place in self._crowds:
            wait = self._crowds[place][1].wait(self._clock())
            if wait is None:
                return
            if wait > 0:
                await asyncio.sleep(wait)
                continue
            try:
                await self.tell(place)
            except AiosError as error:
                log.warning("a place was not told: %s", described(error))
                await asyncio.sleep(AGAIN_S)

    async def tell(self, place: Place) -> None:
        """Bring what was gathered to a place."""
        async with self.lock(place):
            binding = self._store.binding(place)
            if binding is None or binding.parked:
                self._crowds.pop(place, None)
                return
            crowd = self._crowd(binding)
            if crowd is None:
                return
            bundle = crowd.look(self._clock())
            calls: list[Outgoing] = []
            if not bundle.entries:
                return
            if self._store.mutes.of(place) is None:
                calls = [await self._bundled(binding, bundle)]
            else:
                for _ in filter(lambda one: one.said, bundle.entries):
                    await self._store.mutes.missed(place)
            await self._postman.put(calls, shown=(place, binding.conversation, bundle.upto))
            crowd.told(bundle, self._clock())

    async def _bundled(self, binding: Binding, bundle: Bundle) -> Outgoing:
        """One message for all of it."""
        caps = self._adapter.caps
        texts = joined([one.rich for one in bundle.entries])
        letter = Letter(binding.place, binding.conversation, bundle.entries[-1].event_id)
        fits = units(texts.text) <= caps.text_units and len(texts.spans) <= caps.spans
        if fits and not bundle.crowded:
            return letter.send(0 if len(bundle.entries) == 1 else BUNDLE_PART, texts)
        summary = Rich(f"👁 {bundle.summary}. /history shows the last ones.")
        out = letter.send(BUNDLE_PART, summary)
        button = await self._button(binding, bundle)
        return out if button is None else msgspec.structs.replace(out, buttons=((button,),))

    async def _button(self, binding: Binding, bundle: Bundle) -> Button | None:
        """For the one person of a private chat: a button is for one."""
        person = self._store.people.get(binding.place.chat)
        if person is None:
            return None
        action = Action(
            do=SHOW,
            conversation=binding.conversation,
            number=binding.last_seq,
            words=str(bundle.upto),
        )
        draft = Draft(new_id(), f"{self._bringing.prefix}{person.user_id}", action)
        await self._store.buttons.keep([draft])
        return Button("Show", draft.id)
