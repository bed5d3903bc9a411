"""Liars among the nodes, at addresses of their choosing: at random, and crowded around one key.

They cannot sign for others. They can be silent, hide what they keep, tell only of each other, and
show what was true before; here they do all of it.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from aios_nb.hub.dht import codec
from aios_nb.hub.dht.codec import Find, Found, Get, Kept, Put
from aios_nb.hub.dht.engine import KademliaDht
from aios_nb.hub.dht.keys import key_of, number, point_of_node
from aios_nb.hub.dht.tuning import Tuning
from aios_nb.identity import Identity
from aios_nb.records import Scope
from tests.hub.dht.village import Hall, TimelessLoop, identity, presence_of, record_of, run
from tests.hub.dht.visitors import Visitor, contact, dht_in

pytestmark = pytest.mark.timeout(600)  # many nodes in one process, on any machine

HONEST = 50
AROUND_A_KEY = 90
"""Honest nodes where a key is crowded: a fifth beside them is more than the twenty that keep it."""
GROUND = 3000
"""Keys that the attackers made, to choose those next to a victim's."""
QUICK = Tuning(
    first_refresh_s=3600.0,
    hedge_floor_s=0.02,
    late_hedges=4.0,
    hard_timeout_s=0.5,
    requests_per_s=1e6,
    requests_burst=1_000_000,
)


class Sybil(Visitor):
    """One of a gang."""

    def __init__(self, hall: Hall, gang: list[Sybil], manner: str, **more: object) -> None:
        super().__init__(hall, "", **more)  # type: ignore[arg-type]
        self.gang = gang
        self.manner = manner
        self.point = number(point_of_node(self.node_id))
        self.kept: dict[bytes, bytes] = {}

    def answer(self, question: Find | Get | Put) -> bytes | None:
        if self.manner == "silent":
            return None
        if isinstance(question, Put):
            self.kept.setdefault(question.target, question.record)
            return codec.write(Kept(question.number, kept=True))
        record = b""
        if isinstance(question, Get) and self.manner == "stale":
            record = self.kept.get(question.target, b"")
        elif isinstance(question, Get) and self.manner == "forging":
            record = bytearray(self.kept.get(question.target, b""))
            record[-1:] = b"!"
            record = bytes(record)
        target = number(question.target)
        friends = sorted(self.gang, key=lambda each: each.point ^ target)
        told = [each for each in friends if each.point ^ target > number(question.beyond)]
        names = [each.presence.to_bytes() for each in told]
        shown, more = codec.page(names, record)
        return codec.write(Found(question.number, bytes(8), more, record, shown))


class Town:
    """Honest nodes and a gang, in one hall. Every address is in a block of its own."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.hall = Hall()
        self.honest: list[tuple[Identity, KademliaDht]] = []
        self.gang: list[Sybil] = []
        self._blocks = 0

    def _host(self) -> str:
        self._blocks += 1
        return f"20.{self._blocks >> 8}.{self._blocks & 255}.1"

    async def build(self, sybils: list[Identity], manners: list[str], honest: int = HONEST) -> None:
        for place, who in enumerate(sybils):
            self.gang.append(
                Sybil(
                    self.hall,
                    self.gang,
                    manners[place % len(manners)],
                    who=who,
                    host=self._host(),
                    scope=Scope.GLOBAL,
                )
            )
        for place in range(honest):
            who = identity(f"honest {place}")
            host = self._host()
            dht = dht_in(self.hall, f"honest {place}", QUICK, host=host, scope=Scope.GLOBAL)
            for _, known in self.rng.sample(self.honest, min(3, len(self.honest))):
                dht.meet(known._presence(), proven=True)
            self._meet_sybils(dht)
            await dht.settle()
            self.honest.append((who, dht))

    def _meet_sybils(self, dht: KademliaDht) -> None:
        """They greet whom they can, and are as well known as anyone."""
        for sybil in self.rng.sample(self.gang, min(3, len(self.gang))):
            dht.meet(sybil.presence, proven=True)

    async def publish_twice(self, owners: list[tuple[Identity, KademliaDht]]) -> dict[str, int]:
        """The newest seq of each owner."""
        newest = {}
        for age in (1, 0):
            for who, dht in owners:
                signed = record_of(who, scope=Scope.GLOBAL)
                signed = record_of(who, scope=Scope.GLOBAL, seq=signed.record.seq - 1000 * age)
                await dht.put(signed)
                newest[who.node_id] = signed.record.seq
        return newest

    async def close(self) -> None:
        for _, dht in self.honest:
            await dht.close()


def _ring(key: bytes, count: int) -> list[Identity]:
    made = [identity(f"ground {place}") for place in range(GROUND)]
    target = number(key)
    made.sort(key=lambda who: number(point_of_node(who.node_id)) ^ target)
    return made[:count]


def _malicious(share: float, honest: int) -> int:
    return round(honest * share / (1 - share))


@pytest.mark.parametrize(
    ("share", "right", "manners"),
    [
        (0.2, 0.99, ["stale", "hiding", "silent", "forging"]),
        (0.3, 0.95, ["stale", "hiding", "silent", "forging"]),
        (0.2, 0.99, ["stale"]),
    ],
)
def test_among_random_liars_the_newest_record_is_found(
    share: float, right: float, manners: list[str]
) -> None:
    async def story() -> None:
        town = Town(11)
        gang = [identity(f"liar {place}") for place in range(_malicious(share, HONEST))]
        await town.build(gang, manners)
        newest = await town.publish_twice(town.honest)
        good = tried = 0
        for who, _ in town.honest:
            for _, asker in town.rng.sample(town.honest, 2):
                signed = await asker.get(who.node_id)
                assert signed is None or signed.record.node == who.node_id
                tried += 1
                good += signed is not None and signed.record.seq == newest[who.node_id]
        assert good >= right * tried, f"{good} of {tried}"
        await town.close()

    run(story, TimelessLoop)


@pytest.mark.parametrize(("share", "right"), [(0.2, 0.99), (0.3, 0.95)])
def test_sybils_next_to_a_key_do_not_hide_its_record_nor_freeze_it(
    share: float, right: float
) -> None:
    async def story() -> None:
        town = Town(12)
        victim = identity("honest 0")
        key = key_of(victim.node_id)
        ring = _ring(key, _malicious(share, AROUND_A_KEY))
        await town.build(ring, ["stale", "hiding", "stale", "forging"], AROUND_A_KEY)
        target = number(key)
        nearest = min(dht.node.long_id ^ target for _, dht in town.honest)
        assert sum(each.point ^ target < nearest for each in town.gang) >= 20
        newest = await town.publish_twice(town.honest[:1])
        good = 0
        askers = town.honest[::2]
        for _, asker in askers:
            signed = await asker.get(victim.node_id)
            assert signed is None or signed.record.node == victim.node_id
            good += signed is not None and signed.record.seq == newest[victim.node_id]
        assert good >= right * len(askers), f"{good} of {len(askers)}"
        await town.close()

    run(story, TimelessLoop)


def test_a_flood_of_strangers_puts_no_live_contact_out_of_the_table() -> None:
    async def story() -> None:
        hall = Hall()
        dht = dht_in(hall, "victim", host="20.0.0.1", scope=Scope.GLOBAL)
        table = dht.protocol.router
        for place in range(60):
            friend = Visitor(hall, f"friend {place}", host=f"21.0.{place}.1", scope=Scope.GLOBAL)
            dht.meet(friend.presence, proven=True)
            known = dht._contacts.get(point_of_node(friend.node_id))
            assert known is not None
            known.confirmed = known.seen = True
        before = {each.id for each in table}
        assert len(before) == 60
        for place in range(20_000):
            stranger = contact("anyone", point=random.Random(place).randbytes(20))
            stranger.prefix = f"{place % 5000}"
            table.add_contact(stranger)
        assert before <= {each.id for each in table}
        assert len(table) < 2000
        waiting = sum(len(bucket.replacement_nodes) for bucket in table.buckets)
        assert waiting <= 100 * len(table.buckets)
        await dht.close()

    run(story, TimelessLoop)


def test_one_owners_addresses_get_few_places() -> None:
    async def story() -> None:
        hall = Hall()
        dht = dht_in(hall, "victim", host="20.0.0.1", scope=Scope.GLOBAL)
        for place in range(300):
            who = identity(f"neighbour {place}")
            host = f"30.1.2.{place % 250 + 1}"
            dht.meet(presence_of(who, host, place + 1, scope=Scope.GLOBAL), proven=True)
        assert 0 < len(dht.protocol.router) <= 10
        for place in range(300):
            who = identity(f"six {place}")
            host = f"2600:1:2:{place:x}::1"
            dht.meet(presence_of(who, host, scope=Scope.GLOBAL), proven=True)
        assert len(dht.protocol.router) <= 20
        await dht.close()
        home = dht_in(hall, "home")
        for place in range(100):
            who = identity(f"inhabitant {place}")
            home.meet(presence_of(who, "127.0.0.1", place + 1), proven=True)
        assert len(home.protocol.router) > 50
        await home.close()

    run(story, TimelessLoop)


def test_an_eclipsed_newcomer_gets_out_by_one_honest_contact() -> None:
    async def story() -> None:
        town = Town(13)
        gang = [identity(f"liar {place}") for place in range(30)]
        await town.build(gang, ["hiding"])
        newest = await town.publish_twice(town.honest[:5])
        newcomer = dht_in(town.hall, "newcomer", QUICK, host="40.0.0.1", scope=Scope.GLOBAL)
        for sybil in town.gang:
            newcomer.meet(sybil.presence, proven=True)
        newcomer.meet(town.honest[7][1]._presence(), proven=True)
        await newcomer.settle()
        for node_id, seq in newest.items():
            signed = await newcomer.get(node_id)
            assert signed is not None
            assert signed.record.seq == seq
        await newcomer.close()
        await town.close()

    run(story, TimelessLoop)


def test_a_node_that_tells_of_endless_others_is_not_followed_without_end() -> None:
    async def story() -> None:
        hall = Hall()
        asker = dht_in(hall, "asker", QUICK, host="20.0.0.1", scope=Scope.GLOBAL)
        made = 0

        class Endless(Visitor):
            def answer(self, question: Find | Get | Put) -> bytes | None:
                nonlocal made
                names = []
                for _ in range(8):
                    made += 1
                    host = f"22.{made >> 8}.{made & 255}.1"
                    friend = Endless(hall, f"endless {made}", host=host, scope=Scope.GLOBAL)
                    names.append(friend.presence.to_bytes())
                return codec.write(Found(question.number, bytes(8), True, b"", names))

        asker.meet(Endless(hall, "first", host="23.0.0.1", scope=Scope.GLOBAL).presence)
        assert await asker.get(identity("nobody").node_id) is None
        assert asker.stats["questions"] <= QUICK.asks_max
        await asker.close()
        await asyncio.sleep(0)

    run(story, TimelessLoop)
