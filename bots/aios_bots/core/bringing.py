"""One event of a conversation, as the calls that bring it to one place.

Everything is named by the event and the place: bringing it twice is bringing it once. What a person
wrote in a place is not brought back to it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from aios_bots.core.adapter import Adapter
from aios_bots.core.letters import BUNDLE_PART, FILE_PART, Letter, begun, last_steps
from aios_bots.core.model import Attachment, ChatKind, Op, Outgoing, Place, Rich
from aios_bots.core.postman import Postman
from aios_bots.core.questions import Question
from aios_bots.core.splitting import READ_PER_LIMIT, beginning, headed
from aios_bots.core.store import BotStore
from aios_bots.core.turn import Do, Turn
from aios_bots.core.wording import ENDED_BADLY, RESENT, Row, Said, Wording, note
from aios_bots.core.writing import Page, Writing
from aios_nb.richtext import one_line

REACTION_CHARS = 16
PIECES_MAX = 40
"""Where no file can be sent, a long text is so many messages at most."""


class Bringing:
    """Events to the places of one bot. ``clock`` never goes back."""

    def __init__(
        self,
        store: BotStore,
        postman: Postman,
        adapter: Adapter,
        wording: Wording,
        clock: Callable[[], float],
    ) -> None:
        self._store, self._postman, self._adapter = store, postman, adapter
        self._wording, self._clock = wording, clock
        self.writings: dict[str, Writing] = {}
        """The replies that are being written, by their ids."""

    # Where somebody is -------------------------------------------------------------------------

    @property
    def prefix(self) -> str:
        """How the sender ids of this bot's people begin, and the keys of its updates."""
        return f"{self._adapter.platform}:{self._adapter.account}:"

    def came_from(self, place: Place, conversation: str, event_id: str) -> bool:
        """Whether somebody made that event in this place."""
        if not event_id.startswith(self.prefix):
            return False
        letter = Letter(place, conversation, event_id)
        if self._store.outbox.fate(letter.key(0)).state:
            return False  # it was brought here
        if self._store.messages_of(conversation, event_id, place):
            return True
        # Its update is not done yet: then it still says where it is from.
        number = event_id.removeprefix(self.prefix)
        raw = self._store.inbox.raw(int(number)) if number.isdecimal() else ""
        try:
            return bool(raw) and self._adapter.read(raw).place == place
        except ValueError:
            return False

    def told(self, place: Place, conversation: str, event_id: str) -> bool:
        """Whether that event is in this place, or on its way there."""
        letter = Letter(place, conversation, event_id)
        return bool(self._store.outbox.fate(letter.key(0)).state) or self.came_from(
            place, conversation, event_id
        )

    def turn(self, place: Place, head: str = "", *, begun: int = 0, grace_s: float = 0.0) -> Turn:
        """A reply that is to be shown there."""
        caps = self._adapter.caps
        kind = ChatKind.GROUP if self._adapter.is_group(place.chat) else ChatKind.PRIVATE
        return Turn(
            kind,
            self._clock(),
            limit=caps.text_units,
            max_spans=caps.spans,
            edits=caps.edits,
            head=head,
            grace_s=grace_s,
            begun=begun,
        )

    def letter(self, place: Place, row: Row) -> Letter:
        """A reply in a group says what it replies to: others speak in between."""
        reply_to, ref = "", row["ref"]
        if row["kind"] == "message" and ref and self._adapter.is_group(place.chat):
            reply_to = self._store.first_of(row["conversation"], ref, place)
        return Letter(place, row["conversation"], row["message_id"], reply_to)

    # Events ------------------------------------------------------------------------------------

    async def calls(self, place: Place, row: Row) -> list[Outgoing]:
        """What brings this event to this place; nothing, if there is nothing to see."""
        match row["kind"]:
            case "message":
                return await self._message(place, row)
            case "status":
                return await self._status(place, row)
            case "edit":
                return await self._edit(place, row)
            case "reaction":
                return self._reaction(place, row)
            case "join" | "leave":
                return self._member(place, row)
        return []

    async def _message(self, place: Place, row: Row) -> list[Outgoing]:
        if self.came_from(place, row["conversation"], row["message_id"]):
            return []
        said = self._wording.said(row)
        page = self.page(row["message_id"], place)
        if page is not None:
            turn, letter = await page.close(), page.letter
        else:
            letter, count = self.begun(self.letter(place, row))
            turn = self.turn(place, said.head, begun=count)
        alone = not said.text.strip() and not turn.begun
        calls = [] if alone else await self._settled(turn, letter, said, ":end")
        return calls + self._files(letter, said, alone=alone)

    def page(self, reply_id: str, place: Place) -> Page | None:
        """A reply that is being written there."""
        writing = self.writings.get(reply_id)
        for page in () if writing is None else writing.pages.values():
            if not page.closed and self._postman.now_at(page.letter.place) == place:
                return page
        return None

    def begun(self, letter: Letter) -> tuple[Letter, int]:
        """How many messages of it are there, and under which names it goes on.

        Those that were sent before the chat had another id are known by that only.
        """
        letter, count = begun(self._store.outbox, letter)
        shown = self._store.messages_of(letter.conversation, letter.event_id, letter.place)
        return letter, max(count, sum(part < BUNDLE_PART for part in shown))

    async def _settled(self, turn: Turn, letter: Letter, said: Said, mark: str) -> list[Outgoing]:
        """All that brings what is shown to what it is."""
        turn.end(said.text, said.looks(self._adapter.caps.text_units) if said.typed else None)
        shown = self._store.messages_of(letter.conversation, letter.event_id, letter.place)
        calls: list[Outgoing] = []
        for step in last_steps(turn, self._clock()):
            if step.do is Do.EDIT and await self._rewritten(letter, step.part, step.rich):
                continue
            if step.do is Do.FILE and not self._adapter.caps.files:
                calls += self._rest(letter, said, turn.begun)
                continue
            target = shown.get(step.part, "") if step.do in {Do.EDIT, Do.DELETE} else ""
            calls.append(letter.call(step, said.text, mark, target))
        return calls

    async def _rewritten(self, letter: Letter, part: int, rich: Rich) -> bool:
        """A message that is not on its way yet needs no edit: it says that in the first place."""
        key = letter.key(part)
        if self._store.outbox.fate(key).state != "new":
            return False
        return await self._postman.rewrite(key, letter.send(part, rich))

    def _rest(self, letter: Letter, said: Said, shown: int) -> list[Outgoing]:
        """What would have been a file, as messages."""
        caps = self._adapter.caps
        looks = said.looks(caps.text_units * PIECES_MAX // READ_PER_LIMIT)
        found = beginning(looks, limit=caps.text_units, max_spans=caps.spans, most=PIECES_MAX)
        return [letter.send(part, rich) for part, rich in enumerate(found) if part >= shown]

    def _files(self, letter: Letter, said: Said, *, alone: bool) -> list[Outgoing]:
        caps = self._adapter.caps
        calls: list[Outgoing] = []
        for at, file in enumerate(said.files):
            head = headed(said.head, Rich(f"📎 {file.name}")) if alone and not at else Rich()
            if caps.files and file.size <= caps.file_bytes:
                calls.append(letter.send(FILE_PART + at, head, (file,)))
            else:
                line = Rich(f"📎 {file.name}: {_why_not(file)}")
                calls.append(letter.send(FILE_PART + at, headed(said.head, line)))
        return calls

    async def _status(self, place: Place, row: Row) -> list[Outgoing]:
        status, data = row["status"], row["data"] or {}
        reply_id = str(data.get("reply_id", ""))
        letter = Letter(place, row["conversation"], row["message_id"])
        if status == "running":
            if reply_id in self.writings:
                self.writings[reply_id].wake()
        elif status == "input_required":
            said = self._wording.question(row)
            return await self._settled(self.turn(place, said.head), letter, said, "")
        elif status in ENDED_BADLY:
            page = self.page(reply_id, place)
            if page is not None:
                await page.close()  # what was shown of it stays
            return [letter.send(0, Rich(self._wording.ended(row)))]
        return []

    def question(self, row: Row, person: str) -> Question:
        """What an agent wants to know, to be remembered."""
        data = row["data"] or {}
        return Question(
            question=str(data.get("question", "")),
            conversation=row["conversation"],
            request=str(row["ref"] or ""),
            reply=str(data.get("reply_id", "")),
            agent=str(row["sender"]["id"]),
            person=person,
        )

    async def _edit(self, place: Place, row: Row) -> list[Outgoing]:
        conversation, ref = row["conversation"], str(row["ref"])
        if self.came_from(place, conversation, ref):
            return []  # the person changed it there, or nobody can
        letter, count = self.begun(Letter(place, conversation, ref))
        if not count:
            return []
        said = self._wording.edited(row, str(row["text"]))
        mark = f":{row['message_id']}"
        calls = await self._settled(self.turn(place, said.head, begun=count), letter, said, mark)
        # What is new of it has a name of its own: the old one may be used up.
        fresh = msgspec.structs.replace(letter, again=mark)
        return [
            msgspec.structs.replace(one, key=fresh.key(one.part))
            if one.op is Op.SEND and not one.as_file
            else one
            for one in calls
        ]

    def _reaction(self, place: Place, row: Row) -> list[Outgoing]:
        conversation, ref, said = row["conversation"], str(row["ref"]), str(row["text"])
        if said.startswith(RESENT) or self._reacted_here(place, row):
            return []
        on = Letter(place, conversation, ref)
        target = self._store.first_of(conversation, ref, place)
        if not target and not self._store.outbox.fate(on.key(0)).state:
            return []  # what it is about was never here
        emoji = one_line(said, REACTION_CHARS)
        letter = Letter(place, conversation, row["message_id"], reply_to=target)
        if not self._adapter.caps.reactions:
            return [letter.send(0, headed(self._wording.whose(row), Rich(emoji or "-")))]
        return [
            Outgoing(
                key=letter.key(0),
                place=place,
                op=Op.REACT,
                target=target,
                target_key=on.key(0),
                text=emoji,
                data=self._wording.whose(row),
            )
        ]

    def _reacted_here(self, place: Place, row: Row) -> bool:
        """Whether the person's own app shows it already.

        Nothing tells from which place a reaction came once its update is done. In a group, those
        of its people are taken to be from there.
        """
        sender = str(row["sender"]["id"])
        if not sender.startswith(self.prefix):
            return False
        return self._adapter.is_group(place.chat) or sender == f"{self.prefix}{place.chat}"

    def _member(self, place: Place, row: Row) -> list[Outgoing]:
        if row["ref"] == f"{self.prefix}{place.chat}":
            return []  # one knows that of oneself
        letter = Letter(place, row["conversation"], row["message_id"])
        line = letter.send(0, note(self._wording.member(row)))
        return [msgspec.structs.replace(line, silent=True)]


def _why_not(file: Attachment) -> str:
    return f"{max(1, file.size >> 20)} MB, too large to be sent here" if file.size else "not sent"
