"""The nodes that were there when last seen: whom to greet after a restart, and where."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from aios_nb.errors import RecordError
from aios_nb.records import NodeRecord, Signed, parse
from aios_nb.store import Store, Tx

log = logging.getLogger("aios_nb.hub")

REMEMBERED_MAX = 200


class Remembered:
    """The nodes that were there when last seen, as the database keeps them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records: dict[str, NodeRecord] = {}
        for content, *_ in store.read(
            "SELECT record FROM remembered_nodes ORDER BY at DESC LIMIT ?", (REMEMBERED_MAX,)
        ):
            try:
                record = parse(content).record
            except RecordError as problem:
                log.debug("a remembered node cannot be read: %s", problem)
                continue
            if isinstance(record, NodeRecord):
                self._records[record.node] = record

    def record(self, node_id: str) -> NodeRecord | None:
        """Where that node was."""
        return self._records.get(node_id)

    def nodes(self) -> Sequence[str]:
        return tuple(self._records)

    async def keep(self, met: Sequence[Signed]) -> None:
        """Remember the nodes with these records; the oldest are forgotten."""
        now = int(time.time())

        def apply(tx: Tx) -> None:
            for signed in met[:REMEMBERED_MAX]:
                tx.execute(
                    "INSERT OR REPLACE INTO remembered_nodes VALUES (?, ?, ?)",
                    (signed.record.node, signed.to_bytes(), now),
                )
            tx.execute(
                "DELETE FROM remembered_nodes WHERE node NOT IN"
                " (SELECT node FROM remembered_nodes ORDER BY at DESC LIMIT ?)",
                (REMEMBERED_MAX,),
            )

        if met:
            await self._store.write(apply)
