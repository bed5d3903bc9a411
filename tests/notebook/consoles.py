"""An IPython shell with the extension, whose cells a test runs and looks at."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import aios_nb as aios
from aios_nb.agents import decorator
from aios_nb.node import Node
from aios_nb.notebook.session import Session, session_of

CEILING_S = 60
"""For something that never comes."""


@dataclass
class Ran:
    """What became of a cell."""

    ok: bool
    printed: str
    value: Any
    shown: list[dict[str, Any]] = field(default_factory=list)
    """What is under the cell at the end, by mime type; nothing for what was cleared."""
    updates: int = 0

    @property
    def text(self) -> str:
        return "\n".join(bundle["text/plain"] for bundle in self.shown)

    @property
    def html(self) -> str:
        return "\n".join(bundle.get("text/html", "") for bundle in self.shown)

    @property
    def line(self) -> str:
        """The one line of an error."""
        assert not self.ok
        said = self.printed.replace("\x1b[31m", "").replace("\x1b[0m", "").strip()
        assert "\n" not in said, said
        return said


class PageHook(DisplayHook):
    """Keeps the result of a cell as a page gets it."""

    outputs: list[dict[str, Any]]

    def write_output_prompt(self) -> None:
        """A page has its own."""

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        self.outputs.append({"data": format_dict})

    @contextmanager
    def instead_of(self, other: DisplayHook) -> Iterator[None]:
        shell = self.shell
        shell.displayhook = shell.display_trap.hook = self
        try:
            yield
        finally:
            shell.displayhook = shell.display_trap.hook = other


class Console:
    """A shell whose output a page takes, as in a notebook; ``terminal`` without one."""

    def __init__(self, shell: InteractiveShell, home: Path) -> None:
        self.shell = shell
        self.home = home
        self._hook = PageHook(parent=shell, shell=shell)
        self.outputs: list[dict[str, Any]] = []
        """What the cell that runs has published so far."""

    @property
    def session(self) -> Session:
        return session_of(self.shell)

    @property
    def node(self) -> Node:
        return self.session.node(CEILING_S)

    @property
    def names(self) -> dict[str, Any]:
        """The variables of the notebook."""
        return self.shell.user_ns

    def run(self, code: str) -> Ran:
        hook = self._hook
        with capture_output() as captured, hook.instead_of(self.shell.displayhook):
            self.outputs = hook.outputs = self.shell.display_pub.outputs
            result = self.shell.run_cell(code, store_history=True)
        shown: dict[str, dict[str, Any]] = {}
        for number, output in enumerate(captured._outputs):
            name = (output.get("transient") or {}).get("display_id") or f"nr {number}"
            shown[name] = output["data"]
        kept = [bundle for bundle in shown.values() if any(bundle.values())]
        error = result.error_before_exec or result.error_in_exec
        assert result.success == (error is None)
        return Ran(result.success, captured.stdout, result.result, kept, len(captured._outputs))

    def shows(self, words: str) -> bool:
        """Wait until the cell that runs shows this; for an agent, or another thread."""
        patience = threading.Event()
        for _ in range(CEILING_S * 20):
            if any(words in str(output["data"]) for output in list(self.outputs)):
                return True
            patience.wait(0.05)
        return False

    def good(self, code: str) -> Ran:
        ran = self.run(code)
        assert ran.ok, ran.printed
        return ran

    def error(self, code: str) -> str:
        """The one line with which a cell fails."""
        return self.run(code).line

    def terminal(self, code: str, capsys: pytest.CaptureFixture[str]) -> str:
        """What a terminal shows."""
        capsys.readouterr()
        self.shell.run_cell(code, store_history=True)
        return capsys.readouterr().out


@contextmanager
def console(folder: Path) -> Iterator[Console]:
    """A shell with the extension loaded and its node up, in a home of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIOS_HOME", str(folder / "home"))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        config = Config({"HistoryManager": {"enabled": False}})
        shell = InteractiveShell.instance(config=config)
        shell.colors = "nocolor"
        try:
            shell.run_line_magic("load_ext", "aios_nb")
            made = Console(shell, folder / "home")
            assert made.node.running
            yield made
        finally:
            aios.unload_ipython_extension(shell)
            decorator.declared.clear()
            InteractiveShell.clear_instance()
            atexit.unregister(shell.atexit_operations)
            shell.atexit_operations()


@contextmanager
def held(node: Node) -> Iterator[None]:
    """Inside, the node's loop does nothing: whoever waited for it would wait to the ceiling."""
    began, release, given_up = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        began.set()
        if not release.wait(CEILING_S):
            given_up.set()

    node.loop.loop.call_soon_threadsafe(hold)
    assert began.wait(CEILING_S)
    try:
        yield
    finally:
        release.set()
    assert not given_up.is_set()


class Tags(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)
