"""A town of three houses: this node, and two that it joined."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.town import House, Town


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    built = Town(tmp_path)
    yield built
    built.close()


@pytest.fixture
def here(town: Town) -> House:
    return town.house()


@pytest.fixture
def b(town: Town, here: House) -> House:
    return _joined(town, here)


@pytest.fixture
def c(town: Town, here: House) -> House:
    return _joined(town, here)


def _joined(town: Town, here: House) -> House:
    made = town.house()
    here.join(made)
    return made
