"""More agents than a node has room for: it keeps its own, and asks others for the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from aios_nb.hub.looking import SignedRow
from aios_nb.hub.searching import Page
from aios_nb.hub.sites import WHY
from aios_nb.identity import from_base64url, to_base64url
from aios_nb.records import Signed
from tests.network.conftest import Make, found, meet, refused, say, the, until, works
from tests.network.madeup import MadeUp
from tests.sites import TestSite, limits

TIGHT = limits(records=8, agents_per_publisher=4)
TRADES = ("baker", "miller", "smith", "tailor")


def _crowd(node: Make, seed: TestSite) -> dict[str, TestSite]:
    """Five nodes with four agents each, by the ids of these."""
    sites = {}
    for n in range(5):
        agents = [works(f"{trade}{n}", f"{trade} number {n}") for trade in TRADES]
        site = node(f"p{n}", *agents, join=seed)
        sites |= {the(site, f"{trade}{n}"): site for trade in TRADES}
    return sites


def _held(site: TestSite) -> set[str]:
    """The agents whose records that node has."""
    catalogue = site.rooms.network.catalogue
    return site.on_loop(lambda: {signed.record.id for signed in catalogue.agents()})


def test_what_has_no_room_is_found_by_asking_and_called_by_its_name(node: Make):
    large = node("large")
    offered = _crowd(node, large)
    small = node("small", *(works(f"own{n}") for n in range(12)), join=large, limits=TIGHT)
    own = {the(small, f"own{n}") for n in range(12)}
    until(lambda: set(offered) <= _held(large))
    until(lambda: small.on_loop(lambda: small.rooms.network.catalogue.crowded))
    meet(small, large)

    assert own <= _held(small)
    assert own <= set(found(small, "own answers", 20))
    assert len(_held(small) - own) <= 8
    missing = set(offered) - _held(small)
    assert missing
    for agent in sorted(missing):
        name = agent.partition("@")[0]
        row = found(small, f"{name[:-1]} number {name[-1]}")[agent]
        assert row["live"]
        assert row["verified"]
    for agent in sorted(missing)[:3]:
        assert say(small, agent.partition("@")[0]).endswith("has hello")
    assert "no such agent" in str(refused(small, "nobody-has-this"))


def test_a_larger_site_that_lies_is_not_believed(node: Make):
    large = node("large")
    offered = _crowd(node, large)
    small = node("small", join=large, limits=TIGHT)
    until(lambda: set(offered) <= _held(large))
    until(lambda: small.on_loop(lambda: small.rooms.network.catalogue.crowded))
    meet(small, large)
    true, other = sorted(set(offered) - _held(small))[:2]
    genuine, second = _row(large, true), _row(large, other)
    mallory = MadeUp()
    told = [
        msgspec.structs.replace(genuine, about="does it all", live=False),
        msgspec.structs.replace(genuine, id=f"fake@{mallory.id}", record=_stolen(genuine, mallory)),
        msgspec.structs.replace(second, record=_changed(second)),
        msgspec.structs.replace(second, record=None),
        msgspec.structs.replace(second, record=_text(MadeUp(net="other").agent("elsewhere"))),
        msgspec.structs.replace(second, record=_text(mallory.node(("http", "127.0.0.1", 9)))),
    ]

    async def lies(*_: Any) -> Page:
        return Page(told, len(told))

    large.rooms.finding._search = lies
    far = [row for row in found(small, "number").values() if row["why"] == WHY]
    assert [(row["id"], row["about"], row["live"]) for row in far] == [(true, genuine.about, True)]
    assert "no such agent" in str(refused(small, "fake"))


def _row(site: TestSite, agent: str) -> SignedRow:
    """The row of an agent of another node, as a site tells it."""

    def look() -> SignedRow:
        network = site.rooms.network
        shown, content = network.others.get(agent), network.record_of(agent)
        assert shown is not None
        assert content is not None
        return SignedRow(**msgspec.structs.asdict(shown[0]), record=to_base64url(content))

    return site.on_loop(look)


def _text(signed: Signed) -> str:
    return to_base64url(signed.to_bytes())


def _stolen(row: SignedRow, thief: MadeUp) -> str:
    """That record under another key."""
    key = thief.identity.public_key
    return to_base64url(key + from_base64url(row.record or "")[len(key) :])


def _changed(row: SignedRow) -> str:
    content = bytearray(from_base64url(row.record or ""))
    content[content.index(b"number")] ^= 1
    return to_base64url(bytes(content))


def test_64_agents_of_a_stranger_and_all_of_one_that_is_allowed(node: Make, tmp_path: Path):
    home = tmp_path / "home"
    many = [works(f"agent{n}") for n in range(70)]
    b = node("b", *many, home=home)
    sibling = node("sibling", home=home)
    a = node("a", join=b)
    everyone = {the(b, f"agent{n}") for n in range(70)}
    assert everyone <= _held(b)
    until(lambda: everyone <= _held(sibling))
    until(lambda: len(_held(a)) == 64)
    a.call("nodes.allow", node=b.node.node_id)
    until(lambda: everyone <= _held(a))
