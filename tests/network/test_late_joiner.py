"""One that comes late learns what all others know, and stays awake meanwhile."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import pytest

from tests.network.conftest import Make, found, meet, until
from tests.network.madeup import MadeUp
from tests.sites import TestSite

PUBLISHERS = 200
EACH = 10
FEWEST = 20
"""Turns of the loop meanwhile; one that does all at once answers nobody, and turns twice."""


def _fill(site: TestSite) -> None:
    made_up = [MadeUp() for _ in range(PUBLISHERS)]
    contents = [
        one.agent(f"agent{n}", f"number {n} of the late catalogue").to_bytes()
        for one in made_up
        for n in range(EACH)
    ]

    def fill() -> None:
        network = site.rooms.network
        now = asyncio.get_running_loop().time()
        for one in made_up:
            network._started().gossip.introduce(now, one.presence())
        for content in contents:
            network.catalogue.offer(content)

    site.on_loop(fill)


def test_a_late_joiner_learns_two_thousand_records(node: Make, capsys: pytest.CaptureFixture[str]):
    seed = node("seed")
    _fill(seed)
    late = node("late", join=seed)
    started = time.monotonic()
    catalogue = late.rooms.network.catalogue
    turns = Turns(late)
    until(lambda: len(catalogue) >= PUBLISHERS * EACH)
    taken = time.monotonic() - started
    turns.stop()
    with capsys.disabled():
        sys.stdout.write(
            f"\n{PUBLISHERS * EACH} records in {taken:.2f} s, in the process that tells them;"
            f" the longest turn of the loop {turns.longest * 1000:.0f} ms of {turns.count}\n"
        )
    until(lambda: len(found(late, "late catalogue", 50)) == 50)
    meet(late, seed)
    assert turns.count > FEWEST


class Turns:
    """How long that node's loop keeps others waiting."""

    def __init__(self, site: TestSite) -> None:
        self.longest = 0.0
        self.count = 0
        self._over = threading.Event()
        self._loop = site.node.loop.loop
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        while not self._over.is_set():
            asked, answered = time.monotonic(), threading.Event()
            self._loop.call_soon_threadsafe(answered.set)
            answered.wait(10)
            self.longest = max(self.longest, time.monotonic() - asked)
            self.count += 1
            time.sleep(0.001)

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
