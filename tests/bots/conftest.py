"""Stories of people at a bridge: a test that is a coroutine runs while its world is there."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aios_bots.core import collapsing, turn
from aios_bots.core.model import ChatKind
from tests.bots.world import World
from tests.clock import Clock


@pytest.fixture
def world(tmp_path: Path, clock: Clock) -> Iterator[World]:
    """A node, an app, and a bridge that runs while the test does."""
    world = World(tmp_path, clock)
    yield world
    world.site.stop()


@pytest.fixture
def quick_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that grows is edited as soon as it has grown."""
    monkeypatch.setattr(turn, "EDIT_S", dict.fromkeys(ChatKind, 0.0))
    monkeypatch.setattr(turn, "GROWN_CHARS", 1)


@pytest.fixture
def quick_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who watches is told at once."""
    monkeypatch.setattr(collapsing, "GATHER_S", 0.0)
    monkeypatch.setattr(collapsing, "SUMMARY_S", 0.05)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine; with its world, if it has one."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = pyfuncitem.funcargs
    args: dict[str, Any] = {name: given[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def story() -> None:
        async with contextlib.AsyncExitStack() as stack:
            if isinstance(world := args.get("world"), World):
                await stack.enter_async_context(world)
            await pyfuncitem.obj(**args)

    asyncio.run(story())
    return True
