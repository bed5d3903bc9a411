"""The desk: every update of an app, decided about, and then done.

What an update may do is decided by ``policy`` and ``flood`` and by nothing else; what it does is in
the modules beside this one, one for each topic. Everything it causes carries its key, so that an
update that comes again after a crash causes nothing new.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aios_bots.core.adapter import Adapter
from aios_bots.core.buttons import Action, Pressed
from aios_bots.core.commands import COMMANDS, said
from aios_bots.core.desk import entry, finding, following, house, posting, refusals, talking
from aios_bots.core.desk.visit import Office, Visit, cut
from aios_bots.core.flood import Flood
from aios_bots.core.model import MOVED, ChatKind, Incoming, Kind
from aios_bots.core.pairing import Pairing, Role
from aios_bots.core.policy import QUIET, RANK, Act, Reason, Ruling, is_person, rule
from aios_bots.core.postman import Postman
from aios_bots.core.showing import Showing
from aios_bots.core.store import BotStore
from aios_bots.core.voices import Voices
from aios_nb.errors import Busy, ConnectionLost, InvalidParams, NotRunning, RpcError

BUSY_S = 20.0
"""For so long a message waits for a busy node; then its writer is told."""
ADMITTED_HELD = 4096
LIGHT_PER_MIN, LIGHT_BURST = 90, 20
"""Buttons, reactions and searches as one types; and all that the owner sends."""
GREETED = "told once"
"""In the audit; a bridge that starts again knows from it who had the line today."""
OUT = frozenset({"kicked", "left", "blocked", "out"})
_LIGHT = frozenset({Kind.BUTTON, Kind.INLINE, Kind.REACTION, Kind.STOP})
_SPOKEN = frozenset({Kind.MESSAGE, Kind.COMMAND, Kind.BUTTON})
_DETAIL_CHARS = 120

Do = Callable[[Visit, str], Awaitable[None]]
Press = Callable[[Visit, Action], Awaitable[None]]

DOES: dict[str, Do] = {
    "start": house.start,
    "pair": entry.pair_how,
    "help": house.help_,
    "id": house.id_,
    "unpair": house.unpair,
    "status": house.status,
    "invite": house.invite,
    "search": finding.search,
    "agents": finding.agents,
    "agent": finding.agent,
    "chat": talking.chat,
    "new": talking.new,
    "chats": following.chats,
    "join": following.join,
    "watch": following.watch,
    "who": following.who,
    "history": following.history,
    "leave": following.leave,
    "stop": following.stop,
    "mute": following.mute,
    "file": following.file,
}
PRESSES: dict[str, tuple[Role, Press]] = {
    "more": (Role.GUEST, finding.more),
    "info": (Role.GUEST, finding.info),
    "chat": (Role.MEMBER, talking.chat_by_button),
    "send": (Role.MEMBER, talking.send_held),
    "drop": (Role.GUEST, talking.drop_held),
    "step in": (Role.MEMBER, talking.step_in),
    "pass on": (Role.MEMBER, talking.pass_on),
    "join": (Role.MEMBER, following.join_by_button),
    "come back": (Role.GUEST, following.come_back),
    "watch": (Role.GUEST, following.watch_by_button),
    "show": (Role.GUEST, following.show),
    "file": (Role.MEMBER, following.file_by_button),
    "unpair": (Role.GUEST, house.unpaired),
    "stay": (Role.GUEST, house.stay),
}
"""What buttons do, and what somebody must be at least when pressing one: roles can change."""


class Desk:
    """Deals with the updates of one bot. ``clock`` gives unix seconds."""

    def __init__(
        self,
        store: BotStore,
        voices: Voices,
        postman: Postman,
        showing: Showing,
        adapter: Adapter,
        pairing: Pairing,
        flood: Flood,
        clock: Callable[[], float],
    ) -> None:
        self._office = Office(store, voices, postman, showing, adapter, pairing, clock)
        self._flood = flood
        self._light = Flood(clock, per_min=LIGHT_PER_MIN, burst=LIGHT_BURST)
        self._guessed = Flood(clock)
        self._owners = Flood(clock, per_min=LIGHT_PER_MIN, burst=LIGHT_BURST)
        self._admitted: dict[str, float] = {}
        """Updates that were let through, and when: trying again is not sending again."""

    async def handle(self, incoming: Incoming) -> None:
        """Deal with one update. Raises ``NotRunning`` and its kin when it must wait."""
        store = self._office.store
        person = store.people.get(incoming.sender.id)
        visit = Visit(self._office, incoming, person)
        group_on = incoming.chat_kind is ChatKind.GROUP and store.shows(incoming.place.chat)
        known = bool(incoming.msg_id) and (
            store.event_of(incoming.place.chat, incoming.msg_id) is not None
        )
        role = person.role if person is not None else None
        ruling = rule(incoming, role, group_on=group_on, known=known)
        if incoming.kind in _SPOKEN:
            await self._let_in(incoming.place.chat)  # who speaks to the bot has not blocked it
        if ruling.act in {Act.TAKE, Act.REFUSE} and incoming.kind is not Kind.MEMBERSHIP:
            ruling = self._in_time(incoming, ruling, role)
        if ruling.act is Act.PAIR and self._in_time(incoming, ruling, role) is not ruling:
            ruling = Ruling(Act.DROP, Reason.TOO_FAST)
        await self._note(visit, ruling)
        await self._act(visit, ruling)
        await visit.flush()

    def _in_time(self, incoming: Incoming, ruling: Ruling, role: Role | None) -> Ruling:
        """The same, unless the person sends more than is good. The owner may try things out."""
        if incoming.key in self._admitted:
            return ruling
        flood = self._owners if role is Role.OWNER else self._flood
        flood = self._light if incoming.kind in _LIGHT else flood
        flood = self._guessed if ruling.act is Act.PAIR else flood
        slowed = flood.rule(incoming, at=incoming.at)
        if slowed is not None:
            return slowed
        while len(self._admitted) >= ADMITTED_HELD:
            del self._admitted[next(iter(self._admitted))]
        self._admitted[incoming.key] = self._office.clock()
        return ruling

    async def _note(self, visit: Visit, ruling: Ruling) -> None:
        """What was tried and not done is there for the owner to see. Codes are not."""
        if ruling.reason in QUIET or ruling.reason is Reason.CODE:
            return
        incoming = visit.incoming
        stranger = ruling.reason in {Reason.STRANGER, Reason.NOT_A_PERSON}
        if stranger and self._light.rule(incoming, at=incoming.at) is not None:
            return  # noted often enough
        command = said(incoming.text)
        what = incoming.text if command is None else f"/{command.name}"
        detail = f"{incoming.kind} in {incoming.place.chat} by {visit.name}: {what}"
        await self._office.store.people.note(
            incoming.person, ruling.reason.value, cut(detail, _DETAIL_CHARS)
        )

    async def _act(self, visit: Visit, ruling: Ruling) -> None:
        incoming = visit.incoming
        match ruling.act:
            case Act.TAKE:
                await self._try(visit)
            case Act.PAIR:
                await self._pair(visit)
            case Act.HELLO:
                if self._flood.hello(incoming.person):
                    visit.say(refusals.HELLO)
                    await self._office.store.people.note(incoming.person, GREETED)
            case Act.REFUSE if ruling.reason in refusals.REFUSALS:
                line = refusals.REFUSALS[ruling.reason]
                if incoming.kind is Kind.BUTTON:
                    visit.toast(line)
                elif incoming.kind in _SPOKEN:
                    visit.say(line)
        if incoming.kind is Kind.BUTTON and is_person(incoming.platform, incoming.sender):
            visit.toast("" if ruling.act is Act.TAKE else "That button is not for you.")

    async def _pair(self, visit: Visit) -> None:
        try:
            offer = await entry.pair(visit)
            if offer is not None and offer.conversation:
                await following.enter_by_code(visit, offer.conversation)
        except (NotRunning, ConnectionLost, Busy):
            raise
        except RpcError as error:
            visit.say(refusals.told(error))

    async def _try(self, visit: Visit) -> None:
        """Do it; what the node refuses is one line for the person."""
        try:
            await self._do(visit)
        except Busy as error:
            since = self._admitted.get(visit.key, 0.0)
            if self._office.clock() - since < BUSY_S:
                raise
            self._failed(visit, error)
        except RpcError as error:
            self._failed(visit, error)

    def _failed(self, visit: Visit, error: RpcError) -> None:
        visit.take_back()
        line = refusals.told(error)
        kind = visit.incoming.kind
        if kind is Kind.BUTTON:
            visit.toast(line)
        if kind in _SPOKEN:
            visit.say(line)

    async def _do(self, visit: Visit) -> None:
        incoming = visit.incoming
        match incoming.kind:
            case Kind.COMMAND:
                await self._command(visit)
            case Kind.MESSAGE:
                await talking.said_here(visit)
            case Kind.EDIT:
                await self._silently(posting.edited(visit))
            case Kind.REACTION:
                await self._silently(posting.reacted(visit))
            case Kind.BUTTON:
                await self._press(visit)
            case Kind.INLINE:
                await finding.inline(visit)
            case Kind.STOP:
                await following.stop(visit)
            case Kind.MEMBERSHIP:
                await self._membership(incoming)

    async def _command(self, visit: Visit) -> None:
        command = said(visit.incoming.text)
        if command is None:
            await talking.said_here(visit)
        elif command.name in COMMANDS and command.name in DOES:
            await DOES[command.name](visit, command.rest)
        else:
            await talking.unknown(visit, command.name)

    async def _silently(self, change: Awaitable[None]) -> None:
        """A change of what the node does not know any more is no news to anybody."""
        try:
            await change
        except InvalidParams:
            return

    async def _press(self, visit: Visit) -> None:
        incoming, store = visit.incoming, self._office.store
        pressed, action = await store.buttons.press(incoming.data, incoming.person, incoming.key)
        if pressed is Pressed.FOREIGN:
            await store.people.note(incoming.person, "button of somebody else", visit.name)
            visit.toast("That button is for somebody else.")
        elif pressed is Pressed.SPENT:
            visit.toast("That button was used already.")
        elif action.do not in PRESSES:
            visit.toast("That button is too old. Please ask again.")
        else:
            least, press = PRESSES[action.do]
            if RANK[visit.role] < RANK[least]:
                visit.toast(refusals.REFUSALS[Reason.READ_ONLY])
                return
            await press(visit, action)

    async def _membership(self, incoming: Incoming) -> None:
        """Where the bot can speak, and where no more."""
        store, chat = self._office.store, incoming.place.chat
        if incoming.data.startswith(MOVED):
            await self._office.postman.moved(chat, incoming.data.removeprefix(MOVED))
        elif incoming.data in OUT:
            await self._office.postman.put_out(chat, "the bot was removed or blocked")
            await store.people.note(incoming.person, "bot removed", f"chat {chat}")
        else:
            await self._let_in(chat)

    async def _let_in(self, chat: str) -> None:
        """The bot can speak there; bring what waited, if it could not before."""
        if await self._office.postman.let_in(chat):
            for binding in self._office.store.bindings():
                if binding.place.chat == chat:
                    await self._office.showing.bound(binding)
