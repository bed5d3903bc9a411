"""Starts nodes as processes, and leaves none behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.nodes import NodeProcess

Start = Callable[..., NodeProcess]


@pytest.fixture
def start(aios_home: Path) -> Iterator[Start]:
    """Starts a node, in the test's own home if no other is named."""
    started: list[NodeProcess] = []

    def begin(*args: str, home: Path = aios_home, **options: Any) -> NodeProcess:
        node = NodeProcess(home, *args, **options)
        started.append(node)
        return node

    yield begin
    for node in started:
        if node.alive:
            node.kill()
