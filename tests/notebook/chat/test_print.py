"""What a chat leaves where there are no widgets, and in the saved notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from aios_nb.notebook.widgets import showing
from aios_nb.notebook.widgets.showing import Showing
from aios_nb.parts import File
from tests.notebook.chat.windows import CEILING_S, NASTY, PNG, Make, Open


def test_what_is_printed_runs_nothing(open_chat: Open, make_site: Make) -> None:
    def nasty(text: str) -> tuple[str, dict[str, Any], File]:
        table = {"columns": [NASTY], "rows": [[NASTY]]}
        return f"{NASTY} [x](javascript:alert(3))", table, File(PNG, name=f"{NASTY}.png")

    chat = open_chat("nasty", site=make_site(nasty, name="bad").node)
    chat.ask(NASTY)
    html = chat._repr_mimebundle_()[0]["text/html"]
    assert "alert(1)" in html  # as text
    for bad in ("<script", "<img src=x", 'javascript:alert(3)"', "\u202e"):
        assert bad not in html
    assert html.count("<img") == 1


def test_what_was_sent_again_is_printed_once_with_its_answer(open_chat: Open) -> None:
    chat = open_chat("moody")
    chat.write("today")
    failed = chat.item(status="failed")
    chat.say("again", of=failed["id"], id="m-again", text="please")
    chat.answered("all right")
    chat.item(id="m-1", resent="m-again")
    chat.write("@forever go")
    chat.item(re="m-2", status="runs", progress="at it (50%)")
    chat.say("stop")
    chat.item(re="m-2", status="cancelled")
    bundle = chat._repr_mimebundle_()[0]
    for shown in (bundle["text/plain"], bundle["text/html"]):
        assert "all right" in shown
        assert "today" not in shown  # neither what was asked nor what came of it
        assert "stopped" in shown
        assert "cancelled" not in shown


def test_an_empty_answer_is_printed_as_one(open_chat: Open, make_site: Make) -> None:
    def silent(text: str) -> str:
        return ""

    def tables(text: str) -> dict[str, int]:
        return {"a": 1}

    chat = open_chat("silent", site=make_site(silent, tables, name="quiet").node)
    chat.ask("hello")
    bundle = chat._repr_mimebundle_()[0]
    assert bundle["text/plain"].endswith("  (empty answer)")
    assert "(empty answer)" in bundle["text/html"]
    chat.ask("@tables hello")
    assert chat._repr_mimebundle_()[0]["text/plain"].count("(empty answer)") == 1


SHOWN = """
import aios_nb as aios
from aios_nb.notebook.widgets.chat import AgentChat

node = aios.up(name="printer")

class Host:
    def site(self): return node
    def problem(self): return ""
    def subscribe(self, told): return lambda: None

chat = AgentChat(Host(), "echo")
chat
"""


def test_a_kernel_without_a_page_keeps_the_finished_conversation(
    open_notebook: Callable[..., Any],
) -> None:
    book = open_notebook("printed")
    shown = book.run(SHOWN).shown[0]
    assert shown["text/plain"].startswith("Chat with echo\n\nNothing was said yet.")
    assert "%aios ask echo …" in shown["text/html"]
    assert shown["application/vnd.jupyter.widget-view+json"]["model_id"]
    book.run("chat.ask('said in a cell')")
    assert shown["text/plain"].count("said in a cell") == 2
    assert "said in a cell" in shown["text/html"]
    book.run("await chat.ask_async('and awaited')")
    assert shown["text/plain"].count("and awaited") == 2


class Print:
    """What ``Showing`` has of a chat and of the shell: a text that changes, and what was shown."""

    def __init__(self) -> None:
        self.text = ""
        self.shown: asyncio.Queue[str] = asyncio.Queue()
        self.display_pub = self.host = self.talk = self.here = self.transcript = self
        self.writing: dict[str, Any] = {}
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    def site(self) -> None:
        return None

    def mimebundle(self, printed: dict[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
        return printed, {}

    def publish(self, bundle: dict[str, str], *_: Any, **__: Any) -> None:
        self.shown.put_nowait(bundle["text/plain"])

    def work(self, job: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return asyncio.ensure_future(job)

    async def printed(self, _: Any) -> dict[str, str]:
        now = self.text
        self.begun.set()
        await self.go_on.wait()
        return {"text/plain": now, "text/html": now}


@pytest.mark.parametrize("typing", [False, True])
def test_what_comes_while_the_print_is_made_is_printed_later(
    typing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        chat = Print()
        monkeypatch.setattr(showing, "_printed", chat.printed)
        monkeypatch.setattr(showing, "STALE_S", 0.01)
        monkeypatch.setattr(Showing._soon, "__defaults__", (0.01,))
        shows: Any = Showing(chat)  # type: ignore[arg-type]
        shows._display_id, shows._shell = "here", chat
        shows.heard({"type": "hello", "view": "1"})
        chat.text = "one"
        shows.changed()
        await chat.begun.wait()
        if typing:  # and that page is then closed without a word
            shows.heard({"type": "calm", "view": "1", "calm": False})
        else:
            chat.text = "one two"
            shows.changed()
        chat.go_on.set()
        async with asyncio.timeout(CEILING_S):
            while await chat.shown.get() != chat.text:
                pass
        assert shows._printed == shows._version

    asyncio.run(story())


def test_a_page_that_says_hello_again_is_still_typed_in() -> None:
    async def story() -> None:
        shows: Any = Showing(Print())  # type: ignore[arg-type]
        shows.heard({"type": "hello", "view": "1"})
        shows.heard({"type": "calm", "view": "1", "calm": False})
        shows.heard({"type": "hello", "view": "1"})  # said until it was heard
        assert shows._typing()
        shows.heard({"type": "bye", "view": "1"})
        assert not shows._typing()

    asyncio.run(story())


PAGES = """
from aios_nb.notebook.widgets import showing
from aios_nb.parts import File

chat._handle_custom_msg({"type": "hello", "view": "closed"}, [])
chat._handle_custom_msg({"type": "calm", "view": "closed", "calm": False}, [])
showing.STALE_S = 0.1  # that page was closed in the middle of a sentence
chat.ask("look", files=[File(b"\\x89PNG\\r\\n\\x1a\\n" + bytes(100), name="a.png")])

async def printed(ceiling_s=30):
    import asyncio
    async with asyncio.timeout(ceiling_s):
        while chat._showing._printed != chat._showing._version:
            await asyncio.sleep(0.05)

await printed()
"""


def test_a_page_that_was_closed_does_not_keep_the_print_from_being_saved(
    open_notebook: Callable[..., Any],
) -> None:
    book = open_notebook("closed")
    shown = book.run(SHOWN).shown[0]
    book.run(PAGES)
    book.until(lambda: shown["text/plain"].count("look") == 2)
    assert "data:image/png;base64," in shown["text/html"]
