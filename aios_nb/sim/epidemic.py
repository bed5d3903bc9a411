"""How far a rumour has come after so many intervals: a model, for up to a million nodes.

Who has heard is one array, and a moment of gossip is a handful of draws for all who speak in it.
The gossip itself, run on a virtual clock (``lab``), is exact and good for some hundred nodes;
the tests hold this model against it there. Same seed, same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from aios_nb.hub.gossip.wanting import TRIES
from aios_nb.sim.rumour import Rumour, Spread, Summary

__all__ = ["Rumour", "Spread", "Summary", "digest_rounds", "spread", "summarise"]

_NEVER = np.iinfo(np.int32).max
_ROUNDS_MAX = 400
"""A rumour dies long before, by its limit of sends."""
ASK_AGAIN = 0.6
"""Intervals until the gossip asks again for what it wants, and then two others, at first."""
SLOWER = 1.2
"""By what it waits longer each time."""

Flags: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int32]
Nodes: TypeAlias = npt.NDArray[np.int64]


def spread(rumour: Rumour, seed: int = 0) -> Spread:
    """One rumour, from its publisher to everybody or until it dies."""
    return _Run(rumour, np.random.default_rng([seed, rumour.nodes])).go()


def summarise(rumour: Rumour, *, runs: int = 5, seed: int = 0) -> Summary:
    """The means of ``runs`` rumours."""
    done = [spread(rumour, seed * 1000 + run) for run in range(runs)]
    return Summary(
        rumour=rumour,
        runs=runs,
        to_99=_mean([each.time_to(0.99) for each in done]),
        to_all=_mean([each.time_to(1.0) for each in done]),
        messages_per_node=sum(each.messages_per_node for each in done) / runs,
        complete=sum(each.coverage[-1] >= 1 for each in done) / runs,
        coverage=_mean_coverage(done),
    )


def _mean_coverage(done: Sequence[Spread]) -> tuple[float, ...]:
    longest = math.ceil(max(each.times[-1] for each in done))
    return tuple(sum(each.at(time) for each in done) / len(done) for time in range(longest + 1))


def digest_rounds(nodes: int, *, loss: float = 0.0, seed: int = 0) -> int:
    """Rounds until all have it if no rumour goes round and each compares digests with one other."""
    rng = np.random.default_rng([seed, nodes])
    knows = np.zeros(nodes, dtype=bool)
    knows[0] = True
    for done in range(_ROUNDS_MAX):
        if knows.all():
            return done
        other = _others(rng, np.arange(nodes, dtype=np.int32), nodes, 1)[:, 0]
        met = rng.random(nodes) >= loss
        knew = knows.copy()
        knows[met] |= knew[other[met]]
        knows[other[met & knew]] = True
    raise RuntimeError("the digests never met")


def _mean(times: Sequence[float | None]) -> float | None:
    known = [time for time in times if time is not None]
    return sum(known) / len(known) if known else None


class _Run:
    """One rumour under way. Its clock counts steps."""

    def __init__(self, rumour: Rumour, rng: np.random.Generator) -> None:
        self._rumour = rumour
        self._rng = rng
        nodes = rumour.nodes
        self._heard_at = np.full(nodes, _NEVER, dtype=np.int32)
        self._asks_again_at = np.zeros(nodes, dtype=np.int32)
        self._hops = np.zeros(nodes, dtype=np.int32)
        self._sent = np.zeros(nodes, dtype=np.int32)
        self._listens = np.ones(nodes, dtype=bool)
        self._publisher = int(rng.integers(nodes))
        self._listens[self._the_dead(round(nodes * rumour.dead))] = False
        self._live = int(self._listens.sum())
        self._messages = 0

    def _the_dead(self, count: int) -> Nodes:
        """Some others than the publisher."""
        chosen = self._rng.choice(self._rumour.nodes - 1, size=count, replace=False)
        return np.asarray(chosen + (chosen >= self._publisher), dtype=np.int64)

    def go(self) -> Spread:
        self._heard_at[self._publisher] = 0
        for now in range(_ROUNDS_MAX * self._rumour.steps):
            if now % self._rumour.steps == 0 and self._is_over(now):
                break
            self._speak(now)
        return self._result()

    def _is_over(self, now: int) -> bool:
        """Whether all have heard, or those who have are done with it."""
        heard = self._heard_at < _NEVER
        told = int((self._heard_at <= now).sum())
        speaking = bool((heard & (self._sent < self._rumour.limit)).any())
        return told == self._live or not speaking

    def _speak(self, now: int) -> None:
        """Those whose interval ends now tell some others."""
        rumour = self._rumour
        has = (self._heard_at <= now) & (self._sent < rumour.limit)
        speakers = np.flatnonzero(has & ((now - self._heard_at) % rumour.steps == 0))
        copies = np.minimum(rumour.limit - self._sent[speakers], rumour.fanout)
        targets = _others(self._rng, speakers, rumour.nodes, rumour.fanout)
        used = np.arange(rumour.fanout) < copies[:, None]
        whole = np.repeat(self._speaks_whole(speakers), copies)
        self._sent[speakers] += copies
        self._messages += int(copies.sum())
        self._hear(now, np.repeat(speakers, copies), targets[used], whole)

    def _speaks_whole(self, speakers: Nodes) -> Flags:
        """Whether they send the thing itself: the publisher always, the next ones once."""
        most = self._rumour.whole_hops
        if most is None:
            return np.ones(len(speakers), dtype=bool)
        hops, sent = self._hops[speakers], self._sent[speakers]
        whole: Flags = (hops == 0) | ((hops < most) & (sent == 0))
        return whole

    def _hear(self, now: int, speakers: Nodes, targets: Ints, whole: Flags) -> None:
        arrives = self._arrives(len(targets)) & self._listens[targets]
        at = now + self._way(len(targets))
        asks = arrives & ~whole & (at >= self._asks_again_at[targets])
        tries = self._tries(len(targets))
        self._asks_again_at[targets[asks]] = at[asks] + self._asking(np.array([TRIES + 1]))
        waits = self._asking(tries) + self._way(len(targets)) + self._way(len(targets))
        at = np.where(whole, at, at + waits)
        brought = np.where(whole, arrives, asks & (tries <= TRIES))
        news = np.flatnonzero(brought & (at < self._heard_at[targets]))
        # Of several that reach one node the first counts: it is written last.
        news = news[np.argsort(-at[news], kind="stable")]
        self._heard_at[targets[news]] = at[news]
        self._hops[targets[news]] = self._hops[speakers[news]] + 1

    def _tries(self, count: int) -> Nodes:
        """How often it is asked for until it comes: first one node is asked, then two each time."""
        once = (1 - self._rumour.loss) ** 2
        twice = 1 - (1 - once) ** 2
        lucky = self._rng.random(count) < once
        return np.where(lucky, 1, 1 + self._rng.geometric(twice, size=count))

    def _asking(self, tries: Nodes) -> Ints:
        """Steps from the first question to the one that is answered; each waits a bit longer."""
        intervals = ASK_AGAIN * (SLOWER ** (tries - 1.0) - 1) / (SLOWER - 1)
        steps = np.minimum(np.rint(intervals * self._rumour.steps), _NEVER // 4)
        return np.asarray(steps, dtype=np.int32)

    def _arrives(self, count: int) -> Flags:
        return self._rng.random(count) >= self._rumour.loss

    def _way(self, count: int) -> Ints:
        """Steps that packets are on their way."""
        low, high = self._rumour.delay
        ways = low + (high - low) * self._rng.random(count)
        return np.maximum(1, np.rint(ways * self._rumour.steps)).astype(np.int32)

    def _result(self) -> Spread:
        told = np.cumsum(np.bincount(self._heard_at[self._heard_at < _NEVER]))
        return Spread(
            rumour=self._rumour,
            times=tuple((np.arange(len(told)) / self._rumour.steps).tolist()),
            coverage=tuple((told / self._live).tolist()),
            messages_per_node=self._messages / self._live,
        )


def _others(
    rng: np.random.Generator, speakers: npt.NDArray[np.integer], nodes: int, fanout: int
) -> Ints:
    """For each speaker ``fanout`` different others, none of them itself."""
    fanout = min(fanout, nodes - 1)
    taken = [np.asarray(speakers, dtype=np.int32)]
    for drawn in range(1, fanout + 1):
        choice = rng.integers(nodes - drawn, size=len(speakers), dtype=np.int32)
        # The taken numbers are left out of the range: step over each of them, lowest first.
        for low in np.sort(np.stack(taken), axis=0):
            choice += choice >= low
        taken.append(choice)
    return np.stack(taken[1:], axis=1)
