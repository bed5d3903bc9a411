"""kill -9 at every stage: nothing is lost, nothing is said twice, all stays in order."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.bridge.matrix import ALL, matrix

CHATS = 6
EACH = 17


def test_a_bridge_killed_at_every_stage_loses_and_doubles_nothing(aios_home: Path) -> None:
    with matrix(aios_home, CHATS) as run:
        for stage in ALL:
            run.kill(stage, EACH)
        for _ in range(3):  # the same message is on its way each time
            run.kill("sending", 2, nth=1)
        run.kill_node(EACH)
        run.outcome().check()
