"""A node that stops leaves nothing behind, however often it starts."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from pathlib import Path

from tests.network.conftest import found, meet, until, works
from tests.sites import TestSite


def _sockets() -> set[str]:
    """The open sockets of this process."""
    names = set()
    for number in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            names.add(str(number.readlink()))
    return {name for name in names if name.startswith("socket:")}


def test_twenty_starts_and_stops_leave_no_task_socket_or_thread(tmp_path: Path):
    other = TestSite(tmp_path / "other", [works("stays")], name="other")
    join = (f"{other.node.url}#{other.node.node_id}",)
    gc.collect()  # what earlier tests have left
    before_sockets, before_threads = _settled(other), set(threading.enumerate())
    for turn in range(20):
        site = TestSite(tmp_path / "a", [works(f"turn{turn}")], name="a", join=join)
        if turn % 5 == 0:
            meet(site, other)
            found(site, "who stays")
        loop = site.node.loop.loop
        network = site.rooms.network
        site.stop()
        assert loop.is_closed()
        assert not asyncio.all_tasks(loop)
        assert not network._tasks
        assert not network._spreading._pulling
    assert {one.name for one in set(threading.enumerate()) - before_threads} == set()
    assert _settled(other) <= before_sockets
    other.stop()


def _settled(site: TestSite) -> set[str]:
    """Its sockets once the links of others are closed on this side too."""
    until(lambda: not site.on_loop(site.rooms.links.linked))
    return _sockets()
