from __future__ import annotations

import pytest

from aios_nb.bench import contestants
from aios_nb.bench.generator import Generator
from aios_nb.bench.spec import Broken, Load


def test_the_generator_drives_the_baselines_from_its_own_process() -> None:
    with (
        Generator() as generator,
        contestants.baseline("echo") as echo,
        contestants.baseline("events") as events,
        contestants.baseline("spawn-bare") as spawn,
    ):
        for target, count in (
            (echo.target("echo", 3), 30),
            (events.target("events", 2, chunks=20), 4),
            (spawn.target("echo", 2), 2),
        ):
            with generator.open(target) as session:
                window = session.drive(Load(count=count))
                assert (window.replies, window.wrong) == (count, 0)
                assert window.cpu_us is None or window.cpu_us > 0
        with (
            generator.open(echo.target("rpc", 1)) as session,
            pytest.raises(Broken, match="3 of 3 replies were wrong"),
        ):
            session.drive(Load(count=3))
        with pytest.raises(Broken):
            generator.open(echo.target("rpc", 1, wire="ws"))
    for server in (echo, events, spawn):
        assert server.process.returncode is not None


def test_a_contestant_that_cannot_start_says_why() -> None:
    with (
        pytest.raises(Broken, match="no such baseline: nonsense"),
        contestants.baseline("nonsense"),
    ):
        pass


def test_children_do_not_inherit_settings_of_the_users_node(monkeypatch) -> None:
    monkeypatch.setenv("AIOS_HOME", "/elsewhere")
    assert "AIOS_HOME" not in contestants.child_env()
    assert contestants.child_env(AIOS_HOME="/mine")["AIOS_HOME"] == "/mine"
