"""The owner's conversations stay; what strangers leave is bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aios_nb import params as p
from aios_nb.access import Caller, Principal
from aios_nb.chat import retention
from aios_nb.errors import InvalidParams
from tests.sites import TestSite, limits

MakeSite = Callable[..., TestSite]
STRANGER = Principal(Caller.NODE, "a" * 32)


async def shared(text: str) -> str:
    """Answers anyone of the network."""
    return text


def send_as(site: TestSite, principal: Principal, text: str) -> dict[str, Any]:
    chat = site.node._rooms.chat  # type: ignore[union-attr]
    return site.node.run(lambda: chat.send(principal, p.Send("shared", text)))


def ids(site: TestSite) -> set[str]:
    return {row["conversation"] for row in site.call("chat.list", limit=1000)["conversations"]}


def tidy(site: TestSite) -> None:
    site.node.run(site.node._rooms.chat.tidy)  # type: ignore[union-attr]


def test_strangers_logs_go_when_they_are_too_much_oldest_first(make_site: MakeSite) -> None:
    site = make_site(shared, limits=limits(stranger_log_bytes=10_000))
    mine = site.call("chat.send", agent="shared", text="y" * 9000)["conversation"]
    theirs = [send_as(site, STRANGER, "x" * 1000)["conversation"] for _ in range(10)]
    tidy(site)
    left = ids(site)
    assert mine in left
    assert left - {mine} == set(theirs[-3:])  # 2,600 bytes each


def test_strangers_logs_go_when_they_are_too_old(make_site: MakeSite, monkeypatch: Any) -> None:
    site = make_site(shared)
    mine = site.call("chat.send", agent="shared", text="y")["conversation"]
    theirs = send_as(site, STRANGER, "x")["conversation"]
    tidy(site)
    assert ids(site) == {mine, theirs}
    now = retention.time.time()
    monkeypatch.setattr(retention.time, "time", lambda: now + 8 * 86_400)
    tidy(site)
    assert ids(site) == {mine}


def test_a_stranger_sees_only_its_own(make_site: MakeSite) -> None:
    site = make_site(shared)
    mine = site.call("chat.send", agent="shared", text="y")["conversation"]
    theirs = send_as(site, STRANGER, "x")["conversation"]
    chat = site.node._rooms.chat  # type: ignore[union-attr]
    listed = site.node.run(lambda: chat.list(STRANGER, p.List()))["conversations"]
    assert [row["conversation"] for row in listed] == [theirs]
    for conversation in (mine, "c-does-not-exist"):
        with pytest.raises(InvalidParams, match=f"no such conversation: {conversation}"):
            site.on_loop(lambda: chat.history(STRANGER, p.History(conversation)))  # noqa: B023


def test_ids_are_unique_per_caller(make_site: MakeSite) -> None:
    site = make_site(shared)
    chat = site.node._rooms.chat  # type: ignore[union-attr]
    mine = site.call("chat.send", agent="shared", text="y", message_id="same")
    theirs = site.node.run(lambda: chat.send(STRANGER, p.Send("shared", "x", message_id="same")))
    assert mine["conversation"] != theirs["conversation"]
    assert theirs["text"] == "x"
