"""Who may come in, who makes room, and who goes when strangers have us hold too much."""

from __future__ import annotations

import pytest

from aios_nb.access import Caller, Principal
from aios_nb.config import Limits
from aios_nb.wire.peer.crowd import Crowd


class Linked:
    """As much of a link as a crowd looks at."""

    def __init__(self, node_id: str, kind: Caller = Caller.NODE, **state: float) -> None:
        self.node_id = node_id
        self.principal = Principal(kind, node_id)
        self.quiet = not state.get("busy")
        self.asked_at = state.get("asked_at", 0.0)
        self.held_bytes = int(state.get("held", 0))
        self.parted = False
        self.went = ""

    def part(self, why: str) -> None:
        self.parted, self.went = True, why

    abort = part


def crowd(*links: Linked, joined: str = "", **limits: int) -> Crowd:
    made = Crowd(Limits(**limits), lambda node: node == joined)
    made.links.update(links)
    return made


def test_the_stranger_that_was_idle_longest_goes():
    links = [Linked("a", asked_at=2), Linked("b", asked_at=1), Linked("c", busy=1, asked_at=0)]
    full = crowd(*links, stranger_links=3)

    assert full.has_room(Caller.NODE)
    assert not any(link.parted for link in links)
    assert full.make_room(Caller.NODE)
    assert [link.node_id for link in links if link.parted] == ["b"]


def test_a_joined_node_and_a_known_one_make_room_for_nobody():
    links = [Linked("joined"), Linked("known", Caller.KNOWN), Linked("busy", busy=1)]
    full = crowd(*links, joined="joined", stranger_links=2)

    assert not full.has_room(Caller.NODE)
    assert not full.make_room(Caller.NODE)
    assert full.has_room(Caller.KNOWN)


def test_strangers_make_room_for_known_nodes():
    stranger = Linked("stranger")
    full = crowd(stranger, Linked("known", Caller.KNOWN), links=2)

    assert full.make_room(Caller.KNOWN)
    assert stranger.went == "idle"


@pytest.mark.parametrize("kind", [Caller.KNOWN, Caller.NODE])
def test_without_an_idle_stranger_a_full_house_is_full(kind):
    assert not crowd(Linked("busy", busy=1), links=1).has_room(kind)


def test_the_heaviest_strangers_go_until_the_rest_is_light_enough():
    links = [Linked(name, held=held) for name, held in (("a", 5), ("b", 50), ("c", 30), ("d", 4))]
    known = Linked("known", Caller.KNOWN, held=1000)
    heavy = crowd(*links, known, stranger_held_bytes=10)

    heavy.weigh()

    assert [link.node_id for link in links if link.parted] == ["b", "c"]
    assert not known.parted
