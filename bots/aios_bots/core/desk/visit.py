"""One update that is being dealt with: who it is from, and what is said in return.

All that is said carries the key of the update and a number, so an update that is dealt with twice
is answered once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from aios_bots.core.adapter import Adapter
from aios_bots.core.buttons import Action, Draft, new_id
from aios_bots.core.desk.page import Page
from aios_bots.core.model import (
    Attachment,
    Button,
    ChatKind,
    Incoming,
    Op,
    Outgoing,
    Place,
    Rich,
)
from aios_bots.core.pairing import Pairing, Role
from aios_bots.core.people import Person
from aios_bots.core.postman import Postman
from aios_bots.core.showing import Showing
from aios_bots.core.splitting import pieces
from aios_bots.core.store import BotStore
from aios_bots.core.voices import Voices
from aios_nb.client import SiteClient
from aios_nb.richtext import one_line

LABEL_MAX_CHARS = 40
TOAST_MAX_CHARS = 180
"""An app shows no more in answer to a button."""
NAME_MAX_CHARS = 64
APPS = {"tg": "Telegram"}

Choice = tuple[str, Action]
"""What a button says, and what it does."""


@dataclass(frozen=True)
class Office:
    """What the desk works with."""

    store: BotStore
    voices: Voices
    postman: Postman
    showing: Showing
    adapter: Adapter
    pairing: Pairing
    clock: Callable[[], float]
    """Unix seconds."""
    adopting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by who looks for a conversation that a crash left behind."""
    seated: set[tuple[str, str]] = field(default_factory=set)
    """Who of a group is known to be in its conversation."""


class Visit:
    """An update of somebody who may do something here."""

    def __init__(self, office: Office, incoming: Incoming, person: Person | None) -> None:
        self.office, self.incoming, self.person = office, incoming, person
        self._calls: list[Outgoing] = []
        self._drafts: list[Draft] = []
        self._said = 0
        self._answered = False

    # Who and where ---------------------------------------------------------------------------

    @property
    def place(self) -> Place:
        return self.incoming.place

    @property
    def key(self) -> str:
        return self.incoming.key

    @property
    def role(self) -> Role:
        """Of who is not in at all, the least."""
        return self.person.role if self.person is not None else Role.GUEST

    @property
    def is_owner(self) -> bool:
        return self.role is Role.OWNER

    @property
    def may_write(self) -> bool:
        return self.role is not Role.GUEST

    @property
    def private(self) -> bool:
        return self.incoming.chat_kind is ChatKind.PRIVATE

    @property
    def client(self) -> SiteClient:
        """The node, with the rights of this person."""
        return self.office.voices.of(self.role)

    @property
    def name(self) -> str:
        """What the person calls themselves; it proves nothing, and no agent is called so."""
        app = APPS.get(self.incoming.platform, self.incoming.platform)
        said = one_line(self.incoming.sender.name, NAME_MAX_CHARS) or self.incoming.sender.id
        return f"{said} ({app})"

    # What is said in return --------------------------------------------------------------------

    def say(
        self,
        page: Page | str,
        rows: Sequence[Sequence[Choice]] = (),
        *,
        choice: bool = False,
        files: Sequence[Attachment] = (),
        reply_to: str = "",
        name: str = "",
    ) -> None:
        """A message to where the update came from. ``choice``: one of its buttons is used.

        ``name``: of what may not be said again when the update is dealt with again; all else is
        counted, and must come in the same order then.
        """
        rich = _rich(page)
        caps = self.office.adapter.caps
        parts = pieces(rich, caps.text_units, caps.spans) if rich.text else [rich]
        if not reply_to and not self.private:
            reply_to = self.incoming.msg_id
        for at, part in enumerate(parts):
            last = at == len(parts) - 1
            key = f"{self.key}:{name}:{at}" if name else self._next_key()
            self._calls.append(
                Outgoing(
                    key=key,
                    place=self.place,
                    op=Op.SEND,
                    text=part.text,
                    spans=part.spans,
                    files=tuple(files) if last else (),
                    reply_to=reply_to if at == 0 else "",
                    buttons=self._buttons(rows, key if choice else "") if last else (),
                )
            )

    def rewrite(self, page: Page | str, rows: Sequence[Sequence[Choice]] = ()) -> None:
        """What the message with the pressed button says from now on; its old buttons go."""
        rich = _rich(page)
        self._calls.append(
            Outgoing(
                key=self._next_key(),
                place=self.place,
                op=Op.EDIT,
                target=self.incoming.msg_id,
                text=rich.text,
                spans=rich.spans,
                buttons=self._buttons(rows, ""),
            )
        )

    def toast(self, text: str = "") -> None:
        """The answer that the app waits for; once."""
        if self._answered or not self.incoming.answer_to:
            return
        self._answered = True
        self._calls.append(
            Outgoing(
                key=f"{self.key}:answer",
                place=self.place,
                op=Op.ANSWER,
                target=self.incoming.answer_to,
                text=one_line(text, TOAST_MAX_CHARS),
            )
        )

    def answer(self, out: Outgoing) -> None:
        """The same with more than a line."""
        self._answered = True
        self._calls.append(out)

    def take_back(self) -> None:
        """Nothing of what was said and not sent was meant."""
        self._calls.clear()
        self._drafts.clear()
        self._answered = False

    async def flush(self) -> None:
        """Send what was said; kept when done."""
        drafts, self._drafts = self._drafts, []
        calls, self._calls = self._calls, []
        if drafts:
            await self.office.store.buttons.keep(drafts)
        if calls:
            await self.office.postman.put(calls)

    def _next_key(self) -> str:
        self._said += 1
        return f"{self.key}:{self._said}"

    def _buttons(
        self, rows: Sequence[Sequence[Choice]], sheet: str
    ) -> tuple[tuple[Button, ...], ...]:
        return tuple(tuple(self._button(*one, sheet) for one in row) for row in rows if row)

    def _button(self, label: str, action: Action, sheet: str) -> Button:
        draft = Draft(new_id(), self.incoming.person, action, sheet)
        self._drafts.append(draft)
        return Button(cut(label, LABEL_MAX_CHARS), draft.id)


def _rich(page: Page | str) -> Rich:
    return Rich(page) if isinstance(page, str) else page.rich


def cut(text: str, most: int) -> str:
    """One clean line of so many characters at most; a cut one says so."""
    line = one_line(text, most + 1)
    return line if len(line) <= most else line[: most - 1] + "…"
