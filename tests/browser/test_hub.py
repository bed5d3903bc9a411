"""AgentHub as people use it: find by typing, look, talk, and see who comes and goes."""

from __future__ import annotations

from playwright.sync_api import expect

from aios_nb.agents.definition import describe
from tests.browser.chats import LOAD, Chat

OFFER = """
import aios_nb as aios

@aios.agent(about="Adds the numbers in a sentence", tags=["math"])
def adder(text):
    return str(sum(int(word) for word in text.split() if word.isdigit()))

@aios.agent(about="Tells what a cat would say", tags=["fun"])
def cat(text):
    return "meow"
"""


def test_the_hub_finds_while_one_types_and_opens_a_chat(open_notebook):
    book = open_notebook(LOAD, OFFER, "%aios hub")
    book.run_all()
    hub = book.output(2).locator(".aios-hub")
    rows = hub.get_by_role("row")
    search = hub.get_by_role("combobox", name="Search agents")
    expect(rows.filter(has_text="adder")).to_be_visible()
    expect(hub).to_contain_text("Nobody else is here yet")
    book.shot("hub-alone", hub)

    search.focus()
    book.page.keyboard.type("sum up numbers")
    expect(rows.first).to_contain_text("adder")
    expect(rows.filter(has_text="cat")).to_have_count(0)
    book.shot("hub-search", hub)
    search.fill("tag:fun")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("cat")
    search.fill("")
    hub.get_by_role("button", name="mine").click()
    expect(hub.get_by_role("button", name="mine")).to_have_attribute("aria-pressed", "true")
    expect(rows.filter(has_text="adder")).to_be_visible()
    search.fill("xqzzvk")
    expect(hub).to_contain_text("Nobody matches")
    book.shot("hub-nomatch", hub)

    search.fill("adder")
    expect(rows.first).to_contain_text("adder")
    search.press("Shift+Enter")
    expect(hub.locator(".hub-details")).to_contain_text("Adds the numbers in a sentence")
    book.shot("hub-details", hub)
    search.press("Escape")
    search.press("Enter")
    chat = Chat(book, 2)
    expect(chat.message).to_be_focused()
    book.page.keyboard.type("3 apples and 4 pears")
    book.page.keyboard.press("Enter")
    chat.ended("adder")
    expect(chat.last()).to_contain_text("7")
    book.shot("hub-chat", hub)


def test_the_hub_follows_who_comes_and_goes(open_notebook, make_site):
    def greeter(text):
        return "hello, hallo, ciao"

    def sorter(text):
        return " ".join(sorted(text.split()))

    bob = make_site(describe(greeter, about="Says hello in many languages"), name="bob")
    book = open_notebook(LOAD, "%aios hub")
    book.run_all()
    hub = book.output(1).locator(".aios-hub")
    rows = hub.get_by_role("row")
    row = rows.filter(has_text="greeter")
    expect(row).to_contain_text("bob")
    expect(row).to_contain_text("signed")
    expect(hub).to_contain_text("on 2 nodes")
    expect(rows.filter(has_text="sorter")).to_have_count(0)

    bob.node.adopt(describe(sorter, about="Sorts what it is given"))
    expect(rows.filter(has_text="sorter")).to_be_visible()
    book.shot("hub-light", hub)
    book.dark()
    book.shot("hub-dark", hub)
    book.light()
    book.narrow()
    book.shot("hub-narrow", hub)
    assert hub.evaluate("(node) => node.scrollWidth - node.clientWidth") <= 0
    book.wide()

    row.get_by_role("button", name="Chat: greeter").click()
    chat = Chat(book, 1)
    chat.say("hi")
    chat.ended("greeter")
    expect(chat.last()).to_contain_text("ciao")

    bob.call("agents.withdraw", name="sorter")
    expect(rows.filter(has_text="sorter").filter(visible=True)).to_have_count(0)
    bob.stop()
    expect(row.filter(visible=True)).to_have_count(0)
