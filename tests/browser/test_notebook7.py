"""Notebook 7, the other face of Jupyter: the same widgets."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.chats import AGENTS, BUSY, LOAD, Chat
from tests.browser.kernels import HEARS_BESIDE_A_CELL


def test_notebook_7_shows_hub_and_chat(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios hub", "%aios chat painter", BUSY, face="notebook")
    book.start_all()
    chat = Chat(book, 3)
    expect(book.cell(4).locator(".jp-InputPrompt")).to_have_text("[*]:")
    chat.say("go")  # beside a busy cell
    if not HEARS_BESIDE_A_CELL:
        book.interrupt()
    chat.ended("painter")
    expect(chat.last().get_by_role("cell", name="3.25")).to_be_visible()
    expect(book.output(2).get_by_role("row").filter(has_text="painter")).to_be_visible()
    if HEARS_BESIDE_A_CELL:
        book.interrupt()
    book.done(4, fails=True)
    chat.last().get_by_role("button", name="Put this code into a new cell below").click()
    expect(book.page.locator(".jp-Notebook .jp-Cell")).to_have_count(6)
    book.has(4, "import math\nprint(math.tau)")
    book.shot("notebook7")
