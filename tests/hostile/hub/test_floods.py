"""Records by the thousand from keys that cost nothing, and records that no honest node signs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from aios_nb.config import Limits
from aios_nb.records import Signed
from tests.between.liar import Liar
from tests.hostile.hub.seeds import agent, key, now_ms, tells, word
from tests.network.conftest import Make, found, meet, say, the, until, works
from tests.sites import TestSite

KEYS, EACH = 100, 50
ROOM = 1000
MB = 1 << 20
HOUR_MS = 3_600_000


def _held(site: TestSite) -> int:
    return int(site.on_loop(lambda: len(site.rooms.network.catalogue)))


def _flood() -> list[Signed]:
    return [
        agent(key(f"flood {one}"), f"spam{number}", about="buy bread, cheap bread, bakes bread")
        for one in range(KEYS)
        for number in range(EACH)
    ]


@pytest.mark.parametrize("members", [False, True])
def test_a_hundred_keys_that_flood_leave_room_for_others(node: Make, members: bool):
    """Whether their nodes seem to be there or not."""
    limits = Limits(records=ROOM)
    a = node("a", works("baker", "bakes bread"), limits=limits)
    b = node("b", works("miller", "grinds corn"), works("cook", "cooks soup"), join=a)
    meet(a, b)
    until(lambda: the(b, "cook") in found(a, "name:cook"))
    words = [word(key(f"flood {one}"), ("127.0.0.1", 20_000 + one)) for one in range(KEYS)]
    flood = [signed.to_bytes() for signed in _flood()]
    with Liar() as liar:
        tells(liar, [one.to_bytes() for one in words] if members else (), flood)
        tracemalloc.start()
        try:
            liar.call(a, "gossip.sync", digest=b"")
            until(lambda: _held(a) >= ROOM)
            until(lambda: not a.on_loop(lambda: dict(a.rooms.network._spreading._pulling)))
            grown = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        print(f"\n{grown / MB:.1f} MB for {_held(a)} records")  # noqa: T201
        assert _held(a) <= ROOM + 200, "agents, and the records of nodes beside them"
        assert grown < 40 * MB
        for agent_id, words_ in (
            (the(a, "baker"), "name:baker"),
            (the(b, "miller"), "grinds corn"),
            (the(b, "cook"), "name:cook"),
        ):
            until(lambda agent_id=agent_id, words_=words_: agent_id in found(a, words_))
        newcomer = node("newcomer", works("tailor", "sews coats"), join=a)
        until(lambda: the(newcomer, "tailor") in found(a, "sews coats"))
        assert say(a, "tailor") == "tailor has hello"


def test_one_publisher_has_no_more_than_its_cap(node: Make):
    a = node("a")
    publisher = key("greedy")
    records = [agent(publisher, f"spam{number}").to_bytes() for number in range(200)]
    with Liar() as liar:
        tells(liar, [word(publisher, ("127.0.0.1", 20_000)).to_bytes()], records)
        liar.call(a, "gossip.sync", digest=b"")
        until(lambda: _held(a) >= 64)
        until(lambda: not a.on_loop(lambda: dict(a.rooms.network._spreading._pulling)))
        own = a.on_loop(lambda: len(list(a.rooms.network.catalogue.of(publisher.node_id))))
        assert own == 64
        assert a.on_loop(lambda: not a.rooms.network.catalogue.crowded)


def test_clocks_that_are_wrong(node: Make):
    """Half an hour either way counts; two hours ahead does not, and is counted."""
    a = node("a")
    now = now_ms()
    ids = {name: key(name) for name in ("behind", "ahead", "far")}
    skews = {"behind": -HOUR_MS // 2, "ahead": HOUR_MS // 2, "far": 2 * HOUR_MS}
    records = [
        agent(ids[name], name, epoch=now + skew, at=now + skew).to_bytes()
        for name, skew in skews.items()
    ]
    words = [
        word(ids[name], ("127.0.0.1", 20_000 + number), epoch=now + skews[name]).to_bytes()
        for number, name in enumerate(ids)
    ]
    with Liar() as liar:
        tells(liar, words, records)
        liar.call(a, "gossip.sync", digest=b"")
        for name in ("behind", "ahead"):
            until(lambda name=name: f"{name}@{ids[name].node_id}" in found(a, f"name:{name}"))
        assert found(a, "name:far") == {}
        assert a.rooms.network.catalogue.counts["out of time"] == 1


ODD = "\x1b[2J\x1b]0;owned\x07evil \u202egnp.exe\u200b\u2066 \x00\x07\r\nagents 0"


def test_odd_text_is_shown_without_what_a_terminal_obeys(node: Make, tmp_path: Path):
    a = node("a")
    author = key("odd")
    signed = agent(author, "odd", title=ODD, about=ODD + "x" * 200, tags=(ODD, "\u202ered"))
    with Liar() as liar:
        tells(liar, [word(author, ("127.0.0.1", 20_000)).to_bytes()], [signed.to_bytes()])
        liar.call(a, "gossip.sync", digest=b"")
        until(lambda: f"odd@{author.node_id}" in found(a, "name:odd"))
        for command in (["search", "name:odd"], ["agents"], ["peers"], ["search", "evil"]):
            shown = subprocess.run(
                [sys.executable, "-m", "aios_nb", *command],
                env={**os.environ, "AIOS_HOME": str(tmp_path / "a"), "PYTHONPATH": str(Path.cwd())},
                capture_output=True,
                check=False,
                timeout=60,
            )
            text = shown.stdout.decode() + shown.stderr.decode()
            assert shown.returncode == 0, text
            bad = {char for char in text if char != "\n" and not char.isprintable()}
            assert bad == set(), (command, text)
            assert "\nagents 0" not in text


def test_two_nodes_with_one_key(node: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """The one that started later counts; the other says so and publishes nothing more."""
    first = node("one", works("baker"))
    witness = node("witness", join=first)
    meet(first, witness)
    until(lambda: the(first, "baker") in found(witness, "name:baker"))
    copied = tmp_path / "copy"
    shutil.copytree(
        tmp_path / "one", copied, ignore=shutil.ignore_patterns("*.db*", "run", "*.lock", "blobs")
    )
    second = node("one", works("thief"), home=copied, join=witness)
    assert second.node.node_id == first.node.node_id
    until(lambda: the(second, "thief") in found(witness, "name:thief"))
    until(lambda: "another process runs with the key" in caplog.text)
    until(lambda: found(witness, "name:baker") == {})
