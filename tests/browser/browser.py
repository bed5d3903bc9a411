"""The system's Chromium, driven by Playwright: one process, a page per notebook."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.lab import Lab
from tests.browser.notebook import CEILING_MS, WIDE

NAMES = ("chromium", "chromium-browser", "google-chrome")
"""The same as in the Makefile."""
WITHOUT = "*** NO BROWSER: install Chromium (make browser), or the browser tests are SKIPPED ***"
OPTIONS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-sandbox",  # for root, in a container
    # What the page asks for outside is not fetched; the test hears of it.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


def find_browser() -> str | None:
    """Where the system keeps its Chromium; None without one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Chromium:
    """A browser. Its pages share one cache, so the second notebook opens much faster."""

    def __init__(self, executable: str, lab: Lab, scale: float = 1.0) -> None:
        self.lab = lab
        self._playwright = sync_playwright().start()
        try:
            self._browser = self._playwright.chromium.launch(
                executable_path=executable, args=OPTIONS
            )
        except BaseException:
            self._playwright.stop()
            raise
        self._context = self._browser.new_context(
            viewport={"width": WIDE[0], "height": WIDE[1]},
            device_scale_factor=scale,
            permissions=["clipboard-read", "clipboard-write"],
            reduced_motion="reduce",
        )
        expect.set_options(timeout=CEILING_MS)

    def page(self) -> Page:
        return self._context.new_page()

    def close(self) -> None:
        self._browser.close()
        self._playwright.stop()


@contextmanager
def workshop(executable: str, folder: Path, scale: float = 1.0) -> Iterator[Chromium]:
    """A browser and the JupyterLab it looks at; both start at once, and end together."""
    lab = Lab(folder)
    try:
        chromium = Chromium(executable, lab, scale)
        try:
            lab.wait()
            yield chromium
        finally:
            chromium.close()
    finally:
        lab.stop()
