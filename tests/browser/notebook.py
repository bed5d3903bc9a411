"""A notebook open in the browser: run its cells, read what they show, and disturb it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Locator, Page, Request, expect

from tests.browser.kernels import MAY_HANG
from tests.browser.lab import TOKEN, Lab, post

CEILING_MS = 30_000
TRIES = 3
WIDE = (1100, 900)
NARROW = (520, 900)
PANEL = """
  const panel = [...jupyterapp.shell.widgets("main")].find((one) => one.context?.path === path);
"""
READY = f"""(path) => {{
  if (!window.jupyterapp) return false;
  {PANEL}
  const ready = panel?.context.isReady && panel.sessionContext.isReady;
  return ready && panel.sessionContext.session?.kernel?.status === "idle";
}}"""
LAID_OUT = """(width) => {
  const { right } = document.querySelector(".jp-NotebookPanel").getBoundingClientRect();
  return right <= width && right > width - 120;
}"""
"""Beside the notebook there are at most JupyterLab's bars."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
OURS = re.compile(r" ERROR aios_nb\.(?!agents)")
"""A failure of the node itself in its log; what agents raise is their own."""
NOISE = re.compile(
    # Notebook 7 about itself, when it opens.
    r"reading 'schema'|'filebrowser:open-path' not registered"
    # JupyterLab's toolbar, now and then when the page changes its width.
    r"|'removeChild' on 'Node'"
)
WIDGETS = "blob:"
"""Where anywidget loads our code from: an error that passed through it is not noise."""


class Notebook:
    """What ``open_notebook`` gives. Cells are counted from 0."""

    def __init__(
        self, page: Page, lab: Lab, kernel: str, home: Path, artifacts: Path, name: str
    ) -> None:
        self.page = page
        self.lab = lab
        self.home = home
        self.path = f"{name}.ipynb"
        self.problems: list[str] = []
        self._kernel = kernel
        self._artifacts = artifacts
        self._forgiven: list[str] = []
        self._dark = False
        self._log_from = lab.log.stat().st_size
        page.set_default_timeout(CEILING_MS)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self._noted(f"thrown: {error.stack or error}"))
        page.on("request", self._asked)

    def open(self, cells: Sequence[str], face: str = "lab") -> None:
        """Write it, start its kernel, and show it."""
        (self.lab.notebooks / self.path).write_text(json.dumps(self._document(cells)))
        self._start_kernel()  # before the page is asked for: it starts while the page loads
        where = {
            "lab": f"/lab/workspaces/{Path(self.path).stem}/tree/{self.path}",
            "notebook": f"/notebooks/{self.path}",
        }
        self.page.goto(f"{self.lab.url}{where[face]}?token={TOKEN}")
        if MAY_HANG:
            self._awake()
        self._ready()

    def _start_kernel(self) -> None:
        session = {"path": self.path, "name": self.path, "type": "notebook"}
        self.session = self.lab.call(
            "POST", "/api/sessions", {**session, "kernel": {"name": self._kernel}}
        )

    def _document(self, cells: Sequence[str]) -> dict[str, Any]:
        code = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
        spec = {"name": self._kernel, "display_name": "Python (aios_nb)", "language": "python"}
        return {
            "cells": [
                {**code, "id": f"cell-{nr}", "source": source} for nr, source in enumerate(cells)
            ],
            "metadata": {"kernelspec": spec},
            "nbformat": 4,
            "nbformat_minor": 5,
        }

    def close(self) -> None:
        """Leave the page, and end the kernel with its node."""
        if not self.page.is_closed():
            self.problems += [line for line in self.log() if OURS.search(line)]
            if self._dark:
                self.light()  # the server remembers the theme
        self.page.close()
        self.lab.call("DELETE", f"/api/sessions/{self.session['id']}")

    # Cells ------------------------------------------------------------------------------------

    def run(self, nr: int, *, fails: bool = False) -> None:
        """Run one cell and wait for its end. ``fails``: it is meant to."""
        self.start(nr)
        self.done(nr, fails=fails)

    def run_all(self) -> None:
        self.start_all()
        for nr in range(len(self.sources())):
            self.done(nr)

    def start(self, nr: int) -> None:
        """Run one cell, without waiting."""
        self.activate(nr)
        self._command("notebook:run-cell")

    def activate(self, nr: int) -> None:
        """Make it the cell that keys and commands are for."""
        self._panel("panel.content.activeCellIndex = given; panel.content.activate()", nr)

    def start_all(self) -> None:
        """What the menu's "Run All Cells" does, without waiting."""
        self._command("notebook:run-all-cells")

    def done(self, nr: int, *, fails: bool = False) -> None:
        """Wait until a cell that was started has come to its end."""
        prompt = self.cell(nr).locator(".jp-InputPrompt")
        expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=2 * CEILING_MS)
        wrong = [one for one in self.outputs(nr) if one["output_type"] == "error"]
        if wrong and not fails:
            trace = COLOUR.sub("", "\n".join(wrong[0]["traceback"])) or wrong[0]["evalue"]
            raise AssertionError(f"cell {nr} failed: {trace}")
        if fails and not wrong:
            raise AssertionError(f"cell {nr} did not fail")

    def busy(self) -> None:
        """Wait until the kernel works on a cell."""
        self._wait('panel.sessionContext.session?.kernel?.status === "busy"')

    def idle(self) -> None:
        """Wait until the kernel has nothing to do."""
        self._wait('panel.sessionContext.session?.kernel?.status === "idle"')

    def cell(self, nr: int) -> Locator:
        return self.page.locator(".jp-Notebook .jp-Cell").nth(nr)

    def output(self, nr: int) -> Locator:
        """All that a cell shows."""
        return self.cell(nr).locator(".jp-Cell-outputArea")

    def text(self, nr: int) -> str:
        parts = self.output(nr).locator(".jp-OutputArea-output").all_inner_texts()
        return "\n".join(part.strip() for part in parts)

    def outputs(self, nr: int) -> list[dict[str, Any]]:
        """The same as it would be saved."""
        return self._panel("return panel.content.widgets[given].model.outputs.toJSON()", nr)

    def printed(self, nr: int, text: str) -> None:
        """Wait until the HTML that a cell leaves in the saved notebook has this in it."""
        html = "o.data?.['text/html']"
        self._wait(
            f"""panel.content.widgets[{nr}].model.outputs.toJSON().some(
              (o) => {html} && [].concat({html}).join("").includes({json.dumps(text)}))"""
        )

    def sources(self) -> list[str]:
        return self._panel("return panel.content.widgets.map((c) => c.model.sharedModel.source)")

    def has(self, nr: int, source: str) -> None:
        """Wait until this is what stands in a cell; a new one is empty for a moment."""
        cell = f"panel.content.widgets[{nr}]"
        self._wait(f"{cell}?.model.sharedModel.source === {json.dumps(source)}")

    def add(self, source: str) -> int:
        """One cell more, at the end; its number."""
        return self._panel(
            """const cells = panel.content.model.sharedModel;
            cells.addCell({cell_type: "code", source: given});
            return cells.cells.length - 1""",
            source,
        )

    # The kernel -------------------------------------------------------------------------------

    def value(self, expression: str) -> Any:
        """What it is in the kernel: waits for a running cell, and is part of none."""
        code = f"__import__('json').dumps({expression})"
        told = self._panel(
            """const ask = {code: "", silent: true, user_expressions: {given}};
            const future = panel.sessionContext.session.kernel.requestExecute(ask);
            return (await future.done).content.user_expressions.given""",
            code,
        )
        if told["status"] != "ok":
            raise AssertionError(f"{expression}: {told['ename']}: {told['evalue']}")
        return json.loads(ast.literal_eval(told["data"]["text/plain"]))

    def tell(self, code: str) -> None:
        """Have the kernel do this, in no cell, without waiting for it."""
        self._panel(
            """const ask = {code: given, silent: true};
            void panel.sessionContext.session.kernel.requestExecute(ask)""",
            code,
        )

    def rpc(self, method: str, **params: Any) -> Any:
        """What the notebook's node answers its owner from outside: also while a cell is busy."""
        runs = [json.loads(file.read_text("utf-8")) for file in (self.home / "run").glob("*.json")]
        run = next(one for one in runs if one["pid"] == self._pid)
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = post(f"{run['url']}/rpc", call, f"Bearer {run['token']}")
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def log(self) -> list[str]:
        """The last lines that the node has logged; none while a cell is busy."""
        told = self._panel(
            """const lines = "__import__('aios_nb.journal', fromlist=['']).journal.lines";
            const code = `__import__('json').dumps([*${lines}])`;
            const ask = {code: "", silent: true, user_expressions: {code}};
            const { kernel } = panel.sessionContext.session;
            const patience = kernel.status === "busy" ? given / 10 : given;
            const future = kernel.requestExecute(ask);
            const late = new Promise((done) => setTimeout(done, patience));
            return (await Promise.race([future.done, late]))?.content.user_expressions.code.data""",
            CEILING_MS,
        )
        return json.loads(ast.literal_eval(told["text/plain"])) if told else []

    def restart(self) -> None:
        """Restart the kernel as a person does, through the dialog; waits until it is there."""
        run = "() => ({again: jupyterapp.commands.execute('notebook:restart-kernel')})"
        handle = self.page.evaluate_handle(run)
        self.page.locator(".jp-Dialog").locator(".jp-mod-accept").click()
        handle.evaluate("(handle) => handle.again")
        self._ready()

    def another_day(self) -> None:
        """Open what was saved again, with a new kernel that has run nothing."""
        self.lab.call("DELETE", f"/api/sessions/{self.session['id']}")
        self._start_kernel()
        self.page.reload()
        self._ready()

    def interrupt(self) -> None:
        self._command("notebook:interrupt-kernel")

    # The page ---------------------------------------------------------------------------------

    def save(self) -> None:
        self._panel("await panel.context.save()")

    def saved(self) -> dict[str, Any]:
        """The notebook as the file has it."""
        found: dict[str, Any] = json.loads((self.lab.notebooks / self.path).read_text("utf-8"))
        return found

    def reload(self, *, save: bool = True, idle: bool = True) -> None:
        """Load the page again. ``idle=False``: the kernel works on a cell meanwhile."""
        if save:
            self.save()
        self.page.reload()
        if idle:
            self._ready()
        else:
            self.page.wait_for_function(READY.replace('=== "idle"', "!== undefined"), arg=self.path)

    def dark(self) -> None:
        self._theme("JupyterLab Dark")
        self._dark = True

    def light(self) -> None:
        self._theme("JupyterLab Light")
        self._dark = False

    def _theme(self, theme: str) -> None:
        self.page.evaluate(
            "(theme) => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme
        )
        expect(self.page.locator("body")).to_have_attribute("data-jp-theme-name", theme)

    def narrow(self) -> None:
        """A page of the width of half a laptop's screen."""
        self.resize(*NARROW)

    def wide(self) -> None:
        self.resize(*WIDE)

    def resize(self, width: int, height: int) -> None:
        """Change the page's size; JupyterLab lays itself out a moment later."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.wait_for_function(LAID_OUT, arg=width)

    def shot(self, name: str, what: Locator | None = None) -> Path:
        """A picture of the page, or of a part of it, kept with the artifacts."""
        path = self._artifacts / f"{name}.png"
        if what is None:
            self.page.screenshot(path=path, animations="disabled")
        else:
            what.screenshot(path=path, animations="disabled")
        return path

    # What went wrong --------------------------------------------------------------------------

    def forgive(self, text: str) -> None:
        """An error of the page with this text in it is part of the test."""
        self._forgiven.append(text)

    def verdict(self) -> list[str]:
        """What the page and the server complained about."""
        with self.lab.log.open("rb") as log:
            log.seek(self._log_from)
            lines = log.read().decode("utf-8", "replace").splitlines()
        dropped = [line for line in lines if "rate exceeded" in line]
        said = [one for one in self.problems if not any(text in one for text in self._forgiven)]
        return said + dropped

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            where = message.location.get("url", "")
            self._noted(f"logged: {message.text} ({where})")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.lab.url, "data:", "blob:")):
            self._noted(f"asked for {request.url}")

    def _noted(self, problem: str) -> None:
        if WIDGETS in problem or not NOISE.search(problem):
            self.problems.append(problem)

    # JupyterLab's own objects -----------------------------------------------------------------

    def _ready(self) -> None:
        self.page.wait_for_function(READY, arg=self.path, timeout=2 * CEILING_MS)
        # The files beside the notebook would take half of a narrow page; Notebook 7 has none.
        self.page.evaluate("() => { jupyterapp.shell.collapseLeft?.() }")
        self._pid = self.value("__import__('os').getpid()")

    def _awake(self) -> None:
        """See that the kernel answers; one that hung when the page came is started again."""
        answers = """const ask = {code: "", silent: true};
            const asked = panel.sessionContext.session.kernel.requestExecute(ask).done;
            const late = new Promise((told) => setTimeout(() => told(null), given));
            return (await Promise.race([asked, late])) !== null"""
        for _ in range(TRIES):
            self.page.wait_for_function(READY, arg=self.path, timeout=2 * CEILING_MS)
            if self._panel(answers, CEILING_MS // 2):
                return
            self._panel("await panel.sessionContext.session.kernel.restart()")

    def _panel(self, body: str, given: Any = None) -> Any:
        program = f"async ([path, given]) => {{ {PANEL} {body} }}"
        return self.page.evaluate(program, [self.path, given])

    def _wait(self, condition: str) -> None:
        program = f"(path) => {{ {PANEL} return {condition} }}"
        self.page.wait_for_function(program, arg=self.path)

    def _command(self, name: str) -> None:
        """Started, not waited for: a cell may take long."""
        self.page.evaluate("(name) => { jupyterapp.commands.execute(name) }", name)
