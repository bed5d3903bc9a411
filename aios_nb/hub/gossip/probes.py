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
    """One of a node at a time."""

    def __init__(self) -> None:
        self._by_seq: dict[int, Probe] = {}
        self._by_target: dict[str, Probe] = {}

    def __len__(self) -> int:
        return len(self._by_seq)

    def open(self, probe: Probe) -> None:
        self._by_seq[probe.seq] = self._by_target[probe.target] = probe

    def close(self, probe: Probe) -> None:
        self._by_seq.pop(probe.seq, None)
        self._by_target.pop(probe.target, None)

    def clear(self) -> None:
        self._by_seq.clear()
        self._by_target.clear()

    def numbered(self, seq: int) -> Probe | None:
        return self._by_seq.get(seq)

    def of(self, node_id: str) -> Probe | None:
        return self._by_target.get(node_id)

    def next_at(self) -> float:
        return min((probe.due for probe in self._by_seq.values()), default=float("inf"))

    def overdue(self, now: float) -> list[Probe]:
        return [probe for probe in self._by_seq.values() if probe.due <= now]
