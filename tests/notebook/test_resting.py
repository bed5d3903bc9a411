"""Panels whose cell was run again: they rest, and go on when somebody looks again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.notebook.conftest import Cell, Notebook

PREPARE = """
%load_ext aios_nb
import asyncio
import aios_nb as aios
from aios_nb.current import program
from aios_nb.notebook.widgets import panel
node = aios.node()

def busy():
    "What follows the node: tasks on its loop, and who is told when it goes."
    async def count():
        return len(asyncio.all_tasks())
    hooks = get_ipython().events.callbacks["post_run_cell"]
    return [node.run(count), len(program._told), len(hooks), len(panel._AWAKE)]
"""


@pytest.fixture(scope="module")
def notebook(open_notebook: Callable[..., Notebook]) -> Notebook:
    made = open_notebook("restless")
    made.run(PREPARE)
    return made


def run_in(notebook: Notebook, cell_id: str, code: str) -> Cell:
    """Run a cell as JupyterLab does, which says which one it is."""
    cell = notebook.begin(code, cell_id)
    assert notebook.finish(cell).status == "ok", cell.error
    return cell


@pytest.mark.parametrize("line", ["%aios chat echo", "%aios hub", "%aios network"])
def test_a_cell_that_is_run_again_and_again_leaves_one_panel_at_work(notebook: Notebook, line: str):
    run_in(notebook, line, line)
    before = notebook.value("busy()")
    for _ in range(8):
        run_in(notebook, line, line)
    notebook.eventually(f"all(now <= then for now, then in zip(busy(), {before}))")


def test_one_that_is_shown_elsewhere_goes_on(notebook: Notebook):
    run_in(notebook, "one", "chat = get_ipython().run_line_magic('aios', 'chat echo')\nchat")
    run_in(notebook, "two", "chat")
    run_in(notebook, "one", "%aios chat calc")
    assert notebook.value("chat.resting") is False
    run_in(notebook, "two", "%aios chat calc")
    assert notebook.value("chat.resting") is True


def test_a_cell_that_shows_nothing_any_more_leaves_no_panel_at_work(notebook: Notebook):
    run_in(notebook, "bare", "hub = get_ipython().run_line_magic('aios', 'hub')\nhub")
    run_in(notebook, "other", "1 + 1")
    assert notebook.value("hub.resting") is False
    run_in(notebook, "bare", "1 + 1")
    assert notebook.value("hub.resting") is True


def test_two_of_one_run_are_both_there(notebook: Notebook):
    made = "hubs = [get_ipython().run_line_magic('aios', 'hub') for _ in '12']"
    twice = f"from IPython.display import display\n{made}\ndisplay(*hubs)"
    for _ in range(2):
        run_in(notebook, "three", twice)
        assert notebook.value("[hub.resting for hub in hubs]") == [False, False]


def test_one_that_rests_goes_on_when_it_is_shown_or_heard_again(notebook: Notebook):
    run_in(notebook, "four", "chat = get_ipython().run_line_magic('aios', 'chat echo')\nchat")
    assert notebook.value("chat.ask('hello')") == "hello"
    run_in(notebook, "four", "%aios chat calc")
    notebook.eventually("chat.resting and chat.talk is None")
    assert notebook.value("chat.ask('from Python')") == "from Python"

    assert "from Python" in run_in(notebook, "five", "chat").text
    assert notebook.value("chat.resting") is False
    run_in(notebook, "five", "%aios chat calc")
    assert notebook.value("chat.resting") is True
    notebook.run("chat._heard(None, {'type': 'bye', 'view': 'x'}, [])")  # its page is gone
    assert notebook.value("chat.resting") is True
    notebook.run("chat._heard(None, {'type': 'drafting', 'text': 'x'}, [])")
    assert notebook.value("chat.resting") is True
    notebook.run("chat._heard(None, {'type': 'hello', 'view': 'y'}, [])")  # another one came
    assert notebook.value("chat.resting") is False
    notebook.eventually("chat.talk is not None and bool(chat.conversation)")
    run_in(notebook, "five", "%aios chat calc")  # that one is another matter
    assert notebook.value("chat.resting") is False
    notebook.run("chat._heard(None, {'type': 'bye', 'view': 'y'}, [])")
    notebook.eventually("chat.resting and chat.talk is None")


def test_what_was_said_right_before_its_cell_is_run_again_is_heard(notebook: Notebook):
    run_in(notebook, "seven", "chat = get_ipython().run_line_magic('aios', 'chat echo')\nchat")
    assert notebook.value("chat.ask('first')") == "first"
    notebook.run("talked = chat.conversation")
    # Both waited for the kernel: the message of the page, and the cell.
    notebook.run(
        "chat._heard(None, {'type': 'send', 'id': 'm-7', 'text': 'last'}, []); chat.rest()"
    )
    notebook.eventually(
        "[one.text for one in node.history(talked).messages][-2:]", ["last", "last"]
    )
    assert notebook.value("chat.resting") is True
    notebook.eventually("chat.talk is None")


def test_one_that_rests_and_speaks_follows_nothing_afterwards(notebook: Notebook):
    run_in(notebook, "six", "chat = get_ipython().run_line_magic('aios', 'chat echo')\nchat")
    run_in(notebook, "six", "%aios chat calc")
    notebook.eventually("chat.resting and chat.talk is None")
    before = notebook.value("busy()[0]")
    assert notebook.value("chat.ask('from Python')") == "from Python"
    notebook.eventually(f"chat.talk is None and busy()[0] <= {before}")
