"""Shared by all tests: a home folder of their own, and nodes in it."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from aios_nb.store import Store
from tests.clock import Clock
from tests.sites import TestSite

# How long an example takes is the machine's affair.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")

# Started in the background of a script, a program does not hear interrupts; ours are tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Thousands of tests stay to the end: no collection of garbage looks at them again."""
    gc.collect()
    gc.freeze()


SPEAKS_FOR_THE_USER = ("AIOS_NODE", "JPY_SESSION_NAME")
"""Variables that would lead a test to a node, or a name, of the person who runs it."""


@pytest.fixture(scope="session", autouse=True)
def _no_real_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fixtures that live longer than one test do not see the user's home either."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIOS_HOME", str(tmp_path_factory.mktemp("session") / "home"))
        for name in SPEAKS_FOR_THE_USER:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True)
def aios_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh ``$AIOS_HOME`` for each test; not made yet, as on a new machine."""
    home = tmp_path / "home"
    monkeypatch.setenv("AIOS_HOME", str(home))
    return home


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A database, open for the length of a test."""
    store = Store.open(tmp_path / "node.db")
    yield store
    store.close_now()


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[Callable[..., TestSite]]:
    """Start nodes; those still running are stopped at the end."""
    sites: list[TestSite] = []

    def make(*agents: Any, **settings: Any) -> TestSite:
        site = TestSite(tmp_path / "home", agents, **settings)
        sites.append(site)
        return site

    yield make
    for site in sites:
        site.stop()
