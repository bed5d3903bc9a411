"""What strangers say, in a real page: nothing of it runs, and nothing of it is more than text."""

from __future__ import annotations

import json

import nbconvert
import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser import strangers
from tests.browser.audit import Window, findings
from tests.browser.chats import LOAD, Chat
from tests.browser.notebook import Notebook
from tests.browser.strangers import SHORT
from tests.hostile.corpus import MARK

MET = """
import time
import aios_nb as aios
from tests.browser.strangers import SENDABLE, SHORT
node = aios.node()
while "mirror" not in [hit.name for hit in node.search("mirror")]:
    time.sleep(0.05)
"""


def clean(book: Notebook, window: Window) -> None:
    """Nothing has run, and nothing is there that could."""
    book.page.evaluate("() => new Promise((done) => setTimeout(done, 200))")  # let images fail
    assert MARK not in window.grown()
    for area in book.page.locator(".jp-Cell-outputArea").all():
        assert findings(area) == []


@pytest.fixture
def mallory(make_site):
    agents = strangers.agents()
    assert len(agents) > 20
    return make_site(*agents, name="mallory")


def test_a_chat_with_a_stranger(open_notebook, mallory):
    book = open_notebook(
        LOAD,
        MET,
        "chat = %aios chat mirror\nchat",
        "replies = [chat.ask(text) for text in SENDABLE]\nlen(replies)",
        "chat.ask('@gives dict'); chat.ask('@gives frame'); chat.conversation",
    )
    window = Window(book.page)
    book.run_all()
    talk = Chat(book, 2)
    expect(talk.articles.last.locator(".aios-file")).not_to_have_count(0)
    for text in SHORT[::16]:
        talk.say(f"@breaks {text}")
        talk.ended("breaks", "failed")
    for _ in range(20):
        earlier = talk.root.get_by_role("button", name="arlier")
        if not earlier.count():
            break
        earlier.click()
    clean(book, window)
    book.shot("hostile-chat", talk.root)

    # Names of agents while they are typed, and titles in the list of conversations.
    talk.message.fill("@evil")
    expect(talk.root.get_by_role("option")).not_to_have_count(0)
    clean(book, window)
    talk.message.fill("")
    book.rpc("chat.rename", conversation=book.value("chat.conversation"), title=SHORT[0])
    talk.choose("Conversations")
    expect(talk.root.locator(".aios-chatrow")).not_to_have_count(0)
    clean(book, window)

    # The notebook without widgets, saved when nobody writes; and the page that is loaded again.
    talk.root.get_by_role("button", name="Close").click()
    book.cell(0).locator(".jp-InputPrompt").click()
    book.printed(2, "onerror")
    printed_is_clean(book)
    book.reload()
    expect(talk.articles).not_to_have_count(0)
    clean(book, window)


def test_hub_network_and_displays_of_strangers(open_notebook, mallory):
    book = open_notebook(
        LOAD,
        "%aios hub",
        "%aios network",
        MET,
        "%aios search script",
        "from IPython.display import display\n"
        "for nr in range(20): display(node.card(f'evil-{nr}'))\n"
        "for text in SHORT[::4]: display(node.ask('mirror', text))",
        "display(node.ask('gives', 'dict'), node.ask('gives', 'frame'), node.search('evil', 50))",
        "%aios chats",
        "%aios history",
        "%aios ask breaks <img src=x onerror=window.aios_pwned='x'>",
    )
    window = Window(book.page)
    for nr in range(9):
        book.run(nr)
    book.run(9, fails=True)
    hub = book.output(1).locator(".aios-hub")
    expect(hub.get_by_role("row").filter(has_text="evil-").first).to_be_visible()
    for nr in range(0, 20, 4):
        hub.get_by_role("combobox", name="Search agents").fill(f"name:evil-{nr}")
        row = hub.get_by_role("row")
        expect(row).to_have_count(1)
        expect(row).to_contain_text(f"evil-{nr}")
        row.get_by_role("button", name="Details").click()
        expect(hub.locator(".hub-details")).to_contain_text("Signature")
        clean(book, window)
    network = book.output(2).locator(".aios-net")
    network.get_by_role("button", name="mallory").press("Enter")
    expect(network.get_by_role("complementary", name="The chosen node")).to_contain_text("evil")
    clean(book, window)
    book.shot("hostile-hub", hub)
    book.shot("hostile-displays", book.page.locator(".jp-Notebook"))
    printed_is_clean(book)


def printed_is_clean(book: Notebook) -> None:
    """The saved notebook as nbconvert and others show it: its HTML alone, with no widgets."""
    book.save()
    notebook = nbformat.reads(json.dumps(book.saved()), as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    notebook.metadata.pop("widgets", None)
    html, _ = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(notebook)
    printed = book.page.context.new_page()
    try:
        printed.set_content(html)
        printed.wait_for_load_state("load")
        assert printed.evaluate(f"() => window.{MARK}") is None
        areas = printed.locator(".output, .jp-OutputArea").all()
        assert "img src=x onerror" in "".join(area.inner_text() for area in areas)
        assert [one for area in areas for one in findings(area)] == []
    finally:
        printed.close()
