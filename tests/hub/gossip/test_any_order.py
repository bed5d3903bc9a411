"""Whatever happens in whatever order: what must hold always, and what must hold in the end."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aios_nb.hub.gossip import LAN, LIVING, Life
from aios_nb.hub.gossip.packets import Alive, Suspect, Whole, pack, raw_id
from aios_nb.hub.gossip.rumours import RUMOURS_MAX
from aios_nb.records import Signed, rank
from aios_nb.sim.virtual import Weather
from tests.hub.gossip.networks import Watched

SIZE = 6
numbers = st.integers(0, SIZE - 1)
names = st.sampled_from(["adder", "clock"])


class Turmoil(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ranks: dict[tuple[str, int, str], tuple[int, int, bool]] = {}
        self.newest: dict[str, Signed] = {}
        """The oracle: of all that was published, the one of the greatest rank for each key."""
        self.captured: list[bytes] = []

    @initialize(seed=st.integers(0, 1000), loss=st.sampled_from([0.0, 0.1, 0.25]))
    def begin(self, seed: int, loss: float) -> None:
        self.town = Watched(seed, pace=LAN, weather=Weather(loss=loss, duplication=0.1))
        self.town.add(SIZE, skew_s=1800)
        self.town.join_all()
        self.town.run(1)

    def awake(self, number: int):
        """That node or the next one that is up and not frozen."""
        nodes = [self.town.node((number + step) % SIZE) for step in range(SIZE)]
        return next((node for node in nodes if node.is_up and not node.is_frozen), None)

    def seed_for(self, node):
        others = [one for one in self.town.up if one is not node and not one.is_frozen]
        return others[0] if others else None

    # What happens -------------------------------------------------------------------------

    @rule(seconds=st.floats(0.05, 8))
    def time_passes(self, seconds: float) -> None:
        self.town.run(seconds)

    @precondition(lambda self: len(self.town.up) > 2)
    @rule(number=numbers)
    def crash(self, number: int) -> None:
        self.town.kill(self.town.node(number))

    @precondition(lambda self: len(self.town.up) > 2)
    @rule(number=numbers)
    def leave(self, number: int) -> None:
        node = self.town.node(number)
        if node.is_up and not node.is_frozen:
            self.town.leave(node)

    @rule(number=numbers)
    def restart(self, number: int) -> None:
        node = self.town.node(number)
        seed = self.seed_for(node)
        if seed is not None:
            for key in [key for key, one in self.newest.items() if one.record.node == node.node_id]:
                del self.newest[key]  # what it offered before it offers no more
            self.town.restart(node, seed)

    @rule(number=numbers)
    def freeze(self, number: int) -> None:
        self.town.freeze(self.town.node(number))

    @rule(number=numbers)
    def thaw(self, number: int) -> None:
        if self.town.node(number).is_frozen:
            self.town.thaw(self.town.node(number))

    @rule(cut=st.integers(1, SIZE - 1))
    def partition(self, cut: int) -> None:
        nodes = list(self.town.nodes.values())
        self.town.partition(nodes[:cut], nodes[cut:])

    @rule(one=numbers, other=numbers)
    def cut_one_way(self, one: int, other: int) -> None:
        self.town.cut(self.town.node(one), self.town.node(other))

    @rule()
    def heal(self) -> None:
        self.town.heal()

    @rule(number=numbers, name=names, withdrawn=st.booleans())
    def publish(self, number: int, name: str, withdrawn: bool) -> None:
        node = self.awake(number)
        if node is None:
            return
        town = self.town
        signed = town.withdraw(node, name) if withdrawn else town.publish(node, name)
        self.newest[signed.key] = signed
        self.captured.append(
            pack([Whole(0, town_handle(node, signed), b"replayed", bytes_of(signed))])
        )

    @rule(number=numbers)
    def capture(self, number: int) -> None:
        self.captured.append(pack([Alive(self.town.node(number).gossip.presence.to_bytes())]))

    @precondition(lambda self: self.captured)
    @rule(data=st.data(), one=numbers, other=numbers)
    def replay(self, data, one: int, other: int) -> None:
        packet = data.draw(st.sampled_from(self.captured))
        self.town.inject(self.town.node(one), self.town.node(other), packet)

    @rule(one=numbers, other=numbers, victim=numbers, bit=st.integers(0, 700))
    def forge(self, one: int, other: int, victim: int, bit: int) -> None:
        content = bytearray(self.town.node(victim).gossip.presence.to_bytes())
        content[bit % len(content)] ^= 1 << bit % 8
        self.town.inject(self.town.node(one), self.town.node(other), pack([Alive(bytes(content))]))

    @rule(one=numbers, other=numbers, victim=numbers)
    def accuse(self, one: int, other: int, victim: int) -> None:
        said = self.town.node(victim).gossip.presence.said
        raw = raw_id(self.town.node(victim).node_id)
        claim = pack([Suspect(raw, (said.epoch, said.incarnation), 600_000)])
        self.town.inject(self.town.node(one), self.town.node(other), claim)

    # What always holds --------------------------------------------------------------------

    @invariant()
    def nothing_unsigned_and_no_rank_goes_back(self) -> None:
        for node in self.town.up:
            for node_id, member in node.gossip.members.items():
                assert self.town.genuine(member.presence)
                assert member.presence.node_id == node_id
                key = (node.node_id, node.epoch, node_id)
                assert member.presence.rank >= self.ranks.get(key, (0, 0, False))
                self.ranks[key] = member.presence.rank
                assert (member.state is Life.LEFT) == member.presence.rank[2]

    @invariant()
    def queues_are_bounded(self) -> None:
        for node in self.town.up:
            assert node.gossip.waiting <= RUMOURS_MAX
            assert len(node.buffered) <= 200

    @invariant()
    def no_probe_and_no_suspect_is_forgotten(self) -> None:
        for node in self.town.up:
            detector = node.gossip._detector
            probes = detector._probes
            assert probes.next_at() == min(
                (probe.due for probe in probes._by_seq.values()), default=float("inf")
            )
            measure = detector._measure()
            for node_id, suspicion in detector._suspicions.items():
                assert detector._next_look() <= detector._next_of(node_id, suspicion, *measure)

    @invariant()
    def nobody_has_a_later_record_than_was_published(self) -> None:
        for node in self.town.up:
            for key, newest in self.newest.items():
                held = node.catalogue.get(key)
                assert held is None or rank(held) <= rank(newest)

    # What holds in the end ----------------------------------------------------------------

    def teardown(self) -> None:
        if not hasattr(self, "town"):
            return
        town = self.town
        town.heal()
        for node in list(town.up):
            if node.is_frozen:
                town.thaw(node)
        for node in town.up:  # a link is enough for those whom nobody remembers
            town.join(node, town.up[0])
        assert town.run_until(self.settled, 200, 0.5), self.view()

    def settled(self) -> bool:
        up = {node.node_id for node in self.town.up}
        for node in self.town.up:
            living = {one for one, m in node.gossip.members.items() if m.state in LIVING}
            if living != up - {node.node_id}:
                return False
            for key, newest in self.newest.items():
                if newest.record.node in up and node.catalogue.get(key) != newest:
                    return False
        return True

    def view(self) -> str:
        return str(
            [
                (
                    n.node_id[:4],
                    n.is_up,
                    {k[:4]: m.state.value for k, m in n.gossip.members.items()},
                    len(n.catalogue),
                )
                for n in self.town.nodes.values()
            ]
        )


def town_handle(node, signed: Signed) -> bytes:
    return node.catalogue.handle(signed.key)


def bytes_of(signed: Signed) -> bytes:
    return signed.to_bytes()


Turmoil.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
TestTurmoil = Turmoil.TestCase
