"""Two processes with one key, as after a copied home: the later one is the node."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.network.conftest import Make, found, meet, say, sees, the, until, works


def test_the_older_of_two_with_one_key_falls_silent_and_says_so(
    node: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    seed = node("seed")
    older = node("twin", works("old-one"), join=seed)
    meet(seed, older)
    until(lambda: the(older, "old-one") in found(seed, "name:old-one"))
    assert "superseded" not in older.call("node.info")

    (tmp_path / "copy").mkdir(0o700)
    shutil.copytree(tmp_path / "twin" / "keys", tmp_path / "copy" / "keys")
    newer = node("twin", works("new-one"), join=seed, home=tmp_path / "copy")
    assert newer.node.node_id == older.node.node_id
    until(lambda: the(newer, "new-one") in found(seed, "name:new-one"))
    until(lambda: older.call("node.info").get("superseded"))
    assert "another process runs with the key of this node" in caplog.text
    assert found(seed, "name:old-one") == {}

    older.node.host(works("too-late"))
    newer.node.host(works("in-time"))
    until(lambda: the(newer, "in-time") in found(seed, "name:in-time"))
    assert found(seed, "name:too-late") == {}
    assert "superseded" not in newer.call("node.info")
    assert say(seed, "new-one") == "new-one has hello"
    assert sees(seed, newer) == "alive"
