"""What happens in conversations, brought to the places that show them.

The log of the node is the truth. It is followed as it grows, and after every break each place goes
on behind the last event that it has: what is brought there and how far the place is are kept in one
transaction, so no event is shown twice and none is left out, wherever this is killed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from aios_bots.core import leaving
from aios_bots.core.adapter import Adapter
from aios_bots.core.bringing import Bringing
from aios_bots.core.letters import Letter
from aios_bots.core.model import Op, Outgoing, Place
from aios_bots.core.postman import Postman
from aios_bots.core.secret import described
from aios_bots.core.store import Binding, BotStore, Mode
from aios_bots.core.voices import Voices
from aios_bots.core.watching import Watching
from aios_bots.core.wording import ENDED_BADLY, Row, Wording, note
from aios_bots.core.writing import GRACE_S, Page, Writing
from aios_nb.client import SiteClient
from aios_nb.errors import AiosError, Busy, ConnectionLost, NotAllowed, NotRunning, RpcError

log = logging.getLogger("aios_bots.showing")

PAUSE_S = (0.1, 5.0)
"""Between two tries to follow the node: the first pause, and the longest."""
PAGE_ROWS = 500
LOOK_BACK_ROWS = 200
LOOK_BACK_PAGES = 10
"""How far back the message is looked for that an agent asks a question about."""
ENDED_HELD = 1000
TAKEN_OUT = "You were taken out of this conversation. /chats lists yours."
MUTES_EVERY_S = 30.0
"""A new mute may end sooner than the one that is waited for."""


class Showing:
    """The conversations of one bot's places."""

    def __init__(
        self,
        store: BotStore,
        voices: Voices,
        postman: Postman,
        adapter: Adapter,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._voices, self._postman = store, voices, postman
        self._adapter, self._clock = adapter, clock
        prefix = f"{adapter.platform}:{adapter.account}:"
        self._wording = Wording(voices.node_id, prefix, self._name_of)
        self._bringing = Bringing(store, postman, adapter, self._wording, clock)
        self._watching = Watching(store, postman, adapter, self._wording, self._bringing, clock)
        self._ended: deque[str] = deque(maxlen=ENDED_HELD)
        """Replies that the log has told of, the last ones."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self.following = asyncio.Event()
        """Every place has what happened so far, and the log is followed."""
        self.away = ""
        """Why nothing of the node is shown now, in one line."""

    def _name_of(self, user_id: str) -> str:
        person = self._store.people.get(user_id)
        return person.name if person is not None else ""

    # Following ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Bring everything to where it belongs, until cancelled."""
        mutes = asyncio.create_task(self._watch_mutes())
        try:
            await self._follow_for_ever()
        finally:
            self.following.clear()
            tasks = [mutes, *self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._watching.close()

    async def _follow_for_ever(self) -> None:
        pause, longest = PAUSE_S
        while True:
            try:
                await self._follow()
            except AiosError as error:
                if not self.away:
                    log.warning("the node is not followed: %s", described(error))
                self.away = described(error)
            if self.following.is_set():
                pause = PAUSE_S[0]
            self.following.clear()
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)

    async def _follow(self) -> None:
        flow = self._voices.owner.notices("chat.watch")
        try:
            await flow.result()  # what happens from here on comes by itself
            for binding in self._store.bindings():
                await self._catch_up(binding.place)
            self.away = ""
            self.following.set()
            async for row in flow:
                await self._take(row)
        finally:
            flow.close()

    async def _take(self, row: Row) -> None:
        bindings = self._store.bindings(row["conversation"])
        for binding in bindings:
            await self._bring(binding.place, row)
        await self._left_behind(row, {binding.place for binding in bindings})
        await self._noticed(row)

    async def _left_behind(self, row: Row, places: set[Place]) -> None:
        """A reply that was begun where another conversation is shown now is ended all the same."""
        writing = self._bringing.writings.get(row["message_id"])
        for place, page in () if writing is None else tuple(writing.pages.items()):
            if place not in places and not page.closed and page.turn.begun:
                await self._postman.put(await self._bringing.calls(place, row))

    async def _noticed(self, row: Row) -> None:
        """A reply has ended, or a question was answered: nothing is to be remembered of it."""
        data = row["data"] if isinstance(row["data"], dict) else {}
        status = row["status"] if row["kind"] == "status" else ""
        over = ""
        if row["kind"] == "message" and row["sender"]["type"] == "agent":
            over = row["message_id"]
        elif status in ENDED_BADLY:
            over = str(data.get("reply_id", ""))
        question = str(data.get("question", "")) if status == "running" else ""
        if over:
            self._ended.append(over)
            writing = self._bringing.writings.pop(over, None)
            for page in () if writing is None else writing.pages.values():
                await page.close()
        if (over or question) and self._store.questions.any():
            await self._store.questions.over(row["conversation"], question=question, reply=over)

    # One place ---------------------------------------------------------------------------------

    async def bound(self, binding: Binding) -> None:
        """A place shows another conversation, or can be reached again: bring what it lacks."""
        try:
            await self._catch_up(binding.place)
        except (NotRunning, ConnectionLost):
            log.debug("not now: everything is caught up with when the node is back")

    async def _catch_up(self, place: Place) -> None:
        async with self._watching.lock(place):
            await self._go_on(place)

    async def _go_on(self, place: Place) -> None:
        """Bring everything behind the last event that the place has. Its lock is held."""
        while True:
            binding = self._store.binding(place)
            if binding is None or not binding.conversation or binding.parked:
                return
            after = self._watching.at(binding)
            try:
                page = await self._voices.owner.call(
                    "chat.history", conversation=binding.conversation, after=after, limit=PAGE_ROWS
                )
            except RpcError as error:
                if _passes(error):
                    raise
                log.info("a conversation cannot be shown: %s", described(error))
                return
            for one in page["messages"]:
                row = {**one, "conversation": binding.conversation}
                await self._show(binding, row)
                await self._noticed(row)
                if not self._still(binding):
                    break
            else:
                if not page["more"] or not page["messages"]:
                    return

    def _still(self, binding: Binding) -> bool:
        """Whether that place shows the same as before: its people switch while it catches up."""
        now = self._store.binding(binding.place)
        return now is not None and now.conversation == binding.conversation

    async def _bring(self, place: Place, row: Row) -> None:
        async with self._watching.lock(place):
            binding = self._store.binding(place)
            if binding is None or binding.conversation != row["conversation"] or binding.parked:
                return
            at = self._watching.at(binding)
            if row["seq"] <= at:
                return
            if row["seq"] > at + 1:
                await self._go_on(place)
            else:
                await self._show(binding, row)

    async def _show(self, binding: Binding, row: Row) -> None:
        place = binding.place
        if await self._taken_out(binding, row):
            return
        if binding.mode is Mode.WATCH:
            self._watching.gather(binding, row)
            return
        calls: Sequence[Outgoing] = ()
        if self._store.mutes.of(place) is not None and not self._asked_here(place, row):
            own = self._bringing.came_from(place, row["conversation"], row["message_id"])
            if row["kind"] == "message" and not own:
                await self._store.mutes.missed(place)
        else:
            calls = await self._calls(place, row)
        await self._postman.put(calls, shown=(place, row["conversation"], row["seq"]))

    async def _taken_out(self, binding: Binding, row: Row) -> bool:
        """Whether its person was taken out of what this place shows: then it shows nothing more.

        Who went by themselves did so through us, and the place knows. An old row may come when
        they are in again.
        """
        place, conversation = binding.place, binding.conversation
        who = f"{self._bringing.prefix}{place.chat}"
        by_us = row["sender"]["id"].startswith("token:")
        if row["kind"] != "leave" or row["ref"] != who or by_us:
            return False
        if who in await leaving.members(self._voices.owner, conversation):
            return False
        for writing in tuple(self._bringing.writings.values()):
            live = writing.pages.get(place)
            if live is not None and live.letter.conversation == conversation:
                await live.close()
        # Said first: without its place, after a crash nobody would be told.
        letter = Letter(place, conversation, row["message_id"])
        await self._postman.put([letter.send(0, note(TAKEN_OUT))])
        if self._still(binding):
            await self._store.unbind(place)
        return True

    async def _calls(self, place: Place, row: Row) -> Sequence[Outgoing]:
        try:
            if row["kind"] == "status" and row["status"] == "input_required":
                await self._remember(place, row)
            return await self._bringing.calls(place, row)
        except AiosError:
            raise
        except Exception as error:  # one event must not stop all that follow
            log.warning("event %s cannot be shown: %s", row["message_id"], described(error))
            log.debug("it failed here", exc_info=True)
            letter = Letter(place, row["conversation"], row["message_id"], again=":bad")
            return [letter.send(0, note("A message that cannot be shown here."))]

    def _asked_here(self, place: Place, row: Row) -> bool:
        """Whether this is about what somebody asked in that place."""
        about = str(row["ref"] or "") if row["kind"] in {"message", "status"} else ""
        return bool(about) and self._bringing.came_from(place, row["conversation"], about)

    # Questions ---------------------------------------------------------------------------------

    async def _remember(self, place: Place, row: Row) -> None:
        """Whoever asked in that place is asked there now."""
        if self._asked_here(place, row):
            person = await self._asker(row)
            await self._store.questions.ask(place, self._bringing.question(row, person))

    async def _asker(self, row: Row) -> str:
        """Who sent the message that the agent is at work on; empty if it is too far back."""
        before = row["seq"]
        for _ in range(LOOK_BACK_PAGES):
            after = max(0, before - 1 - LOOK_BACK_ROWS)
            page = await self._voices.owner.call(
                "chat.history", conversation=row["conversation"], after=after, limit=LOOK_BACK_ROWS
            )
            for one in page["messages"]:
                if one["message_id"] == row["ref"]:
                    return str(one["sender"]["id"])
            if not after:
                break
            before = after + 1
        return ""

    # Replies as they are written ---------------------------------------------------------------

    async def reply_begun(
        self,
        place: Place,
        client: SiteClient,
        message_id: str,
        replies: Iterable[dict[str, Any]],
        conversation: str = "",
    ) -> None:
        """Agents answer what was posted in that place, through that client: show it live."""
        binding = self._store.binding(place)
        conversation = conversation or (binding.conversation if binding is not None else "")
        for reply in replies:
            reply_id, agent = str(reply["reply_id"]), str(reply["agent"])
            if reply_id in self._ended or reply_id in self._bringing.writings:
                continue
            pages = [
                self._page(one.place, conversation, message_id, reply_id, agent)
                for one in self._store.bindings(conversation)
                if self._wants_live(one, place)
            ]
            if pages:
                writing = Writing(client, reply_id, self._postman, self._clock, pages)
                self._bringing.writings[reply_id] = writing
                self._spawn(self._write(reply_id, writing))

    def _wants_live(self, binding: Binding, origin: Place) -> bool:
        if binding.mode is Mode.WATCH or binding.parked:
            return False
        return binding.place == origin or self._store.mutes.of(binding.place) is None

    def _page(
        self, place: Place, conversation: str, message_id: str, reply_id: str, agent: str
    ) -> Page:
        row = {
            "kind": "message",
            "conversation": conversation,
            "message_id": reply_id,
            "ref": message_id,
        }
        letter, count = self._bringing.begun(self._bringing.letter(place, row))
        head = self._wording.who(agent, "agent")
        turn = self._bringing.turn(place, head, begun=count, grace_s=GRACE_S)
        return Page(
            letter,
            turn,
            lambda: self._bringing.told(place, conversation, message_id),
            lambda: self._catch_up(place),
        )

    async def _write(self, reply_id: str, writing: Writing) -> None:
        try:
            await writing.run()
        except* AiosError as errors:
            log.debug("a reply is not shown live: %s", errors.exceptions)
        finally:
            if self._bringing.writings.get(reply_id) is writing:
                del self._bringing.writings[reply_id]

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Muted places ------------------------------------------------------------------------------

    async def _watch_mutes(self) -> None:
        while True:
            try:
                await self.end_mutes()
            except AiosError as error:
                log.warning("a mute was not ended: %s", described(error))
            await asyncio.sleep(MUTES_EVERY_S)

    async def end_mutes(self) -> None:
        """Tell the places whose mute is over how much they missed."""
        for mute in self._store.mutes.ended():
            if mute.missed:
                line = f"🔔 {mute.missed} messages while it was quiet here. /history shows them."
                looks = note(line)
                out = Outgoing(
                    key=f"mute:{mute.place.chat}:{mute.place.topic}:{mute.until:.3f}",
                    place=mute.place,
                    op=Op.SEND,
                    text=looks.text,
                    spans=looks.spans,
                )
                await self._postman.put([out])
            await self._store.mutes.end(mute.place)


def _passes(error: RpcError) -> bool:
    """Whether it may go well another time."""
    return isinstance(error, Busy | NotAllowed)
