"""Where imports are kept over restarts, and what they call our conversations."""

from __future__ import annotations

import logging
import time

import msgspec

from aios_nb.envelope import Seen
from aios_nb.hub.imports.entry import Address, Entry, Options
from aios_nb.store import Store, Tx

log = logging.getLogger("aios_nb.hub")

CONTEXTS_MAX = 10_000
"""Conversations with one import that are remembered; those not used for longest are forgotten."""
TIDY_EVERY = 256
_command = msgspec.json.Decoder(tuple[str, ...])
_options = msgspec.json.Decoder(Options)
_seen = msgspec.json.Decoder(Seen)


class Shelf:
    """The table ``imports``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def entries(self) -> list[Entry]:
        """All that were brought in, by name. One that cannot be read is left alone, and said."""
        found = []
        sql = "SELECT name, kind, address, options, approved, seen, at FROM imports ORDER BY name"
        for row in self._store.read(sql):
            try:
                found.append(_read(*row))
            except (msgspec.DecodeError, UnicodeError) as error:
                log.warning("the import %s cannot be read: %s", row[0], error)
        return found

    async def put(self, entry: Entry) -> None:
        """Keep it: what was approved must still be so after a power cut."""
        row = (
            entry.name,
            entry.kind,
            entry.address if isinstance(entry.address, str) else _text(entry.address),
            _text(entry.options),
            entry.approved.pin,
            _text(entry.approved),
            _text(entry.seen),
            entry.at,
        )

        def apply(tx: Tx) -> None:
            tx.execute("INSERT OR REPLACE INTO imports VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

        await self._store.write_through(apply)

    async def drop(self, name: str) -> None:
        def apply(tx: Tx) -> None:
            tx.execute("DELETE FROM imports WHERE name = ?", (name,))
            tx.execute("DELETE FROM import_contexts WHERE name = ?", (name,))

        await self._store.write_through(apply)

    def memory(self, name: str) -> Memory:
        return Memory(self._store, name)


class Memory:
    """What one import calls our conversations. Is a ``ports.ContextMemory``."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self._puts = 0

    def get(self, conversation: str) -> str | None:
        found = self._store.read(
            "SELECT context FROM import_contexts WHERE name = ? AND conversation = ?",
            (self._name, conversation),
        )
        return found[0][0] if found else None

    async def put(self, conversation: str, context: str) -> None:
        self._puts += 1
        tidy = self._puts % TIDY_EVERY == 0

        def apply(tx: Tx) -> None:
            tx.execute(
                "INSERT OR REPLACE INTO import_contexts VALUES (?, ?, ?, ?)",
                (self._name, conversation, context, time.time_ns() // 1_000_000),
            )
            if tidy:
                tx.execute(
                    "DELETE FROM import_contexts WHERE name = ? AND conversation IN (SELECT"
                    " conversation FROM import_contexts WHERE name = ? ORDER BY at DESC"
                    " LIMIT -1 OFFSET ?)",
                    (self._name, self._name, CONTEXTS_MAX),
                )

        await self._store.write(apply)


def _read(
    name: str, kind: str, address: str, options: str, approved: str, seen: str, at: int
) -> Entry:
    where: Address = _command.decode(address) if address.startswith("[") else address
    return Entry(
        name, kind, where, _options.decode(options), _seen.decode(approved), _seen.decode(seen), at
    )


def _text(value: tuple[str, ...] | Options | Seen) -> str:
    return msgspec.json.encode(value).decode()
