"""The doctor from outside: what it finds on a node that is well, and on nodes that are not."""

from __future__ import annotations

import asyncio
from typing import Any

import aios_nb as aios
from aios_nb.people.checks import Health, board
from aios_nb.people.checks.interop import LOOKS, interop
from aios_nb.wire.a2a import cards
from aios_nb.wire.guard import Guard, Need
from tests.sites import TestSite


def looked(site: TestSite) -> dict[str, Any]:
    found = asyncio.run(interop(site.node.run_info))
    return {check.about: check for check in found}


def ill(site: TestSite) -> set[str]:
    found = looked(site)
    assert list(found) == [about for about, _ in LOOKS]
    for check in found.values():
        assert check.health is Health.OK or check.fix, check
    return {about for about, check in found.items() if check.health is not Health.OK}


def test_a_node_that_is_well_passes_everything_and_keeps_no_trace(make_site):
    site = make_site()
    mine = site.call("chat.send", agent="echo", text="mine")["conversation"]

    assert ill(site) == set()
    rows = site.call("chat.list")["conversations"]
    assert [row["conversation"] for row in rows] == [mine]
    ((title, some),) = board(list(looked(site).values()))
    assert title == f"What programs of others find: {len(some)} of {len(LOOKS)}"


def test_an_agent_that_does_not_answer_is_seen_by_every_protocol(make_site):
    @aios.agent(name="echo", access="private")
    def echo(text):
        raise ValueError("out of order")

    assert ill(make_site(echo)) == {"mcp 2026-07", "mcp 2025-11", "a2a", "envelope"}


def test_an_agent_that_its_owner_has_opened_is_no_hole(make_site):
    @aios.agent(name="echo", access="public")
    def echo(text):
        return text

    assert ill(make_site(echo)) == set()


def test_a_card_that_was_changed_after_it_was_signed_is_found(make_site, monkeypatch):
    sign = cards.signed
    monkeypatch.setattr(cards, "signed", lambda *args: {**sign(*args), "description": "better"})

    assert ill(make_site()) == {"a2a cards"}


def test_a_guard_that_sleeps_is_found(make_site, monkeypatch):
    monkeypatch.setattr(Guard, "screen", lambda *_: None)
    assert ill(make_site()) == {"web pages"}


def test_a_guard_that_takes_everyone_for_the_owner_is_found(make_site, monkeypatch):
    identify = Guard.identify

    def careless(self, headers, peer, need):
        found = identify(self, headers, peer, need)
        return found if need in {Need.HELLO, Need.NOTHING} else self._owner

    monkeypatch.setattr(Guard, "identify", careless)
    assert ill(make_site()) == {"strangers"}


def test_a_node_that_is_gone_is_one_line(make_site):
    site = make_site()
    run = site.node.run_info
    site.stop()
    (check,) = asyncio.run(interop(run))
    assert (check.health, bool(check.fix)) == (Health.FAIL, True)
