"""A laboratory: nodes that really gossip, on a clock that does not wait, and what happens to them.

The machines, keys and signatures are the node's own; only time and the wire are made up. Nodes go
by their numbers. The same seed and the same steps give the same run, to the packet.

    lab = Lab(30, seed=1)
    lab.settle()
    lab.kill(6)
    lab.run(20)
    lab.samples[-1].ghosts
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from aios_nb.errors import UsageError
from aios_nb.hub.gossip import LOCAL, Changed, Life, Pace
from aios_nb.parts import as_frame
from aios_nb.records import Signed
from aios_nb.sim.accusers import accuse
from aios_nb.sim.sampling import Sample, look
from aios_nb.sim.virtual import VirtualNetwork, Weather
from aios_nb.sim.virtual_node import VirtualNode

NODES_MIN = 2
NODES_MAX = 400
"""More take minutes; the models go further."""
_ACCUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Turn:
    """One node thinks differently of another from now on."""

    time: float
    observer: int
    node: int
    state: Life
    wrong: bool
    """It holds a node for dead that runs and could be reached."""


class Lab:
    """A network to play with. ``samples`` and ``story`` grow while time runs."""

    def __init__(
        self,
        nodes: int = 30,
        *,
        seed: int = 0,
        loss: float = 0.0,
        delay_s: tuple[float, float] = (0.010, 0.050),
        pace: Pace = LOCAL,
        acquainted: bool = False,
        sample_s: float = 0.25,
    ) -> None:
        """``acquainted``: they have known each other for long, and do not just join the first."""
        if not NODES_MIN <= nodes <= NODES_MAX:
            raise UsageError(
                f"a lab has {NODES_MIN} to {NODES_MAX} nodes", hint="the models take more of them"
            )
        self.pace = pace
        self._sample_s = sample_s
        self.samples: list[Sample] = []
        self.story: list[tuple[float, str]] = []
        """What was done, and when."""
        self.turns: list[Turn] = []
        """Who changed its mind about whom."""
        self.network = VirtualNetwork(
            seed,
            pace=pace,
            weather=Weather(loss=loss, delay_s=delay_s),
            on_change=self._note_turn,
        )
        self._rng = random.Random(f"lab/{seed}")  # noqa: S311 (a simulation repeats itself)
        self._numbers: dict[str, int] = {}
        self._liars: list[VirtualNode] = []
        self._agents: list[tuple[VirtualNode, int, Signed]] = []
        self._thaws: list[tuple[float, VirtualNode]] = []
        self._accused_at = 0.0
        self._accusations = 0
        self._sent: dict[str, int] = {}
        self._add(nodes)
        if acquainted:
            self.network.acquaint()
        else:
            self.network.join_all()
        self._sample(0.0)

    def __len__(self) -> int:
        """The honest nodes, dead or alive."""
        return len(self.honest)

    @property
    def now(self) -> float:
        """Seconds since it began."""
        return self.network.now

    @property
    def honest(self) -> list[VirtualNode]:
        """By number."""
        return [node for node in self.network.nodes.values() if node not in self._liars]

    @property
    def agents(self) -> list[Signed]:
        """The records of agents that are there: published by a node that still runs."""
        return [
            signed for node, epoch, signed in self._agents if node.is_up and node.epoch == epoch
        ]

    # What can be done ----------------------------------------------------------------------

    def publish(self, name: str, *, by: int | None = None) -> Signed:
        """An agent of that name is offered by a node, or by any that runs."""
        node = self._some(1)[0] if by is None else self.honest[by]
        signed = self.network.publish(node, name)
        self._agents.append((node, node.epoch, signed))
        self._tell(f"{name} is published")
        return signed

    def kill(self, nodes: int | Iterable[int]) -> list[int]:
        """These, or so many of those that run, are gone without a word."""
        return self._each(nodes, self.network.kill, "killed")

    def leave(self, nodes: int | Iterable[int]) -> list[int]:
        """These, or so many of those that run, say goodbye."""
        return self._each(nodes, self.network.leave, "left")

    def freeze(self, nodes: int | Iterable[int], seconds: float) -> list[int]:
        """These, or so many, do nothing for a while, as a notebook in a long cell might."""
        frozen = self._each(nodes, self.network.freeze, f"busy for {seconds:g} s")
        self._thaws += [(self.now + seconds, self.honest[number]) for number in frozen]
        return frozen

    def restart(self) -> list[int]:
        """All that were killed or left begin a new life, without their agents."""
        down = [number for number, node in enumerate(self.honest) if not node.is_up]
        through = self._some(1)[0]
        return self._each(down, lambda node: self.network.restart(node, through), "restarted")

    def partition(self, nodes: int | Iterable[int]) -> list[int]:
        """These, or so many of those that run, reach only each other."""
        apart: list[VirtualNode] = []
        numbers = self._each(nodes, apart.append, "cut off")
        self.network.partition(apart)
        return numbers

    def heal(self) -> None:
        """Everyone reaches everyone again."""
        self.network.heal()
        self._tell("healed")

    def accusers(self, count: int) -> None:
        """So many nodes join that tell everyone, every second, that all others are dead."""
        before = set(self.network.nodes)
        self._add(count)
        liars = [node for node_id, node in self.network.nodes.items() if node_id not in before]
        through = self._some(1)[0]
        self._liars += liars
        for liar in liars:
            self.network.join(liar, through)
        self._tell(f"{count} accusers")

    # Time ----------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Let so many seconds pass."""
        self._run_to(self.now + seconds, lambda: False)

    def run_until(self, done: Callable[[], bool], *, within_s: float = 120.0) -> float | None:
        """Let time pass until it is so; the seconds that took, or None."""
        start = self.now
        self._run_to(start + within_s, done)
        return self.now - start if done() else None

    def settle(self, *, within_s: float = 120.0) -> float | None:
        """Let time pass until every node knows which run and which agents there are."""
        return self.run_until(self._is_settled, within_s=within_s)

    def _is_settled(self) -> bool:
        seen = look(self.network, self.honest, self.agents)
        return (seen.known, seen.ghosts, seen.coverage) == (1.0, 0.0, 1.0)

    def _run_to(self, end: float, done: Callable[[], bool]) -> None:
        while self.now < end and not done():
            before = self.now
            self._accuse()
            self.network.run(min(self._sample_s, end - before))
            for at, node in [thaw for thaw in self._thaws if thaw[0] <= self.now]:
                self._thaws.remove((at, node))
                self.network.thaw(node)
            self._sample(self.now - before)

    def _accuse(self) -> None:
        if self._liars and self.now >= self._accused_at:
            self._accused_at = self.now + _ACCUSE_S
            victims = [node for node in self.honest if node.is_up]
            self._accusations += accuse(self.network, self._liars, victims)

    def _sample(self, seconds: float) -> None:
        honest = self.honest
        sent = sum(node.sent_bytes - self._sent.get(node.node_id, 0) for node in honest)
        self._sent = {node.node_id: node.sent_bytes for node in honest}
        running = sum(node.is_up for node in honest)
        rate = sent / 1024 / seconds / running if seconds and running else 0.0
        lies = self._accusations
        seen = look(self.network, honest, self.agents, kb_per_s=rate, accusations=lies)
        self.samples.append(seen)

    # What was seen -------------------------------------------------------------------------

    def series(self, name: str) -> tuple[list[float], list[float]]:
        """The times and the values of one field of the samples, for a plot."""
        return [each.time for each in self.samples], [getattr(each, name) for each in self.samples]

    def views(self) -> list[list[Life | None]]:
        """What each node thinks of each other now; None of itself, and for nodes that are down."""
        honest = self.honest
        return [
            [_opinion(observer, other) if observer.is_up else None for other in honest]
            for observer in honest
        ]

    def df(self) -> Any:
        """The samples as a pandas DataFrame, by time."""
        return as_frame([asdict(sample) for sample in self.samples]).set_index("time")

    def noticed(self, number: int, *, since: float = 0.0) -> list[float]:
        """When each node that noticed held this one for dead: seconds after ``since``, in order."""
        return sorted(
            turn.time - since
            for turn in self.turns
            if turn.node == number and turn.state is Life.DEAD and turn.time >= since
        )

    @property
    def false_deaths(self) -> int:
        """How often a node held another for dead that was running all the time."""
        return sum(turn.wrong for turn in self.turns)

    # How -----------------------------------------------------------------------------------

    def _add(self, count: int) -> None:
        self.network.add(count)
        self._numbers = {node_id: number for number, node_id in enumerate(self.network.nodes)}

    def _note_turn(self, observer: VirtualNode, changed: Changed) -> None:
        member = changed.member
        if observer in self._liars or not observer.is_up:
            return
        node = self.network.nodes[member.node_id]
        wrong = (
            member.state is Life.DEAD
            and node.is_up
            and node.epoch == member.epoch
            and self.network.reaches(observer, node)
        )
        numbers = self._numbers[observer.node_id], self._numbers[node.node_id]
        self.turns.append(Turn(self.now, *numbers, member.state, wrong))

    def _some(self, count: int) -> list[VirtualNode]:
        up = [node for node in self.honest if node.is_up and not node.is_frozen]
        if not 0 < count <= len(up):
            raise UsageError(f"there are {len(up)} nodes running, not {count}")
        return self._rng.sample(up, count)

    def _each(
        self, nodes: int | Iterable[int], do: Callable[[VirtualNode], None], verb: str
    ) -> list[int]:
        honest = self.honest
        chosen = self._some(nodes) if isinstance(nodes, int) else [honest[each] for each in nodes]
        for node in chosen:
            do(node)
        numbers = sorted(self._numbers[node.node_id] for node in chosen)
        self._tell(f"{len(numbers)} {verb}")
        return numbers

    def _tell(self, what: str) -> None:
        self.story.append((self.now, what))


def _opinion(observer: VirtualNode, other: VirtualNode) -> Life | None:
    member = observer.gossip.members.get(other.node_id)
    return None if member is None else member.state
