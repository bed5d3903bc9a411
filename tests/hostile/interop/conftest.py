"""A node as strangers find it; it counts who got through to an agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from aios_nb.agents.definition import describe
from tests.wire.a2a.stage import Stage


class House(Stage):
    """With an agent that everybody may ring."""

    def _agents(self) -> list[Any]:
        self.rung: list[str] = []

        async def bell(text):
            self.rung.append(text)
            return text

        return [*super()._agents(), describe(bell, about="Rings", access="public")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("interop") / "home")
    yield house
    house.stop()
