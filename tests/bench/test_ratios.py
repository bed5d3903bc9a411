from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time

import pytest

from aios_nb.bench import usage
from aios_nb.bench.ratios import alternate, median, order, rate, ratio, spread
from aios_nb.bench.spec import Window, percentile


def window(replies: int, cpu_us: float | None = None) -> Window:
    return Window(
        replies=replies,
        wrong=0,
        first_wrong=None,
        seconds=1.0,
        p50=0,
        p99=0,
        mean=0,
        low=0,
        high=0,
        cpu_us=cpu_us,
    )


def test_the_first_place_moves_on_and_every_second_round_runs_backwards() -> None:
    assert [order(turn, 3) for turn in range(4)] == [[0, 1, 2], [0, 2, 1], [2, 0, 1], [2, 1, 0]]


def test_over_a_few_rounds_everyone_has_been_first_and_last() -> None:
    rounds = [order(turn, 3) for turn in range(6)]
    assert {places[0] for places in rounds} == {places[-1] for places in rounds} == {0, 1, 2}


def test_windows_are_taken_in_that_order() -> None:
    taken: list[str] = []

    def line(name: str):
        return lambda: (taken.append(name), window(len(taken)))[1]

    found = alternate({name: line(name) for name in "abc"}, 2)
    assert taken == list("abcacb")
    assert [each.replies for each in found["b"]] == [2, 6]


def test_a_ratio_is_taken_round_by_round_before_the_median() -> None:
    ours = [window(50), window(10), window(80)]
    unit = [window(100), window(10), window(100)]
    found = ratio(ours, unit, rate)
    assert found is not None
    assert (found.low, found.median, found.high) == (0.5, 0.8, 1.0)
    assert str(found) == "0.80 (0.50..1.00)"


def test_a_figure_that_could_not_be_read_gives_no_ratio() -> None:
    unread = [window(1), window(1)]
    assert ratio(unread, unread, lambda each: each.cpu_us) is None
    assert median(unread, lambda each: each.cpu_us) is None
    assert math.isnan(spread([]).median)


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [float(value) for value in range(1, 101)]
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.99) == 99
    assert percentile([7.0], 0.99) == 7
    assert percentile([], 0.5) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_core_time_includes_threads_that_have_ended() -> None:
    spent: list[int] = []

    def work() -> None:
        while time.thread_time_ns() < 20_000_000:
            pass
        spent.append(time.thread_time_ns())

    before = usage.process_ns(os.getpid())
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    used = usage.used_ns(before, usage.process_ns(os.getpid()))
    assert used is not None
    assert used >= spent[0]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_memory_and_family_time_can_be_read() -> None:
    assert (usage.rss_mb(os.getpid()) or 0) > 1
    assert (usage.family_s(os.getpid()) or 0) > 0


def test_a_process_that_is_gone_has_no_figures() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    assert usage.process_ns(child.pid) is None
    assert usage.rss_mb(child.pid) is None
    assert usage.used_ns(None, 1) is None
