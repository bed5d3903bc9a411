"""The names of conversations whose home is another node."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from aios_nb.chat import sides
from aios_nb.chat.log import Draft, Log
from aios_nb.chat.sides import Sides, side_id
from aios_nb.envelope import ID, Kind, Sender
from aios_nb.store import Store

NODE = "abcdefghijklmnopqrstuvwxyz234567"
OTHER = "765432zyxwvutsrqponmlkjihgfedcba"


def test_two_homes_may_use_the_same_name() -> None:
    assert side_id(NODE, "talk") != side_id(OTHER, "talk")
    assert side_id(NODE, "x" * 128) != side_id(OTHER, "x" * 128)


def test_a_home_cannot_choose_one_of_our_names() -> None:
    assert side_id(NODE, "c0123").startswith("x:")


def test_every_name_a_home_may_choose_has_one_here() -> None:
    names = [letter * length for letter in "abz:." for length in range(1, 129)]
    ours = {side_id(NODE, name) for name in names}
    assert len(ours) == len(names)
    assert all(ID.fullmatch(name) for name in ours)


def test_a_long_name_is_not_another_ones_short_name() -> None:
    long = side_id(NODE, "a" * 128)
    assert side_id(NODE, long.rpartition(":")[2]) != long
    assert side_id(NODE, long[:90]) != long


def test_new_conversations_of_a_home_stand_behind_its_older_ones() -> None:
    theirs = [f"c{moment:011x}0123456789abcdef" for moment in range(1000, 3000, 7)]
    assert [side_id(NODE, name) for name in theirs] == sorted(side_id(NODE, n) for n in theirs)


def said(text: str) -> Draft:
    return Draft(f"m-{text}", Kind.MESSAGE, Sender(f"owner@{NODE}", "human"), text)


def test_a_conversation_is_found_again_whatever_the_order_of_its_name(tmp_path: Path) -> None:
    names = ["c5", "c3", "c9", "c1", "z" * 128, "c7", "c99", "c:", "y" * 100]

    async def first_life(store: Store) -> None:
        log = Log(store)
        for name in names:
            ours, found = log.side(NODE, name)
            assert found is None
            new = log.new(NODE, ["a"], conversation_id=ours, theirs=name)
            assert log.side(NODE, name) == (ours, new)
            await log.append(new, said(name))
            log._shelf.drop(new)  # long unused
        check(log)
        await store.close()

    async def second_life(store: Store) -> None:
        check(Log(store))
        await store.close()

    def check(log: Log) -> None:
        for name in names:
            ours, found = log.side(NODE, name)
            assert found is not None
            assert (found.id, found.theirs, found.last_seq) == (ours, name, 1)
        for name in ("c4", "c999", "c", "z" * 127, "a" * 128):
            assert log.side(NODE, name)[1] is None
            assert log.side(OTHER, name)[1] is None

    asyncio.run(first_life(Store.open(tmp_path / "node.db")))
    asyncio.run(second_life(Store.open(tmp_path / "node.db")))


def test_a_rising_name_is_new_without_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(tmp_path / "node.db")
    known = Sides(store)
    assert known.is_new(NODE, side_id(NODE, "c1"))
    known.seen(NODE, side_id(NODE, "c1"))
    monkeypatch.setattr(store, "read", lambda *_: pytest.fail("looked"))
    assert known.is_new(NODE, side_id(NODE, "c2"))
    assert not known.is_new(NODE, side_id(NODE, "c1"))
    assert not known.is_new(NODE, side_id(NODE, "c0"))
    store.close_now()


def test_of_too_many_homes_the_database_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sides, "HOMES", 1)
    store = Store.open(tmp_path / "node.db")
    known = Sides(store)
    assert known.is_new(NODE, side_id(NODE, "c1"))
    assert not known.is_new(OTHER, side_id(OTHER, "c1"))
    assert known.is_new(NODE, side_id(NODE, "c2"))
    store.close_now()
