"""One conversation, read from its end and followed: rows as they are logged, replies as they grow.

What there is to show is in ``transcript``. Lives on the node's loop, over a ``SiteClient``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from aios_nb.bell import Bell
from aios_nb.client import SiteClient, pages
from aios_nb.envelope import now_iso
from aios_nb.errors import RpcError
from aios_nb.notebook.widgets.contents import said_by_agent
from aios_nb.notebook.widgets.errands import Errands
from aios_nb.notebook.widgets.items import Item, Writing
from aios_nb.notebook.widgets.titles import begins
from aios_nb.notebook.widgets.transcript import Transcript, is_under_way

PAGE = 100
"""Rows of the log that are read at a time, the newest first."""
FIRST_ROWS = 4
"""Of a long conversation: among them is its first message."""
SETTLE_S = 10.0
"""An answer is in the log before it is told; the log's own word of it may come a moment later."""


class Following:
    """At most one conversation at a time; ``enter`` turns to another one."""

    def __init__(
        self,
        client: SiteClient,
        me: str,
        node_name: Callable[[str], str],
        changed: Callable[[], None],
    ) -> None:
        """``changed``: called whenever there is something new to show."""
        self._client = client
        self._me = me
        self._node_name = node_name
        self._tell = changed
        self.conversation: str | None = None
        """None until something is said."""
        self.title = ""
        self.begins = ""
        """Its first message, as a title."""
        self.agents: list[str] = []
        self.transcript = Transcript(me, node_name)
        self.has_earlier = False
        """There is more of it before what was read."""
        self.turned = True
        """Another conversation, or more of it, than a page was told of."""
        self.sent: set[str] = set()
        """Messages that were sent from here: who sends them listens to the replies."""
        self._errands = Errands()
        self._news = Bell()
        self._turn = 0
        """Counts where to one has turned: the last one counts, however long it takes to read."""

    # Coming and going --------------------------------------------------------------------------

    async def enter(self, conversation: str) -> None:
        """Read the end of it and follow it from there, unless it is left again meanwhile."""
        self._turn += 1
        turn = self._turn
        flow = self._client.notices("chat.watch", conversation=conversation)
        try:
            last = (await flow.result())["seq"]
            page, rows = await self._read(conversation, max(0, last - PAGE), last)
            has_earlier = bool(rows) and rows[0]["seq"] > 1
            first = (await self._read(conversation, 0, FIRST_ROWS))[1] if has_earlier else rows
        except BaseException:
            flow.close()
            raise
        if turn != self._turn:
            flow.close()
            return
        self.leave()
        self.conversation, self.title, self.agents = conversation, page["title"], page["agents"]
        self.transcript.default = self.agents[0] if self.agents else ""
        for row in rows:
            self.transcript.take(row)
        self.begins, self.has_earlier = begins(first), has_earlier
        shown = {row["message_id"] for row in rows}
        self._listen_to(run for run in page["running"] if run["message_id"] in shown)

        async def follow() -> None:
            with contextlib.closing(flow):
                async for row in flow:
                    self._take(row)

        self._errands.run(follow())
        self.changed()

    def leave(self) -> None:
        """Follow nothing; what runs, runs on."""
        self._turn += 1
        self._errands.drop()
        self.conversation, self.title, self.begins, self.agents = None, "", "", []
        self.transcript = Transcript(self._me, self._node_name)
        self.has_earlier, self.turned = False, True
        self.changed()

    async def earlier(self) -> None:
        """Read one page more before what is here."""
        if self.conversation is None or not self.has_earlier:
            return
        transcript, first = self.transcript, self.transcript.first_seq
        _, rows = await self._read(self.conversation, max(0, first - 1 - PAGE), first - 1)
        if transcript is self.transcript and first == transcript.first_seq:
            self.transcript = transcript.prepend(rows)
            self.has_earlier = self.transcript.first_seq > 1
            self.turned = True
            self.changed()

    async def close(self) -> None:
        await self._errands.close()

    def changed(self) -> None:
        """There is something new to show."""
        for item_id in self.transcript.unparsed:
            self._errands.run(self._parse(item_id))
        self.transcript.unparsed.clear()
        self._tell()
        self._news.ring()

    async def _read(
        self, conversation: str, after: int, upto: int
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The last page of the rows beyond ``after`` up to one, and all those rows."""
        told = [page async for page in pages(self._client, conversation, after, upto)]
        return told[-1], [row for page in told for row in page["messages"]]

    async def _parse(self, item_id: str) -> None:
        """A long text, beside the loop."""
        item = self.transcript.items.get(item_id)
        if item is not None:
            text = item.text
            blocks = await asyncio.to_thread(said_by_agent, text)
            self.transcript.parsed(item_id, text, blocks)  # earlier rows may have come before it
            self.changed()

    # What comes in -----------------------------------------------------------------------------

    def _take(self, row: dict[str, Any]) -> None:
        self.begins = self.begins or begins([row])
        self.transcript.take(row)
        if row["kind"] in {"join", "leave"}:
            others = [agent for agent in self.agents if agent != row["ref"]]
            self.agents = [*others, row["ref"]] if row["kind"] == "join" else others
        elif is_under_way(row) and row["message_id"] not in self.sent:
            self._errands.run(self._attach(row))
        self.changed()

    async def _attach(self, row: dict[str, Any]) -> None:
        """Listen to the replies to a message that was not sent from here."""
        conversation, message_id = row["conversation"], row["message_id"]
        try:
            page = await self._client.call(
                "chat.history", conversation=conversation, after=row["seq"] - 1, limit=1
            )
        except RpcError:
            return  # it was deleted
        self._listen_to(run for run in page["running"] if run["message_id"] == message_id)

    def _listen_to(self, running: Iterable[dict[str, Any]]) -> None:
        for run in running:
            waits = run["status"] == "accepted"
            self.listen(run["message_id"], run["agent"], run["reply_id"], waits=waits)

    def listen(self, message_id: str, agent: str, reply_id: str, *, waits: bool = False) -> None:
        """Show a reply while it is written. ``waits``: it has not begun, for all one knows."""
        elsewhere = agent.partition("@")[2] != self._client.node_id
        waits = waits or elsewhere or self.transcript.waits_for_turn(message_id, agent)
        writing = self.transcript.begin(message_id, agent, reply_id, now_iso(), waits=waits)
        if writing is not None:
            self._errands.run(self._stream(reply_id, writing))
            self.changed()

    async def _stream(self, reply_id: str, writing: Writing) -> None:
        question: dict[str, str] = {}
        while True:
            flow = self._client.notices(
                "chat.stream", message_id=reply_id, offset=writing.length, **question
            )
            try:
                async for delta in flow:
                    self.transcript.write(reply_id, delta["text"], delta.get("progress"))
                    self.changed()
                result = await flow.result()
            except RpcError:
                return  # why is in the log, or another caller asked and the log will tell
            finally:
                flow.close()
            if result["status"] != "input_required":
                return
            question = {"question": result["question"]}

    async def settled(self, reply_id: str) -> Item | None:
        """The reply as the log has it, or its question; None if neither is there soon."""
        until = asyncio.get_running_loop().time() + SETTLE_S
        while (left := until - asyncio.get_running_loop().time()) > 0:
            items = self.transcript.items
            if reply_id in items and reply_id not in self.transcript.writing:
                return items[reply_id]
            asks = [one for one in items.values() if one.question and one.reply == reply_id]
            if asks:
                return asks[0]
            await self._news.wait(left)
        return None
