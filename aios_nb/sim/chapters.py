"""The life of a small network told in numbers: what ``aios-nb simulate network`` shows."""

from __future__ import annotations

from dataclasses import dataclass

from aios_nb.errors import UsageError
from aios_nb.sim.lab import Lab

_QUIET_S = 10.0
_DETECT_S = 60.0
_ACCUSED_S = 30.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One thing that was measured; no value if it never came."""

    what: str
    value: float | None
    unit: str

    @property
    def measured(self) -> str:
        """For people."""
        if self.value is None:
            return "never"
        return f"{self.value:.0f}" if not self.unit else f"{self.value:.2f} {self.unit}"


def live(
    nodes: int, *, loss: float = 0.0, kill: int = 0, accusers: int = 0, seed: int = 0
) -> list[Measured]:
    """A network comes together, gets a new agent, then loses nodes and hears lies, as asked."""
    if kill >= nodes - 1:
        raise UsageError(f"of {nodes} nodes at most {nodes - 2} can be killed")
    lab = Lab(nodes, seed=seed, loss=loss)
    told = [Measured("everyone knows everyone after", lab.settle(), "s")]
    lab.publish("agent")
    told.append(Measured("a new agent is known everywhere after", lab.settle(), "s"))
    told.append(Measured("sent per node when all is quiet", _quiet_rate(lab), "KB/s"))
    if kill:
        told += _deaths(lab, kill)
    if accusers:
        lab.accusers(accusers)
        lab.run(_ACCUSED_S)
    told.append(Measured("times a running node was held for dead", lab.false_deaths, ""))
    return told


def _quiet_rate(lab: Lab) -> float:
    before = len(lab.samples)
    lab.run(_QUIET_S)
    rates = [sample.kb_per_s for sample in lab.samples[before:]]
    return sum(rates) / len(rates)


def _deaths(lab: Lab, count: int) -> list[Measured]:
    start = lab.now
    killed = lab.kill(count)
    everywhere = lab.settle(within_s=_DETECT_S)
    noticed = [at for number in killed for at in lab.noticed(number, since=start)]
    return [
        Measured(f"{count} killed: first noticed after", min(noticed, default=None), "s"),
        Measured(f"{count} killed: gone everywhere after", everywhere, "s"),
    ]
