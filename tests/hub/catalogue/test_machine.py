"""Any order of offers, forgeries, lives, withdrawals and hours, against the plainest catalogue."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from aios_nb.config import Limits
from aios_nb.errors import RecordError
from aios_nb.hub.catalogue import Offered
from aios_nb.records import HOUR_MS, AgentRecord, Scope, Signed, check_time, supersedes
from tests.hub.catalogue.writers import EPOCH, NOW, OWN, Watched, check, writer

WRITERS = st.integers(10, 13)
NAMES = st.sampled_from(["one", "two", "three"])
SEQS = st.integers(NOW - 3, NOW + 3)
EPOCHS = st.integers(EPOCH, EPOCH + 2)


class Machine(RuleBasedStateMachine):
    """One catalogue, and what was ever signed."""

    limits = Limits()

    @initialize()
    def begin(self) -> None:
        self.places: dict[str, Scope] = {}
        self.watched = Watched(self.limits, scope_of_node=self.places.get)
        self.catalogue = self.watched.catalogue
        self.expected: dict[str, Signed] = {}
        self.genuine: set[bytes] = set()
        """All that was ever offered with the right signature, and in time."""

    def offer(self, signed: Signed) -> None:
        came = self.catalogue.offer(signed.to_bytes())
        assert came in self.foreseen(signed)

    def foreseen(self, signed: Signed) -> set[Offered]:
        """What a catalogue without bounds makes of it: a dict, and ``supersedes``."""
        record, expected = signed.record, self.expected
        if expected.get(signed.key) == signed:
            return {Offered.KNOWN}
        try:
            check_time(record, self.watched.time.now)
        except RecordError:
            return {Offered.REFUSED}
        its = [one for one in expected.values() if one.record.node == record.node]
        if any(one.record.epoch > record.epoch for one in its):
            return {Offered.OLDER}
        before = expected.get(signed.key)
        if before is not None and not supersedes(signed, before):
            return {Offered.OLDER}
        for one in its:
            if one.record.epoch < record.epoch:
                del expected[one.key]
        expected[signed.key] = signed
        return {Offered.NEW if before is None else Offered.NEWER}

    @rule(number=WRITERS, name=NAMES, seq=SEQS, epoch=EPOCHS, about=st.sampled_from(["x", "y"]))
    def publish(self, number: int, name: str, seq: int, epoch: int, about: str) -> None:
        seq += self.watched.time.now - NOW
        self.offer(writer(number).agent(name, seq=seq, epoch=epoch, about=about))

    @rule(number=WRITERS, name=NAMES, seq=SEQS, epoch=EPOCHS)
    def withdraw(self, number: int, name: str, seq: int, epoch: int) -> None:
        seq += self.watched.time.now - NOW
        self.offer(writer(number).ended(name, seq=seq, epoch=epoch))

    @rule(number=WRITERS, scope=st.sampled_from(Scope), seq=SEQS, epoch=EPOCHS)
    def say_where(self, number: int, scope: Scope, seq: int, epoch: int) -> None:
        seq += self.watched.time.now - NOW
        self.offer(writer(number).node(scope=scope, seq=seq, epoch=epoch))

    @rule(number=WRITERS, name=NAMES, hours=st.integers(-60, 60))
    def replay_or_foretell(self, number: int, name: str, hours: int) -> None:
        self.offer(writer(number).agent(name, seq=self.watched.time.now + hours * HOUR_MS))

    @rule(number=WRITERS, name=NAMES, epoch=EPOCHS, ended=st.booleans())
    def forge(self, number: int, name: str, epoch: int, ended: bool) -> None:
        its = writer(number)
        make: Any = its.ended if ended else its.agent
        signed = make(name, seq=self.watched.time.now + 9, epoch=epoch)
        content = signed.pk + writer(99).agent().sig + signed.payload
        assert self.catalogue.offer(content) in {Offered.REFUSED, Offered.OLDER}

    @rule(number=WRITERS, scope=st.none() | st.sampled_from(Scope))
    def move(self, number: int, scope: Scope | None) -> None:
        node_id = writer(number).id
        self.places.pop(node_id, None)
        if scope is not None:
            self.places[node_id] = scope
        self.catalogue.node_changed(node_id)

    @rule(number=WRITERS, epoch=EPOCHS)
    def be_seen(self, number: int, epoch: int) -> None:
        node_id = writer(number).id
        self.catalogue.node_changed(node_id, epoch)
        for signed in list(self.expected.values()):
            if signed.record.node == node_id and signed.record.epoch < epoch:
                del self.expected[signed.key]

    @rule(name=NAMES, seq=SEQS)
    def publish_own(self, name: str, seq: int) -> None:
        signed = OWN.agent(name, seq=seq + self.watched.time.now - NOW)
        before = self.expected.get(signed.key)
        self.catalogue.own(signed)
        if before is None or supersedes(signed, before):
            self.expected[signed.key] = signed

    @rule(hours=st.integers(0, 14))
    def wait(self, hours: int) -> None:
        self.watched.time.now += hours * HOUR_MS
        while self.catalogue.expire():
            pass
        for signed in list(self.expected.values()):
            try:
                check_time(signed.record, self.watched.time.now)
            except RecordError as error:
                assert "expired" in str(error)  # noqa: PT017 (the others cannot be)
                del self.expected[signed.key]

    @invariant()
    def tells_the_truth(self) -> None:
        check(self.watched)

    @invariant()
    def is_what_was_foreseen(self) -> None:
        assert self.watched.mirror == self.expected


class TightMachine(Machine):
    """The same with little room: less is kept, and never more or older than that."""

    limits = Limits(records=5, agents_per_publisher=2)

    def offer(self, signed: Signed) -> None:
        try:
            check_time(signed.record, self.watched.time.now)
        except RecordError:
            pass
        else:
            self.genuine.add(signed.to_bytes())
        held = self.watched.mirror.get(signed.key)
        self.catalogue.offer(signed.to_bytes())
        after = self.watched.mirror.get(signed.key)
        assert held is None or after is None or not supersedes(held, after)

    @invariant()
    def is_what_was_foreseen(self) -> None:
        mirror = self.watched.mirror
        own = {key: signed for key, signed in mirror.items() if OWN.id in key}
        assert own == self.expected
        for key in mirror.keys() - own.keys():
            assert mirror[key].to_bytes() in self.genuine

    @invariant()
    def keeps_its_bounds(self) -> None:
        theirs = [
            signed.record for signed in self.watched.mirror.values() if signed.record.node != OWN.id
        ]
        agents = [record for record in theirs if isinstance(record, AgentRecord)]
        assert len(agents) <= 5
        assert len(theirs) - len(agents) <= 5
        for node in {record.node for record in agents}:
            assert sum(record.node == node for record in agents) <= 2
        for node in {record.node for record in theirs}:
            assert len({record.epoch for record in theirs if record.node == node}) == 1


SETTINGS = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestMachine = Machine.TestCase
TestMachine.settings = SETTINGS
TestTightMachine = TightMachine.TestCase
TestTightMachine.settings = SETTINGS
