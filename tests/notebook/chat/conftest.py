"""Chats over a real node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from aios_nb.agents.definition import describe
from tests.notebook.chat.windows import AGENTS, Make, Open, Window
from tests.sites import TestSite


@pytest.fixture
def site(make_site: Make) -> TestSite:
    return make_site(
        *(describe(agent, about=f"{agent.__name__} answers", examples=["hi"]) for agent in AGENTS)
    )


@pytest.fixture
def open_chat(site: TestSite) -> Iterator[Open]:
    """Open chats; those still open are closed at the end."""
    windows: list[Window] = []

    def make(agent: str | None = "upper", **options: Any) -> Window:
        tag = str(len(windows) or "")
        window = Window(options.pop("site", site.node), agent, tag, **options)
        windows.append(window)
        return window

    yield make
    for window in windows:
        window.close()
