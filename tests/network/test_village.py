"""Six nodes in six processes: one is killed, one stands still, and the killed one comes back."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest

from aios_nb.bench.village import Village, knows_all, sees_gone, village

WITHIN_S = 60.0
STILL_S = 6.0


@pytest.fixture
def here() -> Iterator[Village]:
    with village() as made:
        yield made


def test_a_village_misses_the_dead_forgives_the_sleeper_and_takes_back_who_returns(here: Village):
    here.settle(6)
    first, *others = here.all
    here.until(knows_all(here.all), here.all, WITHIN_S)
    killed, sleeper = others[0], others[-1]
    awake = [one for one in here.all if one not in {killed, sleeper}]

    killed.signal(signal.SIGKILL)
    sleeper.signal(signal.SIGSTOP)
    wakes = time.monotonic() + STILL_S
    while time.monotonic() < wakes:
        assert all(view.states.get(sleeper.node_id) != "dead" for view in here.views(awake))
        time.sleep(0.2)
    sleeper.signal(signal.SIGCONT)
    here.until(knows_all([*awake, sleeper]), [*awake, sleeper], WITHIN_S)

    here.until(sees_gone([killed]), [*awake, sleeper], WITHIN_S)
    here.until(knows_all([*awake, sleeper]), [*awake, sleeper], WITHIN_S)

    here.restart([killed])
    here.until(knows_all(here.all), here.all, WITHIN_S)
    assert first.ask("chat.send", agent=killed.agent, text="water")["text"].endswith("water")
