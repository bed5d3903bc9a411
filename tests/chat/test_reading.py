"""Reading stays fast as the log grows: every question goes through an index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from aios_nb.store import Store
from tests.sites import TestSite

MakeSite = Callable[..., TestSite]


def test_no_question_of_everyday_use_scans_the_log(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: dict[str, str] = {}
    read = Store.read

    def explained(self: Store, sql: str, params: Sequence[Any] = ()) -> list[Any]:
        rows = read(self, f"EXPLAIN QUERY PLAN {sql}", params)
        plans[sql] = "; ".join(row[-1] for row in rows)
        return read(self, sql, params)

    async def recall(text: str, ctx: Any) -> str:
        return str(len(ctx.messages))

    monkeypatch.setattr(Store, "read", explained)
    site = make_site(recall)
    site.call("chat.send", agent="recall", text="first")
    sent = site.call("chat.send", agent="recall", text="x", message_id="m")
    conversation = sent["conversation"]
    site.call("chat.send", agent="recall", text="y", conversation=conversation)
    site.call("chat.send", agent="recall", text="x", message_id="m")
    site.call("chat.cancel", message_id="m")
    site.stream(message_id="m", offset=0)
    site.call("chat.post", conversation=conversation, text="z", message_id="p")
    site.call("chat.post", conversation=conversation, text="z", message_id="p")
    site.call("chat.history", conversation=conversation, after=1)
    site.call("chat.edit", conversation=conversation, message_id="m", text="xx")
    site.call("chat.list")
    site.call("node.info")
    log = site.rooms.chat.log
    site.on_loop(lambda: log._shelf.drop(log.get(conversation)))
    site.call("chat.history", conversation=conversation)
    assert len(plans) > 8
    scans = {sql: plan for sql, plan in plans.items() if _scans(plan)}
    assert scans == {}


def _scans(plan: str) -> bool:
    """Whether it reads a table of many rows from end to end, without an index."""
    return any(
        step.startswith(("SCAN events", "SCAN e", "SCAN conversations", "SCAN c"))
        and "USING" not in step
        for step in plan.split("; ")
    )


def test_the_check_itself_can_fail(tmp_path: Any) -> None:
    opened = Store.open(tmp_path / "a.db")
    (row,) = opened.read("EXPLAIN QUERY PLAN SELECT * FROM events WHERE text = 'x'")
    assert _scans(row[-1])
    opened.close_now()
