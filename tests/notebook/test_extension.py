"""``%load_ext aios_nb`` in a shell without a kernel, and what its line of welcome says."""

from __future__ import annotations

import queue
import socket
import sys
import types
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

import aios_nb as aios
from aios_nb.config import Settings
from aios_nb.errors import AiosError, NotRunning, UsageError
from aios_nb.node import Node
from aios_nb.notebook import completion, extension, hosted, questions, welcome
from aios_nb.notebook.hosted import host_of, reach
from aios_nb.notebook.session import session_of
from aios_nb.site import Site
from tests.notebook.conftest import CEILING_S


def test_loading_prints_one_line_and_starts_a_node(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
):
    shell.run_line_magic("load_ext", "aios_nb")

    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "%aios?" in said
    assert aios.node().ask("echo", "here") == "here"
    assert session_of(shell).node() is aios.node()


def test_loading_twice_is_one_node_and_one_of_everything(shell: InteractiveShell):
    before = _in_place(shell)
    shell.run_line_magic("load_ext", "aios_nb")
    node, once = aios.node(), _in_place(shell)
    aios.load_ipython_extension(shell)

    assert aios.node() is node
    assert _in_place(shell) == once != before


def test_unloading_takes_everything_out_and_stops_the_node(shell: InteractiveShell):
    before = _in_place(shell)
    shell.run_line_magic("load_ext", "aios_nb")
    aios.node()
    shell.run_line_magic("unload_ext", "aios_nb")

    assert _in_place(shell) == before
    assert Site.chat_face is None
    assert not hasattr(AiosError, "_render_traceback_")
    with pytest.raises(NotRunning):
        aios.node()


def test_reloading_is_a_new_node_with_the_same_agents(shell: InteractiveShell):
    shell.run_line_magic("load_ext", "aios_nb")
    first = aios.node()

    @aios.agent
    async def greet(text: str) -> str:
        return f"hello {text}"

    shell.run_line_magic("reload_ext", "aios_nb")
    second = aios.node()

    assert not first.running
    assert (second.name, second.node_id) != ("", first)
    assert second.node_id == session_of(shell).node().node_id
    assert second.ask("greet", "Ada") == "hello Ada"


def chosen_in(shell: InteractiveShell, *options: str) -> Node:
    """A node with choices, and an agent on it."""
    shell.run_line_magic("load_ext", "aios_nb")
    shell.run_line_magic("aios", " ".join(("up --name alice --network lab", *options)))

    @aios.agent
    async def greet(text: str) -> str:
        return f"hello {text}"

    return aios.node()


def is_same(before: Node, settings: Settings) -> None:
    node = aios.node()
    assert not before.running
    assert (node.name, node.settings) == ("alice", settings)
    assert node.ask("greet", "Ada") == "hello Ada"


@pytest.mark.parametrize("magics", [["reload_ext"], ["unload_ext", "load_ext"]])
def test_loaded_again_the_node_is_as_it_was_chosen(shell: InteractiveShell, magics: list[str]):
    for _ in range(2):
        before = chosen_in(shell)
        node_id, settings = before.node_id, before.settings
        for magic in magics:
            shell.run_line_magic(magic, "aios_nb")
        is_same(before, settings)
        assert aios.node().node_id == node_id
        with pytest.raises(UsageError, match="alice"):
            aios.up(name="bob")


def test_loaded_again_after_down_nothing_is_chosen_any_more(shell: InteractiveShell):
    chosen_in(shell)
    shell.run_line_magic("reload_ext", "aios_nb")
    shell.run_line_magic("aios", "down")
    shell.run_line_magic("reload_ext", "aios_nb")
    assert aios.node().settings == Settings()


def test_an_interrupted_reload_forgets_no_choice(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    before = chosen_in(shell)
    settings = before.settings
    with monkeypatch.context() as here:
        here.setattr(extension, "_take_out", interrupted)
        with pytest.raises(KeyboardInterrupt):
            shell.extension_manager.reload_extension("aios_nb")
    shell.extension_manager.reload_extension("aios_nb")
    is_same(before, settings)


def test_a_reload_that_fails_can_be_tried_again_as_it_was_chosen(shell: InteractiveShell):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    before = chosen_in(shell, f"--port {port}")
    settings = before.settings
    shell.run_line_magic("unload_ext", "aios_nb")
    with socket.create_server(("127.0.0.1", port)):
        for again in ("load_ext", "reload_ext"):
            shell.run_line_magic(again, "aios_nb")
            with pytest.raises(NotRunning, match=f"{port}"):
                aios.node()
        with pytest.raises(AiosError, match=f"{port}"):
            shell.run_line_magic("aios", "up")
    shell.run_line_magic("aios", "up")
    is_same(before, settings)


def test_up_without_choices_chooses_nothing(shell: InteractiveShell):
    shell.run_line_magic("load_ext", "aios_nb")
    for first in ("", "down"):
        if first:
            shell.run_line_magic("aios", first)
        shell.run_line_magic("aios", "up")
        shell.run_line_magic("aios", "up --network lab")
        assert aios.node().settings.network == "lab"


def test_without_a_kernel_there_is_no_kernel_engine(shell: InteractiveShell):
    shell.run_line_magic("load_ext", "aios_nb")

    with pytest.raises(UsageError, match="notebook's kernel"):
        aios.agent(name="x", engine="kernel")(lambda text: text)


def _in_place(shell: InteractiveShell) -> tuple[object, ...]:
    """What an extension adds to."""
    formatter = shell.display_formatter
    return (
        sorted(shell.magics_manager.magics["line"]),
        sorted(shell.magics_manager.magics["cell"]),
        len(shell.Completer.custom_matchers),
        len(shell.input_transformers_cleanup),
        {name: len(each) for name, each in shell.events.callbacks.items()},
        len(formatter.mimebundle_formatter.deferred_printers),
    )


@pytest.mark.parametrize(
    ("cell", "asked"),
    [
        ("%aios ask echo what is it?", "what is it?"),
        ("reply = %aios ask echo sum?\nprint(reply)", "sum?"),
        ("for _ in range(1):\n    %aios ask echo really??", "really??"),
        ("kept = {}\nkept['k'] = %aios ask echo what's this?", "what's this?"),
        ("%aios ask echo one\\\nline?", "one line?"),
        ("%time %aios ask echo how long?", "how long?"),
        ("%time x = %aios ask echo how long is it?", "how long is it?"),
        ("%%time\n%aios ask echo all of it?", "all of it?"),
    ],
)
def test_a_question_may_end_in_a_question_mark(shell: InteractiveShell, cell: str, asked: str):
    shell.run_line_magic("load_ext", "aios_nb")
    shell.run_cell(cell).raise_error()

    assert aios.node().history(aios.node().chats()[0].conversation).messages[0].text == asked


@pytest.mark.parametrize(
    "cell",
    [
        "%aios?",
        "%aios??",
        "%time %aios?",
        "%time '%aios'?",
        "print?",
        "x = %timeit?",
        "% aios ask echo what?",
        "%%agent x\n'%aios ask echo x?'",
        "%aios ask",
        "said = '''\n%aios ask echo how are you?\n'''",
        "# %aios ask echo how are you?",
    ],
)
def test_other_lines_are_as_they_were(shell: InteractiveShell, cell: str):
    before = shell.transform_cell(cell)
    uninstall = questions.install(shell)
    try:
        assert shell.transform_cell(cell) == before
    finally:
        uninstall()


def test_a_question_mark_right_behind_a_command_asks_about_it(shell: InteractiveShell):
    shell.run_line_magic("load_ext", "aios_nb")
    shell.run_cell("said = %aios ask?").raise_error()
    assert "--deadline" in str(shell.user_ns["said"])
    shell.run_cell("said = %aios hub  add?").raise_error()
    assert "--token-env" in str(shell.user_ns["said"])


def test_loading_again_after_an_interrupt_is_loading(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as here:
        here.setattr(completion, "install", interrupted)
        with pytest.raises(KeyboardInterrupt):
            shell.extension_manager.load_extension("aios_nb")
    shell.extension_manager.load_extension("aios_nb")
    shell.run_cell("said = %aios ask echo here").raise_error()
    assert shell.user_ns["said"] == "here"


# The line ------------------------------------------------------------------------------------


def test_the_line_fills_in(shell: InteractiveShell):
    session = session_of(shell)
    assert welcome.line(session) == "aios_nb: no node is running; try %aios?"
    node = aios.up(name="alice")

    assert welcome.line(session) == (
        f"aios_nb: alice ({node.node_id[:8]}) is up at {node.url}, reachable from this machine; "
        "no other node known yet; try %aios?"
    )


class Handle(queue.SimpleQueue[str]):
    """A display under a cell, and what it is made to show."""

    def update(self, told: object) -> None:
        self.put(str(told))

    def all_told(self) -> list[str]:
        return [self.get_nowait() for _ in range(self.qsize())]


def test_the_line_tells_of_the_node_it_welcomed_and_of_no_other(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
):
    shown = Handle()
    monkeypatch.setattr(welcome, "running_kernel", object)
    monkeypatch.setattr("IPython.display.display", lambda *_, **__: shown)
    shell.run_line_magic("load_ext", "aios_nb")
    while " is up at " not in (last := shown.get(timeout=CEILING_S)):
        pass
    shell.run_line_magic("aios", "up --name other")
    assert session_of(shell).node().name == "other"

    shell.run_cell("1")  # in which the page may be told once more what it was told
    assert set(shown.all_told()) <= {last}
    aios.down()
    aios.up(name="another")
    shell.run_cell("1")
    assert shown.all_told() == []


def test_the_line_says_why_a_node_could_not_start(shell: InteractiveShell, aios_home: Path):
    aios_home.write_text("in the way")
    shell.run_line_magic("load_ext", "aios_nb")

    with pytest.raises(NotRunning, match="could not start") as failed:
        session_of(shell).node()
    assert "\n" not in str(failed.value)
    assert session_of(shell).state == "failed"
    assert "could not start" in welcome.line(session_of(shell))


def test_the_line_is_escaped():
    shown = welcome.Line("<script>")._repr_mimebundle_()

    assert shown == {"text/plain": "<script>", "text/html": "<div>&lt;script&gt;</div>"}


# Reach ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(), "reachable from this machine"),
        (Settings(host="0.0.0.0", allow_hosts=("pc.lan",)), "from this network as pc.lan"),
        (Settings(host="0.0.0.0", public_url="https://a.example"), "everywhere as https://a.ex"),
    ],
)
def test_the_reach_is_said_in_words(settings: Settings, said: str):
    assert said in reach(settings, {})


@pytest.mark.parametrize(
    ("environ", "host"),
    [
        ({}, None),
        ({"JUPYTERHUB_USER": "ada"}, "JupyterHub"),
        ({"JUPYTERHUB_USER": "ada", "BINDER_REQUEST": "v2/gh/a/b"}, "Binder"),
    ],
)
def test_a_hosted_kernel_is_known_by_its_environment(environ: dict[str, str], host: str | None):
    assert host_of(environ) == host
    assert ("nobody can call in" in reach(Settings(), environ)) is (host is not None)


def test_colab_is_known_by_its_package(monkeypatch: pytest.MonkeyPatch):
    google, colab = types.ModuleType("google"), types.ModuleType("google.colab")
    google.__path__ = []  # type: ignore[attr-defined]
    colab.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "google", google)
    monkeypatch.setitem(sys.modules, "google.colab", colab)

    assert host_of({}) == hosted.COLAB


def test_a_chat_in_a_terminal_is_printed_once(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
):
    shell.run_line_magic("load_ext", "aios_nb")
    shell.run_cell("chat = %aios chat echo\nchat")
    capsys.readouterr()

    shell.run_cell("reply = chat.ask('a word')")
    shell.run_cell("1")

    assert "Chat with echo" not in capsys.readouterr().out
