"""The extension in real kernels: quick to load, hard to disturb, gone without a trace."""

from __future__ import annotations

import json
import os
import shutil
import urllib.error
from collections.abc import Callable
from pathlib import Path

import ipykernel
import pytest

from aios_nb.errors import AgentFailed
from aios_nb.home import Home
from tests.notebook.conftest import CEILING_S, ROOT, Cell, Notebook

HEAVY = [
    "aiohttp", "anywidget", "cryptography", "ipywidgets", "kademlia", "markdown_it", "mcp",
    "nest_asyncio", "numpy", "pandas", "tantivy", "wordllama",
]  # fmt: skip
NODE = "aios-node"
"""The name of a node's thread."""
WATCH = f"""
import sys, threading

class Watch:
    found = []
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is threading.main_thread():
            if name.partition(".")[0] in {HEAVY}:
                self.found.append(name)

sys.meta_path.insert(0, Watch())
"""
PREPARE = """
import asyncio, time
import aios_nb as aios
from aios_nb.notebook.session import session_of
node, session = aios.node(), session_of()

@aios.agent
async def slow(text):
    try:
        await asyncio.sleep(600)
    finally:
        ended.append(text)

ended = []
"""
SLOW_STOP = """
import os, signal
from aios_nb.node import Node
stop, go_on = Node.stop, threading.Event()

def slowly(self, within_s=None):
    os.kill(os.getpid(), signal.SIGINT)
    go_on.wait()
    stop(self, within_s)

Node.stop = slowly
"""


@pytest.fixture(scope="module")
def loaded(open_notebook: Callable[..., Notebook]) -> dict[str, tuple[Notebook, Cell]]:
    """Two notebooks of one person, and the cells in which they loaded the extension."""
    found = {}
    for name in ("alice", "bob"):
        notebook = open_notebook(name)
        notebook.run(WATCH)
        found[name] = notebook, notebook.run("%load_ext aios_nb")
        notebook.run(PREPARE)
    return found


@pytest.fixture
def alice(loaded: dict[str, tuple[Notebook, Cell]]) -> Notebook:
    return loaded["alice"][0]


@pytest.fixture
def bob(loaded: dict[str, tuple[Notebook, Cell]]) -> Notebook:
    return loaded["bob"][0]


def test_this_is_the_ipykernel_that_was_asked_for(alice: Notebook):
    wanted = os.environ.get("AIOS_IPYKERNEL", "")  # set by `make matrix`

    assert ipykernel.__version__.startswith(wanted)
    assert alice.value("__import__('ipykernel').__version__") == ipykernel.__version__


def test_loading_imports_nothing_heavy_on_the_main_thread(alice: Notebook):
    assert alice.value("Watch.found") == []
    assert alice.value("'aiohttp' in sys.modules")  # the node's thread did


def test_the_line_of_welcome_fills_in_by_itself(loaded: dict[str, tuple[Notebook, Cell]]):
    (alice, _), (bob, cell) = loaded["alice"], loaded["bob"]
    bob.until(lambda: "1 other node known" in cell.text)

    (shown,) = cell.shown
    assert bob.run_info["url"] in shown["text/plain"]
    assert shown["text/html"] == f"<div>{shown['text/plain']}</div>"
    assert alice.run_info["name"] not in cell.text


def test_two_notebooks_list_each_other(alice: Notebook, bob: Notebook):
    for one, other in ((alice, bob), (bob, alice)):
        alive = "[p.name for p in node.peers() if p.state == 'alive']"
        one.eventually(alive, [other.run_info["name"]])


def test_an_agent_shows_in_the_other_notebook_as_it_comes_changes_and_goes(
    alice: Notebook, bob: Notebook
):
    seen = "[row['about'] for row in session.roster.rows() if row['name'] == 'greet']"
    for about in ("first", "second"):
        alice.run(f"@aios.agent(about={about!r})\ndef greet(text): return {about!r} + text")
        bob.eventually(seen, [about])
        assert bob.value("node.ask('greet', '!')") == f"{about}!"
    alice.run("%aios withdraw greet")
    bob.eventually(seen, [])


@pytest.mark.parametrize("busy", ["time.sleep(600)", "while True: pass"])
def test_the_node_answers_while_a_cell_is_busy(alice: Notebook, busy: str):
    cell = alice.begin(f"print('begun')\n{busy}")
    alice.until(lambda: "begun" in cell.printed)

    for _ in range(5):
        assert alice.get("/healthz") == b'{"status":"ok"}'
        assert alice.rpc("chat.send", agent="echo", text="hi")["text"] == "hi"
    assert not cell.status
    alice.interrupt()
    assert "KeyboardInterrupt" in alice.finish(cell).error
    assert alice.value("node.ask('echo', 'alive')") == "alive"


@pytest.mark.parametrize(
    "waits", ["node.ask('slow', '{}')", "%aios ask slow {}", "await node.ask_async('slow', '{}')"]
)
def test_an_interrupt_ends_the_wait_and_the_work_and_leaves_the_node(alice: Notebook, waits: str):
    word = f"word{len(waits)}"
    cell = alice.begin(f"ended.clear()\n{waits.format(word)}")
    asked = lambda: [row["last"] for row in alice.rpc("chat.list")["conversations"]]  # noqa: E731
    alice.until(lambda: word in asked())
    alice.interrupt()

    assert alice.finish(cell).status == "error"
    if not waits.startswith("await"):
        what = "%aios ask" if waits.startswith("%") else "asking slow"
        assert cell.error == f"KeyboardInterrupt: {what} was stopped"
    alice.eventually("ended", [word])
    assert alice.value("node.ask('echo', 'alive')") == "alive"


def test_asyncio_is_as_it_was(alice: Notebook):
    assert not alice.value("hasattr(asyncio, '_nest_patched') or session.patched")
    assert not alice.value("'nest_asyncio' in sys.modules")


def test_reloading_leaves_one_node_with_its_agents(alice: Notebook):
    before = alice.run_info
    alice.run("%load_ext aios_nb")  # already loaded: nothing happens
    assert alice.run_info == before
    alice.run("%reload_ext aios_nb\nnode = aios.node()")
    after = alice.run_info

    assert (after["name"], after["node_id"]) == (before["name"], before["node_id"])
    assert after["token"] != before["token"]
    assert alice.value("[t.name for t in threading.enumerate()]").count(NODE) == 1
    assert alice.value("[hit.name for hit in node.agents() if hit.name == 'slow']") == ["slow"]
    assert refused(alice, before["url"])


def test_a_node_with_other_choices_takes_the_place_of_the_one_that_came_along(bob: Notebook):
    name = bob.run_info["name"]
    assert bob.value("(aios.node().name, session.node() is aios.node())") == [name, True]
    bob.run("%aios up --name carol")
    assert bob.value("aios.node().name") == "carol"
    assert "carol" in bob.fail("%aios up --name dave")
    bob.run("%aios down")
    assert bob.value("session.state") == "down"
    bob.run(f"%aios up --name {name}")
    assert bob.value("[hit.name for hit in aios.node().agents() if hit.name == 'slow']")


def test_a_restarted_kernel_is_the_same_node_again(bob: Notebook):
    before = bob.run_info
    bob.restart()
    assert refused(bob, before["url"])
    bob.run("%load_ext aios_nb")
    bob.run(PREPARE)

    assert bob.value("node.node_id") == before["node_id"]


def test_after_a_restart_a_chat_is_there_before_its_agent(
    open_notebook: Callable[..., Notebook], tmp_path: Path
):
    book = open_notebook("again", home=tmp_path / "home")
    book.run("%load_ext aios_nb")
    book.run("%%agent parrot\ndef parrot(text): return text + '!'")
    book.run("chat = %aios chat parrot\nchat.ask('hello')")
    book.restart()
    book.run("%load_ext aios_nb")
    shown = book.run("chat = %aios chat parrot\nchat").shown[0]

    assert "hello!" in shown["text/plain"]
    assert "run its cell or file again" in book.fail("%aios ask parrot hello")
    book.run("%%agent parrot\ndef parrot(text): return text + '?'")
    assert book.value("chat.ask('hello')") == "hello?"
    assert "no such agent: parot" in book.fail("%aios chat parot")


def test_a_kernel_that_ends_lets_go_of_port_and_name(alice: Notebook, bob: Notebook):
    info = bob.run_info
    bob.close()

    assert refused(bob, info["url"])
    assert [run.name for run in Home(bob.home).running()] == [alice.run_info["name"]]
    Home(bob.home).claim(info["name"], wait_s=0.0).release()
    alice.eventually(f"[p.state for p in node.peers() if p.name == {info['name']!r}]", ["left"])


def refused(notebook: Notebook, url: str) -> bool:
    """Whether nobody answers there any more."""
    try:
        notebook.fetch(url)
    except urllib.error.URLError as error:
        return isinstance(error.reason, ConnectionRefusedError)
    return False


# Edited modules ------------------------------------------------------------------------------


@pytest.fixture
def edited(open_notebook: Callable[..., Notebook], tmp_path: Path) -> tuple[Notebook, Path]:
    """A notebook that uses a copy of the package, which can be edited."""
    package = tmp_path / "source" / "aios_nb"
    shutil.copytree(ROOT / "aios_nb", package, ignore=shutil.ignore_patterns("__pycache__"))
    path = os.pathsep.join(filter(None, [str(package.parent), os.environ.get("PYTHONPATH")]))
    notebook = open_notebook("edited", tmp_path / "home", PYTHONPATH=path)
    notebook.run("%load_ext autoreload\n%autoreload 2\n%load_ext aios_nb")
    notebook.run(PREPARE)
    return notebook, package


def test_the_node_survives_edited_modules(edited: tuple[Notebook, Path]):
    """Not every module: types that are on the wire cannot change under a node that runs."""
    notebook, package = edited
    before = notebook.run_info
    ours = ["__init__", "loop", "node", "site", "agents/decorator", "agents/threads"]
    for path in [*(package / "notebook").rglob("*.py"), *(package / f"{one}.py" for one in ours)]:
        touch(path)
    kernel = package / "notebook" / "welcome.py"
    kernel.write_text(kernel.read_text().replace("try %aios?", "try edited"))
    notebook.run("1")

    assert notebook.run_info == before
    assert "edited" in notebook.value(
        "__import__('aios_nb.notebook.welcome').notebook.welcome.HELP"
    )
    assert notebook.value("aios.node() is node and session_of() is session")
    notebook.run("@aios.agent\ndef late(text): return text + '!'")
    assert notebook.value("node.ask('late', 'hi')") == "hi!"
    assert "hi!" in notebook.run("%aios ask late hi").text
    notebook.run("%reload_ext aios_nb")
    assert notebook.value("aios.node().ask('late', 'hi')") == "hi!"
    assert notebook.value("[t.name for t in __import__('threading').enumerate()]").count(NODE) == 1
    notebook.close()
    assert refused(notebook, before["url"])
    assert Home(notebook.home).running() == []


def touch(path: Path) -> None:
    """As an editor does that saves: autoreload looks at the time."""
    then = path.stat().st_mtime + 5
    os.utime(path, (then, then))


def test_all_cells_of_a_new_notebook_may_run_at_once(
    alice: Notebook, open_notebook: Callable[..., Notebook]
):
    alice.run("@aios.agent(about='Turns words around')\ndef turner(text):\n    return text[::-1]")
    carol = open_notebook("carol")
    carol.run("import aios_nb.hub.network as network; network.ACQUAINT_S = 60")  # busy machines
    begun = [carol.begin(code) for code in ("%load_ext aios_nb", "%aios", "%aios ask turner abc")]
    _, status, asked = [carol.finish(cell) for cell in begun]
    assert "cba" in asked.text
    assert " alive" in status.text
    assert "; 0 of others" not in status.text

    carol.eventually(
        "'turner' in [row['name'] for row in get_ipython()._aios_session.roster.rows()]"
    )
    assert "turner is not yours: " in carol.fail("%aios withdraw turner")


def test_an_agent_that_wants_input_fails_at_once_and_cells_may_ask(alice: Notebook):
    alice.run("@aios.agent\ndef typist(text):\n    return input('name? ')")
    asked = alice.reply(alice.client.execute("%aios ask typist x", allow_stdin=True))
    assert asked["status"] == "error"
    assert "cannot use input()" in asked["evalue"]
    cell = alice.client.execute("said = input('name? ')", allow_stdin=True)
    alice.client.get_stdin_msg(timeout=CEILING_S)
    alice.client.input("Ada")
    assert alice.reply(cell)["status"] == "ok"
    assert alice.value("said") == "Ada"


def test_the_node_prints_nothing_though_the_user_logs_everything(alice: Notebook):
    alice.run("import logging; logging.basicConfig(level=logging.DEBUG, force=True)")
    alice.run("@aios.agent\ndef breaks(text):\n    raise ValueError('not today')")
    cell = alice.begin("print('begun')\ntime.sleep(600)")
    alice.until(lambda: "begun" in cell.printed)
    with pytest.raises(AgentFailed):
        alice.rpc("chat.send", agent="breaks", text="x")
    alice.interrupt()
    assert alice.finish(cell).printed == "begun\n"
    assert "aios_nb" not in alice.run("reply = %aios ask echo **hi**").printed
    alice.run("logging.basicConfig(level=logging.WARNING, force=True)")


def test_an_interrupted_reload_leaves_the_extension_as_it_was(alice: Notebook):
    before = alice.run_info["node_id"]
    alice.run(SLOW_STOP)
    assert "KeyboardInterrupt" in alice.fail("%reload_ext aios_nb")
    alice.run("Node.stop = stop; go_on.set()")
    alice.run("%aios up")
    assert alice.run("%aios ask echo on").text == "on"
    assert alice.run_info["node_id"] == before


def test_a_renamed_notebook_is_told_where_its_conversations_are(
    open_notebook: Callable[..., Notebook], tmp_path: Path
):
    draft = tmp_path / "draft.ipynb"
    draft.write_text("{}")  # its cells are not saved yet
    first = open_notebook("before", JPY_SESSION_NAME=str(draft))
    load = "%load_ext aios_nb\nimport aios_nb as aios\nnode = aios.node()"
    assert first.finish(first.begin(load, cell_id="c0ffee")).status == "ok"
    first.run("%aios ask echo remember me")
    name = first.value("node.name")
    first.close()
    draft.write_text(json.dumps({"cells": [{"id": "c0ffee"}]}))
    final = draft.rename(tmp_path / "final.ipynb")
    later = open_notebook("after", JPY_SESSION_NAME=str(final))
    cell = later.run("%load_ext aios_nb\nimport aios_nb as aios\nnode = aios.node()")
    later.until(lambda: f"%aios up --name {name}" in cell.text)
    assert f"%aios up --name {name}" in later.run("%aios").text
    later.run(f"%aios up --name {name}")
    assert "remember me" in later.run("%aios history last").text


def test_a_second_kernel_of_a_notebook_waits_for_its_name_and_goes_on(
    open_notebook: Callable[..., Notebook], tmp_path: Path
):
    path = str(tmp_path / "shared.ipynb")
    first = open_notebook("shared", JPY_SESSION_NAME=path)
    first.run("%load_ext aios_nb\nimport aios_nb as aios\naios.node()")
    second = open_notebook("shared again", JPY_SESSION_NAME=path)
    load = second.begin("%load_ext aios_nb")
    ask = second.begin("%aios ask calc 1+1")

    assert second.finish(load).status == second.finish(ask).status == "ok"
    assert "2" in ask.text
    for notebook in (first, second):
        notebook.close()
