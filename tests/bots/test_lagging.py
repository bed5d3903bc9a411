"""A bridge that is behind with the log, as after a restart, and replies that are written then."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aios_bots.core.showing import Showing
from tests.bots.world import LOOK_S, World


async def test_an_answer_comes_before_the_next_one_that_is_being_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana, "writer")
    let_go, take = asyncio.Event(), Showing._take

    async def late(self: Showing, row: Any) -> None:
        await let_go.wait()
        await take(self, row)

    monkeypatch.setattr(Showing, "_take", late)
    ana.says("one")
    world.stage.write("The first answer.", None)
    while len(await world.said(conversation)) < 2:  # noqa: ASYNC110 - a log is read to know
        await asyncio.sleep(LOOK_S)
    ana.says("two")
    world.stage.write("The second answer, which is long enough to be shown. ")
    first, second = "The first answer.", "The second answer, which is long enough to be shown."
    await world.shows("5", "one", "two", f"writer\n{first}", f"writer\n{second}")
    let_go.set()
    world.stage.write("It ends.", None)
    await world.shows("5", "one", "two", f"writer\n{first}", f"writer\n{second} It ends.")
