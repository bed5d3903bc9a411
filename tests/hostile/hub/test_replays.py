"""Records that were true once, or never: by datagram, over a link, and on a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from aios_nb.errors import RpcError
from aios_nb.hub.catalogue import handle_of, version_of
from aios_nb.hub.gossip.packets import PACKET_LIMIT_BYTES, Ping, Whole, pack
from aios_nb.identity import TAG_RECORD, Identity
from aios_nb.records import AgentRecord, Signed, sign_record, withdrawal
from tests.between.liar import Liar
from tests.hostile.hub.seeds import agent, key, now_ms, tells, word
from tests.hostile.hub.test_datagrams import Stranger
from tests.network.conftest import Make, found, states, until, works
from tests.sites import TestSite

Tell = Callable[[list[bytes]], None]
AUTHOR = key("author")
HOUR_MS = 3_600_000


class _Site:
    """A node, and a way to tell it records."""

    def __init__(self, site: TestSite, tell: Tell) -> None:
        self.site = site
        self.tell = tell

    def knows(self) -> set[bytes]:
        """What it holds of the author."""
        catalogue = self.site.rooms.network.catalogue
        return self.site.on_loop(lambda: {one.to_bytes() for one in catalogue.of(AUTHOR.node_id)})

    def takes(self, *contents: bytes) -> set[bytes]:
        """What it holds when it has read these, and one more that is fine."""
        last = agent(AUTHOR, "last", epoch=EPOCH).to_bytes()
        self.tell([*contents, last])
        until(lambda: last in self.knows())
        return self.knows() - {last}

    def count(self, why: str) -> int:
        return int(self.site.rooms.network.catalogue.counts[why])


EPOCH = now_ms()


@pytest.fixture(params=["datagram", "link", "page"])
def told(request: pytest.FixtureRequest, node: Make) -> Iterator[_Site]:
    """The author is a member for it."""
    site = node("a", works("baker"))
    there = word(AUTHOR, ("127.0.0.1", 20_000), epoch=EPOCH).to_bytes()
    with Liar() as liar:
        if request.param == "page":
            yield _Site(site, _by_page(site, liar, there))
            return
        tells(liar, [there])
        liar.call(site, "gossip.sync", digest=b"")
        until(lambda: {AUTHOR.node_id, liar.node_id} <= set(states(site)))
        if request.param == "link":
            yield _Site(site, _by_link(site, liar))
            return
        teller = Stranger(key("teller"))
        try:
            token = teller.proves_itself(site)
            until(lambda: teller.identity.node_id in states(site))
            yield _Site(
                site, lambda all_: _each(all_, lambda one: teller.gossips(site, token, one))
            )
        finally:
            teller.socket.close()


def _by_page(site: TestSite, liar: Liar, there: bytes) -> Tell:
    def tell(contents: list[bytes]) -> None:
        tells(liar, [there], contents)
        liar.hang_up()  # a new link is a new pull
        liar.call(site, "gossip.sync", digest=b"")

    return tell


def _by_link(site: TestSite, liar: Liar) -> Tell:
    return lambda contents: _each(
        contents, lambda packet: liar.call(site, "gossip.packet", data=packet)
    )


def _each(contents: list[bytes], send: Callable[[bytes], Any]) -> None:
    for content in contents:
        handle = handle_of(f"agent/main/{AUTHOR.node_id}/{_name(content)}")
        send(pack([Whole(0, handle, version_of(content[96:]), content[:1000])]))


def _name(content: bytes) -> str:
    try:
        return str(msgspec.msgpack.decode(content[96:])["name"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return "adder"


def _ended(signed: Signed, seq: int) -> Signed:
    assert isinstance(signed.record, AgentRecord)
    record = withdrawal(signed.record, seq=seq, epoch=signed.record.epoch, now_ms=seq)
    return sign_record(AUTHOR, record)


def test_an_older_one_does_not_come_back(told: _Site):
    now = now_ms()
    old = agent(AUTHOR, "adder", epoch=EPOCH, at=now - 5000).to_bytes()
    new = agent(AUTHOR, "adder", epoch=EPOCH, at=now).to_bytes()
    assert told.takes(old) == {old}
    assert told.takes(new) == {new}
    assert told.takes(old) == {new}


def test_what_was_withdrawn_does_not_come_back(told: _Site):
    now = now_ms()
    offered = agent(AUTHOR, "adder", epoch=EPOCH, at=now)
    end = _ended(offered, now + 1).to_bytes()
    assert told.takes(offered.to_bytes(), end) == {end}
    assert told.takes(offered.to_bytes()) == {end}
    assert found(told.site, "name:adder") == {}


def test_another_life_does_not_come_back(told: _Site):
    before = agent(AUTHOR, "adder", epoch=EPOCH - 60_000, at=now_ms() + 60_000).to_bytes()
    assert told.takes() == set()
    assert told.takes(before) == set()
    assert found(told.site, "name:adder") == {}


def test_two_versions_of_one_number_end_as_one_and_are_noticed(told: _Site):
    now = now_ms()
    one = agent(AUTHOR, "adder", epoch=EPOCH, at=now, about="adds").to_bytes()
    other = agent(AUTHOR, "adder", epoch=EPOCH, at=now, about="takes your money").to_bytes()
    greater = max(one, other, key=lambda content: content[96:])
    assert told.takes(one, other) == {greater}
    assert told.takes(one) == {greater}
    assert told.count("equivocation") >= 1
    catalogue = told.site.rooms.network.catalogue
    assert told.site.on_loop(lambda: catalogue.has_equivocated(AUTHOR.node_id))


def test_what_is_too_long_out_of_time_of_elsewhere_or_not_signed_is_not_taken(told: _Site):
    now = now_ms()
    good = agent(AUTHOR, "adder", epoch=EPOCH, at=now).record
    bad = [
        _raw(good, extra="x" * 900),
        _raw(good, about="x" * 401),
        _raw(good, net="other"),
        _raw(good, seq=now + 2 * HOUR_MS, exp=now + 3 * HOUR_MS),
        _raw(good, exp=now + 1000 * HOUR_MS),
        _raw(good, seq=now - 30 * HOUR_MS, exp=now - 6 * HOUR_MS),
        _raw(good, node=key("victim").node_id),
        _raw(good, name="../etc"),
        _raw(good, tags=["x"] * 9),
        _raw(good, v=2),
        _raw(good, by=key("thief")),
        agent(AUTHOR, "adder", epoch=EPOCH).to_bytes()[:-1],
        b"\0" * 200,
    ]
    assert told.takes(*bad) == set()
    assert found(told.site, "name:adder") == {}


def _raw(record: AgentRecord, by: Identity = AUTHOR, **fields: Any) -> bytes:
    """Any map at all, signed as it is, under the author's key."""
    plain = msgspec.to_builtins(record, builtin_types=(bytes,)) | fields
    payload = msgspec.msgpack.encode(dict(sorted(plain.items())))
    return AUTHOR.public_key + by.sign(TAG_RECORD, payload) + payload


@pytest.mark.parametrize(
    "params",
    [
        {"digest": b"\0" * 1023},
        {"digest": b"\0" * 1025},
        {"digest": b"\0" * 5000},
        {"digest": b"", "after": "r" + "0" * 15},
        {"digest": b"", "after": "r" + "z" * 16},
        {"digest": b"", "after": "p../../../../etc"},
        {"digest": b"", "after": "p" * 4000},
        {"digest": "not base64 \u202e"},
        {"digest": 7},
    ],
)
def test_absurd_pages_are_refused(node: Make, params: dict[str, Any]):
    site = node("a", works("baker"))
    with Liar() as liar:
        with pytest.raises(RpcError) as refused:
            liar.call(site, "gossip.sync", **params)
        assert refused.value.code == -32602
        assert liar.call(site, "gossip.sync", digest=b"\xff" * 1024)["records"]
        assert liar.call(site, "gossip.sync", digest=b"", after="r" + "f" * 16)["records"] == []


def test_pages_are_not_read_out_without_end(node: Make):
    site = node("a", works("baker"))
    with Liar() as liar:
        answers = liar.calls(site, "gossip.sync", [{"digest": b"\0" * 1024}] * 300)
        refused = [one for one in answers if isinstance(one, RpcError)]
        assert 200 < len(refused) < 300
        assert {one.code for one in refused} == {-32005}


def test_packets_over_a_link_that_are_none_do_no_harm(node: Make):
    site = node("a", works("baker"))
    with Liar() as liar:
        tells(liar)
        liar.call(site, "gossip.sync", digest=b"")
        until(lambda: liar.node_id in states(site))
        for data in (b"", b"\xc1", b"\0" * (PACKET_LIMIT_BYTES + 1), b"\x91" * 1100, b"\0" * 4096):
            liar.call(site, "gossip.packet", data=data)
        with pytest.raises(RpcError):
            liar.call(site, "gossip.packet", data=b"\0" * 4097)
        assert site.rooms.network._spreading.gossip.counts["junk"] >= 4
        liar.call(site, "gossip.packet", data=pack([Ping(7)]))
        until(lambda: "gossip.packet" in liar.methods())
