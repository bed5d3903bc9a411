"""A program of others as an agent of this node: its card, how it stands, and the way to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from aios_nb.access import Access
from aios_nb.config import KB
from aios_nb.envelope import Outcome, Seen, Task, iso_ms
from aios_nb.errors import AgentFailed, Busy, Unreachable
from aios_nb.hub.imports.entry import Entry, ImportRow, shown_address, tool_names
from aios_nb.ports import Carrier, ContextMemory, Outsider, Run
from aios_nb.richtext import one_line, plain

TITLE_BYTES = 80
ABOUT_BYTES = 4000
TAG_BYTES = 20
TAGS_MAX = 6
"""Its record has to fit into a datagram, whatever its author wrote."""
EXAMPLE_BYTES = 400
EXAMPLES_MAX = 8
VERSION_BYTES = 24
TOOLS_BYTES = 64 * KB
"""Of the tools in a card, as JSON; of more than that only the names are told."""
TIMEOUT_S = 300.0
RUNS_MAX = 32
"""At once with one program: we are its guest."""
STRANGER_RUNS_MAX = 8
NOTE_CHARS = 200

Look = Callable[["ImportedAgent"], Awaitable[None]]


class ImportedCard(msgspec.Struct, frozen=True, kw_only=True):
    """Its card, as our own agents have one. Every word in it is another program's."""

    id: str
    name: str
    title: str
    about: str
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    version: str = ""
    access: str = "private"
    engine: str = "outside"
    streams: bool = False
    idempotent: bool = False
    timeout_s: float = TIMEOUT_S
    source: str = ""
    tools: tuple[dict[str, Any], ...] = ()
    """Of an MCP server: name, description, input_schema."""


class ImportedAgent:
    """One import. Is a ``ports.Offer``, and the ``ports.Carrier`` of what it is asked."""

    builtin = False
    is_remote = False
    idempotent = False
    may_call: Sequence[str] | None = None
    timeout_s = TIMEOUT_S

    def __init__(
        self,
        entry: Entry,
        node_id: str,
        outsider: Outsider | None,
        memory: ContextMemory,
        look: Look,
    ) -> None:
        """``look`` is awaited before each task. ``outsider``: None until somebody looks."""
        self.name = entry.name
        self.id = f"{entry.name}@{node_id}"
        self.source = entry.kind
        self.access: Access = entry.options.access
        self.outsider = outsider
        self.live = False
        """It answered when it was last looked at."""
        self.note = "not looked at yet"
        self.looks = 0
        """How often it was looked at in this life."""
        self.failures = 0
        """Looks in a row that nobody answered."""
        self.looked_ms: int | None = None
        self.next_look = 0.0
        """On the clock of ``Imports``."""
        self.looking = asyncio.Lock()
        self.gone = False
        self._memory = memory
        self._look = look
        self._runs = 0
        self._stranger_runs = 0
        self.entry = entry
        self.card = card_of(self.id, entry)
        self._carrier: Carrier | None = None

    @property
    def carrier(self) -> Carrier:
        return self

    @property
    def published(self) -> ImportedCard:
        return self.card

    @property
    def changed(self) -> bool:
        return self.entry.changed

    def take(self, entry: Entry) -> None:
        """It is this from now on."""
        if entry.approved != self.entry.approved:
            self.card = card_of(self.id, entry)
            self._carrier = None
        self.entry = entry

    def answered(self, at_ms: int) -> None:
        self.live, self.note, self.failures, self.looked_ms = True, "", 0, at_ms

    def silent(self, why: str) -> None:
        self.live = False
        self.note = one_line(why, NOTE_CHARS)
        self.failures += 1

    def row(self, *, hidden: bool = False) -> ImportRow:
        """What its owner is told about it: how it was last seen."""
        entry, seen = self.entry, self.entry.seen
        return ImportRow(
            agent=self.id,
            name=self.name,
            kind=entry.kind,
            address=shown_address(entry.address),
            access=self.access.value,
            title=self.card.title,
            about=self.card.about,
            version=_cut(seen.version, VERSION_BYTES),
            pin=seen.pin,
            tools=tool_names(seen.details),
            signature=_cut(str(seen.details.get("signature", "")), 20),
            key=_cut(str(seen.details.get("key") or ""), 120),
            live=self.live,
            changed=entry.changed,
            differences=entry.differences,
            hidden=hidden,
            note=self.note,
            local=entry.options.local,
            token_env=entry.options.token_env,
            added_at=iso_ms(entry.at * 1000),
            looked_at=None if self.looked_ms is None else iso_ms(self.looked_ms),
        )

    # Carrying --------------------------------------------------------------------------------

    async def carry(self, task: Task, run: Run) -> Outcome:
        """Its answer; nothing is asked of it before it was seen to be what was approved."""
        self._enter(stranger=run.stranger)
        try:
            await self._look(self)
            if self.changed:
                raise self._is_another()
            if not self.live or self.outsider is None:
                raise Unreachable(
                    f"{self.name} does not answer: {self.note}",
                    hint="try again when its program runs",
                    reason="no answer",
                )
            if self._carrier is None:
                self._carrier = self.outsider.carrier(self.entry.approved, self._memory)
            return await self._carried(self._carrier, task, run)
        finally:
            self._leave(stranger=run.stranger)

    async def _carried(self, carrier: Carrier, task: Task, run: Run) -> Outcome:
        try:
            return await carrier.carry(task, run)
        except AgentFailed as error:
            if error.data.get("changed"):  # between our look and its call
                self.next_look = 0.0
                await self._look(self)  # so that its owner sees, and approves, what it is now
                raise self._is_another() from error
            raise
        except Unreachable as error:
            self.next_look = 0.0
            self.silent(error.message)
            raise

    def _is_another(self) -> AgentFailed:
        lines = self.entry.differences
        what = f": {lines[0]}" if lines else ""
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        return AgentFailed(
            f"{self.name} is not what was approved any more{what}{more}",
            hint=f"its owner looks at it with `aios-nb hub list` and says"
            f" `aios-nb hub approve {self.name}`",
            changed=True,
        )

    def _enter(self, *, stranger: bool) -> None:
        if self._runs >= RUNS_MAX or (stranger and self._stranger_runs >= STRANGER_RUNS_MAX):
            raise Busy(f"{self.name} is asked too much at once", hint="try again in a moment")
        self._runs += 1
        self._stranger_runs += stranger

    def _leave(self, *, stranger: bool) -> None:
        self._runs -= 1
        self._stranger_runs -= stranger


def card_of(agent_id: str, entry: Entry) -> ImportedCard:
    """The card of what was approved, in the bounds of our own cards."""
    said: Seen = entry.approved
    name = agent_id.partition("@")[0]
    tags = dict.fromkeys([entry.kind, *(_cut(tag, TAG_BYTES) for tag in said.tags)])
    return ImportedCard(
        id=agent_id,
        name=name,
        title=_cut(said.title, TITLE_BYTES) or name,
        about=_bytes(plain(said.about), ABOUT_BYTES).strip(),
        tags=tuple(tag for tag in tags if tag)[:TAGS_MAX],
        examples=tuple(_cut(example, EXAMPLE_BYTES) for example in said.examples[:EXAMPLES_MAX]),
        version=_cut(said.version, VERSION_BYTES),
        access=entry.options.access.value,
        streams=entry.kind == "a2a",
        source=entry.kind,
        tools=_tools(said.details),
    )


def _tools(details: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    tools = details.get("tools")
    given = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    if len(msgspec.json.encode(given)) <= TOOLS_BYTES:
        return tuple(given)
    return tuple({"name": name} for name in tool_names(details))


def _cut(text: str, limit: int) -> str:
    return _bytes(one_line(text), limit).strip()


def _bytes(text: str, limit: int) -> str:
    """As much of it as so many bytes hold, without half characters."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
