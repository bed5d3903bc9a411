"""The probes that wait for an answer, by their number and by whom they ask."""

from __future__ import annotations


class Probe:
    """One question to one node: pinged, pinged again, then asked for through others."""

    __slots__ = ("due", "nacks", "pings", "relays", "sent", "seq", "target", "vouched")

    def __init__(self, target: str, seq: int, sent: float, due: float, pings: int) -> None:
        self.target = target
        self.seq = seq
        self.sent = sent
        self.due = due
        self.pings = pings
        self.relays: tuple[str, ...] | None = None
        """Who was asked to try too; None before that."""
        self.nacks: set[str] = set()
        self.vouched = False
        """Whether one of them says that it answers, which is not enough when many deny it."""


class Probes:
    """One of a node at a time. One that is due later than before is so only after ``overdue``."""

    def __init__(self) -> None:
        self._by_seq: dict[int, Probe] = {}
        self._by_target: dict[str, Probe] = {}
        self._soonest: float | None = float("inf")
        """When the first one is due; None: it is to be found out."""

    def __len__(self) -> int:
        return len(self._by_seq)

    def open(self, probe: Probe) -> None:
        self._by_seq[probe.seq] = self._by_target[probe.target] = probe
        if self._soonest is not None:
            self._soonest = min(self._soonest, probe.due)

    def close(self, probe: Probe) -> None:
        self._by_seq.pop(probe.seq, None)
        self._by_target.pop(probe.target, None)
        if probe.due == self._soonest:
            self._soonest = None

    def clear(self) -> None:
        self._by_seq.clear()
        self._by_target.clear()
        self._soonest = None

    def numbered(self, seq: int) -> Probe | None:
        return self._by_seq.get(seq)

    def of(self, node_id: str) -> Probe | None:
        return self._by_target.get(node_id)

    def next_at(self) -> float:
        """Asked after each event: they are looked through only if it may be another one."""
        if self._soonest is None:
            self._soonest = min((each.due for each in self._by_seq.values()), default=float("inf"))
        return self._soonest

    def overdue(self, now: float) -> list[Probe]:
        """Those to do something about; each is then closed, or due later."""
        if now < self.next_at():
            return []
        self._soonest = None
        return [probe for probe in self._by_seq.values() if probe.due <= now]
