"""Starting, failing to start and stopping, again and again in one process: nothing is left."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from aios_nb.config import Settings
from aios_nb.errors import AiosError
from aios_nb.home import Home
from aios_nb.node import Node

TIMES = 20
WARM_UP = 6
GROWTH_BYTES = 6 << 20
"""What one node takes is more than this; so is what twenty would leave."""
NOBODY = 65_534

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def open_files() -> set[str]:
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{link.name} {link.readlink()}")
        except FileNotFoundError:
            continue  # the one that lists
    return found


def memory_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def loops() -> int:
    gc.collect()
    return sum(
        isinstance(found, asyncio.AbstractEventLoop) and not found.is_closed()
        for found in gc.get_objects()
    )


@contextmanager
def nothing_left():
    gc.collect()
    before = open_files(), set(threading.enumerate()), loops()
    yield
    gc.collect()
    files, threads, running = before
    assert open_files() - files == set()
    assert set(threading.enumerate()) - threads == set()
    assert loops() == running


def work(node: Node) -> None:
    reply = node.ask("echo", "hello")
    assert str(reply) == "hello"
    with closing(socket.create_connection(("127.0.0.1", int(node.url.rpartition(":")[2])))):
        pass  # and one that says nothing


def test_twenty_starts_and_stops_leave_nothing(aios_home):
    def live() -> str:
        with Node(Settings(name="again")).start() as node:
            work(node)
            return node.node_id

    with nothing_left():
        ids = {live() for _ in range(WARM_UP)}
        memory = memory_bytes()
        ids |= {live() for _ in range(TIMES - WARM_UP)}
        assert memory_bytes() - memory < GROWTH_BYTES
    assert len(ids) == 1
    assert Home().running() == []


def test_two_nodes_in_one_process_keep_to_their_own_homes(tmp_path):
    with nothing_left():
        homes = [tmp_path / "one", tmp_path / "two"]
        nodes = [Node(Settings(name="same", home=home)).start() for home in homes]
        try:
            one, two = nodes
            assert one.name == two.name == "same"
            assert one.node_id != two.node_id
            assert one.url != two.url
            replies = [node.ask("echo", home.name) for node, home in zip(nodes, homes, strict=True)]
            assert replies[0].conversation != replies[1].conversation
            for node, other in ((one, replies[1]), (two, replies[0])):
                assert len(node.chats()) == 1
                with pytest.raises(AiosError):
                    node.history(other.conversation)
            assert [len(Home(home).running()) for home in homes] == [1, 1]
            one.stop()
            assert str(two.ask("echo", "still here")) == "still here"
        finally:
            for node in nodes:
                node.stop()
    assert [Home(home).running() for home in homes] == [[], []]


# What may be wrong ----------------------------------------------------------------------------


def damage_key(home: Path) -> None:
    (home / "keys" / "sick.key").write_bytes(b"not a key")


def open_key(home: Path) -> None:
    (home / "keys" / "sick.key").chmod(0o644)


def hide_key(home: Path) -> None:
    key = home / "keys" / "sick.key"
    key.unlink()
    key.mkdir()


def lose_key(home: Path) -> None:
    (home / "keys" / "sick.key").unlink()


def damage_database(home: Path) -> None:
    (home / "sick.db").write_bytes(b"not a database" * 1000)


def hide_database(home: Path) -> None:
    for path in home.glob("sick.db*"):
        path.unlink()
    (home / "sick.db").mkdir()


def newer_database(home: Path) -> None:
    with closing(sqlite3.connect(home / "sick.db")) as database:
        database.execute("PRAGMA user_version = 99")


def hide_files(home: Path) -> None:
    shutil.rmtree(home / "blobs" / "sick")
    (home / "blobs" / "sick").write_text("no folder")


def give_away(home: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(home, NOBODY, NOBODY)


@pytest.mark.parametrize(
    "harm",
    [
        damage_key, open_key, hide_key, lose_key, damage_database, hide_database, newer_database,
        hide_files, give_away,
    ],
)  # fmt: skip
def test_a_home_that_cannot_be_used_is_told_and_nothing_is_left(
    aios_home, tmp_path, harm: Callable[[Path], None]
):
    with Node(Settings(name="sick")).start() as node:
        before = node.node_id
    kept = tmp_path / "kept"
    shutil.copytree(aios_home, kept)
    harm(aios_home)
    with nothing_left(), pytest.raises(AiosError) as told:
        Node(Settings(name="sick")).start()
    assert "\n" not in str(told.value)
    assert not Home().is_held("sick")

    shutil.rmtree(aios_home)
    shutil.copytree(kept, aios_home)
    with nothing_left(), Node(Settings(name="sick")).start() as node:
        assert node.node_id == before
        work(node)


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "256.1.1.1"}, {"host": "no.such.host.invalid"}, {"host": "192.0.2.1"},
        {"host": "0.0.0.0"}, {"port": 70_000}, {"port": -1}, {"public_url": "nonsense"},
        {"conformance": True, "allow_hosts": ("x.example",)}, {"name": "Not A Name"},
    ],
)  # fmt: skip
def test_a_wrong_setting_is_told_and_nothing_is_left(aios_home, wrong):
    Home().claim("well").release()
    with nothing_left(), pytest.raises(AiosError) as told:
        Node(Settings(**{"name": "well", **wrong})).start()
    assert "\n" not in str(told.value)
    assert not Home().is_held("well")


def test_a_port_in_use_is_told_and_nothing_is_left(aios_home):
    node = Node(Settings(name="late"))
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with nothing_left():
            for _ in range(3):
                node = Node(Settings(name="late", port=port))
                with pytest.raises(AiosError, match=f"port {port}"):
                    node.start()
                assert not node.running
    with nothing_left(), node.start():
        work(node)
