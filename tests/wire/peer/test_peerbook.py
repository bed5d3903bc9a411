"""What is remembered of other nodes: whether they are there, for how long, and of how many."""

from __future__ import annotations

from aios_nb.wire.peer.peerbook import DEAD_AFTER_S, IDLE_ALIVE_S, REMEMBERED_MAX, PeerBook
from tests.clock import Clock


def test_the_state_of_a_node_follows_what_was_seen(clock: Clock):
    book = PeerBook(clock)
    book.up("n", "name")

    def state() -> str | None:
        return book.state(book.note("n"))

    assert state() == "alive"
    book.down("n", "broke")
    assert state() == "suspect"
    book.failed("n", "http://x")
    clock.now += DEAD_AFTER_S + 1
    assert state() == "dead"
    book.up("n", "name")
    book.down("n", "idle")
    assert state() == "alive"
    clock.now += IDLE_ALIVE_S + 1
    assert state() is None
    assert book.rows(lambda _: None) == []
    book.failed("n", "http://x")
    assert state() == "suspect"
    book.up("n", "name")
    book.down("n", "left")
    assert state() == "left"


def test_the_book_is_bounded_and_keeps_who_is_linked(clock: Clock):
    book = PeerBook(clock)
    book.up("linked", "name")
    for n in range(REMEMBERED_MAX + 50):
        book.failed(f"n{n}", "http://x")

    rows = book.rows(lambda _: None)
    assert len(rows) == REMEMBERED_MAX
    assert rows[0]["node_id"] == "linked"
