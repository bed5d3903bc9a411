"""``%aios telegram`` in a real kernel: the phone is heard whatever the kernel does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.notebook.conftest import Notebook
from tests.telegram.botapi import BotApi, Person, Settings

PREPARE = """
%load_ext aios_nb
import aios_nb as aios
node = aios.node()

@aios.agent(about="Says it louder")
def shout(text):
    return text.upper() + "!"
"""


@pytest.fixture(scope="module")
def api() -> Iterator[BotApi]:
    with BotApi(settings=Settings(conflict_pause_s=0.2)) as api:
        yield api


@pytest.fixture(scope="module")
def notebook(open_notebook: Callable[..., Notebook], api: BotApi) -> Notebook:
    """With a bridge that runs."""
    env = {"TELEGRAM_BOT_TOKEN": api.bot.token, "AIOS_TELEGRAM_API": api.base_url}
    opened = open_notebook("phone", **env)
    opened.run(PREPARE)
    opened.run("%aios telegram start")
    return opened


@pytest.fixture(scope="module")
def ada(notebook: Notebook, api: BotApi) -> Person:
    """Who owns the bot, with its chat open on the agent."""
    cell = notebook.run("%aios telegram pair")
    ada = api.person("Ada")
    ada.says(re.findall(r"/pair \S+", cell.text)[0])
    sees(api, ada, "You are in")
    ada.says("/chat shout hello")
    sees(api, ada, "HELLO!")
    return ada


def sees(api: BotApi, person: Person, words: str) -> str:
    return api.wait(
        lambda: next((text for text in reversed(person.chat().texts()) if words in text), "")
    )


def test_a_code_is_a_picture_a_link_and_a_line(notebook: Notebook, api: BotApi):
    cell = notebook.run("code = %aios telegram pair --role guest\ncode")
    page = cell.shown[-1]["text/html"]
    link = f"https://t.me/{api.bot.username}?start={notebook.value('code.code')}"
    assert f'href="{link}"' in page
    assert 'src="data:image/png;base64,' in page
    assert link in cell.text
    assert notebook.value("code.role") == "guest"


@pytest.mark.parametrize("busy", ["import time; time.sleep(600)", "while True: pass"])
def test_the_phone_is_answered_beside_a_busy_cell(notebook, api, ada, busy):
    cell = notebook.begin(f"print('busy')\n{busy}")
    notebook.until(lambda: cell.printed)
    ada.says(f"beside {busy[:5]}")
    sees(api, ada, f"BESIDE {busy[:5].upper()}")
    assert not cell.status
    notebook.interrupt()
    notebook.finish(cell)


def test_both_sides_see_both(notebook, api, ada):
    ada.says("from the phone")
    sees(api, ada, "FROM THE PHONE!")
    history = notebook.run("%aios history last").text
    assert "Ada on Telegram" in history
    assert "from the phone" in history
    notebook.run("%aios ask shout --conversation last from the notebook")
    sees(api, ada, "from the notebook")
    sees(api, ada, "FROM THE NOTEBOOK!")


def test_a_chat_window_goes_on_in_what_the_phone_began(notebook, api, ada):
    ada.says("/chat shout begun on the phone")
    sees(api, ada, "BEGUN ON THE PHONE!")
    notebook.run("chat = %aios chat --conversation last")
    notebook.run("chat.ask('from the window')")
    sees(api, ada, "FROM THE WINDOW!")
    listed = notebook.value("aios.node().run(chat.talk.chats)")
    assert ("begun on the phone", "Telegram") in [(row["title"], row["app"]) for row in listed]
    chats = notebook.run("%aios chats").shown[-1]["text/html"]
    assert "Telegram" in chats
    assert "token:" not in chats


def test_a_conversation_of_the_notebook_is_joined_by_a_code(notebook, api):
    notebook.run("%aios ask shout a talk of the notebook")
    talk = notebook.run("%aios telegram pair --role member --conversation last").text
    bob = api.person("Bob")
    bob.says(re.findall(r"/pair \S+", talk)[0])
    sees(api, bob, "You are in")
    bob.says("i am here too")
    sees(api, bob, "I AM HERE TOO!")
    history = notebook.run("%aios history last").text
    assert "a talk of the notebook" in history
    assert "Bob on Telegram" in history


def test_the_owner_finds_and_joins_what_is_open_in_the_notebook(notebook, api, ada):
    notebook.run("reply = %aios ask shout only here")
    ada.says("/chats")
    sees(api, ada, "1. only here (shout)")
    ada.says(f"/join {notebook.value('reply.conversation')}")
    sees(api, ada, "You are in the conversation with shout.")
    ada.says("here as well")
    sees(api, ada, "HERE AS WELL!")
    history = notebook.run("%aios history last").text
    assert history.index("ONLY HERE!") < history.index("here as well")


def test_what_the_bridge_says_of_itself(notebook, api, ada):
    assert "running" in notebook.run("%aios telegram").text
    assert "running" in notebook.run("%aios telegram start").text  # again is harmless
    other = "--api-url http://127.0.0.1:9/bot"
    assert "runs already" in notebook.fail(f"%aios telegram start {other}")
    eve = api.person("Eve")
    eve.says("let me in")
    sees(api, eve, "private")
    notebook.eventually("'stranger' in str(get_ipython().run_line_magic('aios', 'telegram tried'))")
    people = notebook.run("%aios telegram people").text
    assert "Ada" in people
    assert "Eve" not in people


def test_another_notebook_does_not_take_the_bot(open_notebook, notebook, api, ada):
    env = {"TELEGRAM_BOT_TOKEN": api.bot.token, "AIOS_TELEGRAM_API": api.base_url}
    other = open_notebook("other", **env)
    other.run("%load_ext aios_nb")
    assert "is bridged already" in other.fail("%aios telegram start")
    assert "Ada" in other.run("%aios telegram people").text
    ada.says("still yours")
    sees(api, ada, "STILL YOURS!")


def test_after_a_restart_what_came_meanwhile_is_answered(notebook, api, ada):
    notebook.restart()
    ada.says("meanwhile")
    notebook.run(PREPARE)
    notebook.run("%aios telegram start")
    sees(api, ada, "MEANWHILE!")


def test_unloading_ends_it_and_mistakes_are_one_line(notebook: Notebook, api: BotApi, ada):
    assert "stopped" in notebook.run("%aios telegram stop").text
    assert "no bridge runs" in notebook.fail("%aios telegram stop")
    assert "%aios telegram start" in notebook.fail("%aios telegram pair")
    notebook.run("%aios telegram start")
    notebook.run("%unload_ext aios_nb")
    names = "sorted(thread.name for thread in __import__('threading').enumerate())"
    assert "aios-bridge" not in notebook.value(names)
    notebook.run("%load_ext aios_nb\nimport os; del os.environ['TELEGRAM_BOT_TOKEN']")
    assert "there is no bot token" in notebook.fail("%aios telegram start")
    assert "did you mean" in notebook.fail("%aios telegram strat")
    notebook.run(f"os.environ['TELEGRAM_BOT_TOKEN'] = '{api.bot.id}:{'x' * 35}'")
    refused = notebook.finish(notebook.begin("%aios telegram start"))
    assert refused.status == "error"
    assert "token" in refused.error
    assert "Traceback" not in refused.text + refused.error  # though it came out of a group of tasks


def test_the_token_is_in_nothing_that_was_shown_or_kept(notebook: Notebook, api: BotApi):
    secret = api.bot.token.partition(":")[2]
    shown = [str(cell) for cell in notebook.cells.values()]
    assert shown
    assert not [cell for cell in shown if secret in cell]
    kept = [path for path in Path(notebook.home).rglob("*") if path.is_file()]
    assert any(path.name == f"telegram-{api.bot.id}.db" for path in kept)
    assert not [path.name for path in kept if secret.encode() in path.read_bytes()]
