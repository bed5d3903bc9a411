"""Nodes for the tests of a module: an ordinary one, and one in conformance mode."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.wire.a2a.stage import Stage


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("a2a") / "home")
    yield stage
    stage.stop()


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A node in conformance mode."""
    stage = Stage(tmp_path_factory.mktemp("tck") / "home", name="tck", conformance=True)
    yield stage
    stage.stop()
