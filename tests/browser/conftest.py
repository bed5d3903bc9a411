"""One JupyterLab and one Chromium for the whole folder; notebooks and their kernels per test."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.browser import WITHOUT, Chromium, find_browser, workshop
from tests.browser.notebook import Notebook

HERE = Path(__file__).parent
OPENED = pytest.StashKey[list[Notebook]]()


TIMEOUT_S = 300
"""For a test that hangs. Each loads JupyterLab, which alone takes a minute on a busy machine."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """Gone when the folder is done: its loop would stand in the way of other tests' own."""
    found = find_browser()
    if found is None:
        if os.environ.get("AIOS_REQUIRE_BROWSER") == "1":
            pytest.fail(WITHOUT, pytrace=False)
        pytest.skip(WITHOUT)
    with workshop(found, tmp_path_factory.mktemp("lab")) as chromium:
        yield chromium


@pytest.fixture(scope="session")
def artifacts() -> Path:
    folder = _artifacts()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _artifacts() -> Path:
    return Path(os.environ.get("AIOS_ARTIFACTS") or HERE / "artifacts")


@pytest.fixture
def open_notebook(
    browser: Chromium, aios_home: Path, artifacts: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Notebook]]:
    """Open a notebook with these cells; the package's docstring tells what it can do."""
    kernel = browser.lab.kernel(aios_home)
    opened: list[Notebook] = []
    request.node.stash[OPENED] = opened
    test = re.sub(r"\W+", "-", request.node.name)

    def make(*cells: str, face: str = "lab", name: str | None = None) -> Notebook:
        called = name or (f"{test}-{len(opened)}" if opened else test)
        book = Notebook(browser.page(), browser.lab, kernel, aios_home, artifacts, called)
        opened.append(book)
        book.open(cells, face)
        return book

    yield make
    for book in opened:
        book.close()
    wrong = [problem for book in opened for problem in book.verdict()]
    assert not wrong, "\n".join(wrong)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """A failed test leaves a picture of every page it had open, and the server's log."""
    report = yield
    if report.when == "call":
        name = re.sub(r"\W+", "-", item.name)
        for old in _artifacts().glob(f"FAILED-{name}*"):
            old.unlink()
        for nr, book in enumerate(item.stash.get(OPENED, []) if report.failed else []):
            report.sections.append(("the page said", "\n".join(book.problems)))
            shutil.copyfile(book.lab.log, _artifacts() / f"FAILED-{name}.log")
            if not book.page.is_closed():
                report.sections.append(("the node's log", "\n".join(book.log()[-40:])))
                report.sections.append(("picture", str(book.shot(f"FAILED-{name}-{nr}"))))
    return report
