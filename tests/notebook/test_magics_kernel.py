"""``%aios`` in a real kernel: what reaches a page, and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.notebook.conftest import CEILING_S, Notebook

TALKER = """%%agent talker --about Speaks in two breaths
import threading
go_on = threading.Event()
def talker(text):
    yield "**first** "
    go_on.wait(60)
    yield "and last"
"""


@pytest.fixture(scope="module")
def notebook(open_notebook: Callable[..., Notebook]) -> Iterator[Notebook]:
    opened = open_notebook("magics")
    opened.run("%load_ext aios_nb")
    opened.run("import aios_nb as aios\nnode = aios.node()")
    return opened


def test_an_answer_grows_in_one_place_and_is_not_shown_again(notebook: Notebook):
    notebook.run(TALKER)
    notebook.run("@aios.agent\ndef opener(text):\n    go_on.set()\n    return 'open'")
    cell = notebook.begin("answer = %aios ask talker x\nanswer")
    notebook.until(lambda: cell.shown and "<strong>first</strong>" in cell.shown[0]["text/html"])
    assert "and last" not in cell.text
    notebook.rpc("chat.send", agent="opener", text="x")  # the cell is still busy
    notebook.finish(cell)
    assert cell.status == "ok", cell.error
    assert [bundle["text/plain"] for bundle in cell.shown] == ["**first** and last"]
    later = notebook.run("answer")
    assert "<strong>first</strong> and last" in later.shown[0]["text/html"]


def test_an_error_fails_the_cell_with_one_line(notebook: Notebook):
    cell = notebook.finish(notebook.begin("%aios ask tlker x"))
    assert cell.status == "error"
    assert "did you mean talker" in cell.error
    assert "\n" not in cell.error
    message = notebook.client.execute("node.ask('tlker', 'x')")
    reply = notebook.reply(message)
    assert (reply["status"], reply["ename"]) == ("error", "NoSuchAgent")
    assert len(reply["traceback"]) == 1


def test_await_leaves_the_kernel_free(notebook: Notebook):
    cell = notebook.run(
        "import asyncio\nsteps = []\n"
        "async def tick():\n    steps.append('tick')\n"
        "task = asyncio.create_task(tick())\n"
        "got = await node.ask_async('echo', 'hello')\nsteps, got"
    )
    assert cell.text == "(['tick'], 'hello')"


def test_help_and_tab_reach_the_page(notebook: Notebook):
    for line, said in (("%aios?", "search WORDS [-n N]"), ("%%agent?", "--about TEXT")):
        asked = notebook.reply(notebook.client.execute(line))
        assert said in asked["payload"][0]["data"]["text/plain"]
    line = "x = %aios ask talk"
    ends = time.monotonic() + CEILING_S
    while True:  # until the list of agents has heard of it
        completed = notebook.reply(notebook.client.complete(line, len(line)))
        if completed["matches"] or time.monotonic() > ends:
            break
    assert completed["matches"][0] == "talker"
    assert completed["cursor_start"] == len("x = %aios ask ")
