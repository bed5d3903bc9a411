"""The crash matrix: many messages, a bridge that is killed at every stage, and what is left of it.

``python -m tests.hostile.bridge.matrix`` runs it at full size.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from aios_bots.core.postman import PostStatus
from aios_nb.bridges.bot import Card
from tests.hostile.bridge.bridges import AGENTS, BridgeProcess
from tests.hostile.bridge.crowd import Crowd, conversations
from tests.hostile.nodes import NodeProcess
from tests.telegram.botapi import BotApi

FROM_WITHIN = ("fetched", "stored", "posted", "sending", "sent")
HELD: dict[str, tuple[str, dict[str, bool]]] = {
    "lost on its way": ("sendMessage", {"cut": True}),
    "there, and no answer": ("sendMessage", {"after": True}),
    "before the edit": ("editMessageText", {"cut": True}),
    "during the edit": ("editMessageText", {"after": True}),
}
"""Killed from outside, while a call is at the server: which one, and whether it has its effect."""
ALL = ("fetched", "stored", "posted", "sending", "sent", "during the edit")
"""One for each stage."""
MORE = (*FROM_WITHIN, *HELD)
SETTLE_S = 60.0


@dataclass
class Outcome:
    """What a matrix came to."""

    messages: int
    kills: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    disordered: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    repeats: dict[tuple[int, int], int] = field(default_factory=dict)
    """Telegram messages that came twice, by kill and chat."""
    card: Card | None = None

    @property
    def broken(self) -> list[str]:
        """What was promised and not kept, a line each."""
        found = {
            "lost": self.lost,
            "twice": self.doubled,
            "out of order": self.disordered,
            "wrong": self.wrong,
        }
        return [f"{what}: {one}" for what, every in found.items() for one in every]

    def check(self) -> None:
        assert not self.broken, (str(self), self.broken)
        assert all(count <= 1 for count in self.repeats.values()), str(self)
        assert not any(kill == 0 for kill, _ in self.repeats), str(self)
        assert self.card is not None
        post = self.card.status.post
        assert sum(self.repeats.values()) <= post.repeated, str(self)
        assert (post.waiting, post.dead, self.card.status.aside) == (0, 0, 0), str(self)

    def __str__(self) -> str:
        post = self.card.status.post if self.card else PostStatus()
        return (
            f"{self.messages} messages, {len(self.kills)} kills: {len(self.lost)} lost,"
            f" {len(self.doubled)} doubled in conversations, {len(self.disordered)} out of order,"
            f" {len(self.wrong)} wrong; {sum(self.repeats.values())} Telegram messages came twice,"
            f" at most {max(self.repeats.values(), default=0)} for a kill and a chat;"
            f" the bridge counted {post.repeated}, and {post.uncertain} that it gave up"
        )


class Matrix:
    """One run. ``start_node`` starts the node, the same one each time."""

    def __init__(
        self, home: Path, api: BotApi, start_node: Callable[[], NodeProcess], chats: int
    ) -> None:
        self._home, self.api, self._start_node = home, api, start_node
        self.node = start_node()
        self.crowd = Crowd(api, chats)
        self._chance = random.Random(7)
        self._kills: list[str] = []
        self._moments: list[float] = []
        self._bridge: BridgeProcess | None = None

    # Bridges ------------------------------------------------------------------------------------

    def bridge(self, stage: str = "never", nth: int = 0) -> BridgeProcess:
        """A bridge that is ready, or has died already as it was told."""
        self.put_away()
        self._bridge = BridgeProcess(self._home, self.api, stage, nth)
        return self._bridge

    def put_away(self) -> None:
        if self._bridge is not None:
            self._bridge.put_away()
            self._bridge = None

    def come_in(self) -> None:
        bridge = self.bridge()
        bridge.ready()
        self.crowd.come_in(bridge.bot)
        bridge.stop()

    def kill(self, stage: str, messages: int, nth: int | None = None) -> None:
        """Write so many messages, the first half to nobody, and have the bridge die at a stage.

        It dies there for the ``nth`` time, by default at one that chance says.
        """
        self.crowd.write(messages // 2)
        if stage in HELD:
            self._kill_held(stage, messages - messages // 2)
        else:
            bridge = self.bridge(stage, nth or self._chance.randint(1, max(1, messages // 2)))
            self.crowd.write(messages - messages // 2)
            bridge.ready()
            bridge.died()
        self._kills.append(stage)
        self._moments.append(self.api.clock.now())

    def _kill_held(self, stage: str, messages: int) -> None:
        method, how = HELD[stage]
        bridge = self.bridge()
        hold = self.api.faults.hold(method, **how)
        self.crowd.write(messages)
        bridge.ready()
        hold.wait()
        bridge.kill()
        self.api.faults.clear()

    def kill_node(self, messages: int) -> None:
        """The node dies while the bridge works, and comes back; the bridge stays."""
        bridge = self.bridge()
        bridge.ready()
        self.crowd.write(messages // 2)
        before = self.crowd.unanswered
        self.api.wait(lambda: self.crowd.unanswered < before)
        self.node.kill()
        self.crowd.write(messages - messages // 2)
        self.node = self._start_node()
        self._kills.append("the node")
        self._moments.append(self.api.clock.now())

    # What is left -------------------------------------------------------------------------------

    def outcome(self) -> Outcome:
        """Let one more bridge finish, and count."""
        bridge = self._bridge
        if bridge is None or bridge.process.poll() is not None:
            bridge = self.bridge()
            bridge.ready()
        with contextlib.suppress(TimeoutError):
            self.api.wait(lambda: not self.crowd.unanswered, SETTLE_S)
        card = bridge.stop()
        phones = self.crowd.phones
        out = Outcome(sum(len(phone.said) for phone in phones), kills=self._kills, card=card)
        talks = conversations(self.node)
        for phone in phones:
            rows = talks.get(phone.sender, [])
            out.lost += sorted(phone.unanswered)
            _compare(out, phone.said, rows)
            order = [word for word, _ in phone.shows()]
            out.disordered += [f"{one} on {phone.agent}" for one in _disordered(order)]
        out.repeats = self.crowd.repeats(self._moments)
        return out


def _compare(out: Outcome, said: list[str], rows: list[dict[str, object]]) -> None:
    """Hold a conversation against what was said into it."""
    posted = [row for row in rows if row["sender"]["type"] == "human"]  # type: ignore[index]
    answers = [row for row in rows if row["sender"]["type"] == "agent"]  # type: ignore[index]
    texts = [str(row["text"]) for row in posted]
    refs = [row["ref"] for row in answers]
    out.lost += [word for word in said if word not in texts]
    out.doubled += [word for word in set(texts) if texts.count(word) > 1]
    out.doubled += [str(ref) for ref in set(refs) if refs.count(ref) > 1]
    out.disordered += [f"{one} in the log" for one in _disordered(texts)]
    words = {row["message_id"]: str(row["text"]) for row in posted}
    out.lost += [word for message_id, word in words.items() if message_id not in refs]
    out.wrong += [
        str(row["text"])
        for row in answers
        if not str(row["text"]).endswith(f"{words.get(row['ref'])}, all of it")
    ]


def _disordered(words: Iterable[str]) -> list[str]:
    return [f"{after} after {one}" for one, after in itertools.pairwise(words) if after < one]


@contextlib.contextmanager
def matrix(home: Path, chats: int) -> Iterator[Matrix]:
    """A server, a node, people who are let in; nothing is left behind."""
    nodes: list[NodeProcess] = []

    def start() -> NodeProcess:
        nodes.append(NodeProcess(home, "--no-gossip", "--no-dht", "--agents", str(AGENTS)))
        return nodes[-1]

    with BotApi() as api:
        made = None
        try:
            made = Matrix(home, api, start, chats)
            made.come_in()
            yield made
        finally:
            if made is not None:
                made.put_away()
            for node in nodes:
                if node.alive:
                    node.kill()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.bridge.matrix")
    parser.add_argument("--messages", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--chats", type=int, default=20)
    options = parser.parse_args()
    each = options.messages // (options.kills + 1)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, matrix(Path(folder) / "home", options.chats) as m:
        stages = list(itertools.islice(itertools.cycle(MORE), options.kills))
        for stage in stages:
            m.kill(stage, each)
            print(f"{time.monotonic() - began:6.1f} s  {stage}", flush=True)  # noqa: T201
        m.kill_node(options.messages - each * options.kills)
        outcome = m.outcome()
        print(outcome, *outcome.broken, sep="\n")  # noqa: T201
        outcome.check()


if __name__ == "__main__":
    main()
