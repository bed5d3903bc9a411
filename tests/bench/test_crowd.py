"""The crowd's measure keeps the node's core for the node."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from aios_nb.bench.scenarios.crowd import SHARED, layouts, running_on

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="cores can be given on Linux only")

THREADS_TOO = """
import os, threading
seen = [os.sched_getaffinity(0)]
thread = threading.Thread(target=lambda: seen.append(os.sched_getaffinity(0)))
thread.start()
thread.join()
print(*[sorted(cores) for cores in seen])
"""


def cores_of_a_child() -> str:
    done = subprocess.run(
        [sys.executable, "-c", THREADS_TOO], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_child_stays_on_its_cores_with_all_its_threads_and_we_go_back_to_ours() -> None:
    ours = os.sched_getaffinity(0)
    last = max(ours)
    with running_on(frozenset({last})):
        assert cores_of_a_child() == f"[{last}] [{last}]"
    assert os.sched_getaffinity(0) == ours


def test_without_cores_of_its_own_a_child_runs_where_we_do() -> None:
    with running_on(None):
        assert cores_of_a_child() == " ".join([str(sorted(os.sched_getaffinity(0)))] * 2)


def test_the_node_shares_its_core_with_nobody_and_the_shared_layout_comes_last() -> None:
    first, *rest = layouts()
    if len(os.sched_getaffinity(0)) == 1:
        assert (first, rest) == (SHARED, [])
        return
    assert rest == [SHARED]
    assert first.node
    assert first.others
    assert not first.node & first.others
    assert first.node | first.others == os.sched_getaffinity(0)
