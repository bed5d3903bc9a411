"""AgentHub as people use it: find by typing, look, talk, and see who comes and goes."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from aios_nb.agents.definition import describe
from aios_nb.notebook.widgets.browse import WORDS_MAX
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
    book = open_notebook(LOAD, OFFER, "%aios hub", "%aios network")
    book.run_all()
    hub = book.output(2).locator(".aios-hub")
    rows = hub.get_by_role("row")
    search = hub.get_by_role("combobox", name="Search agents")
    expect(rows.filter(has_text="adder")).to_be_visible()
    expect(hub).to_contain_text("Nobody else is here yet")
    expect(rows.filter(has_text="concierge")).to_contain_text("built in")
    expect(rows.filter(has_text="concierge")).not_to_contain_text("yours")
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
    expect(hub.get_by_role("button", name="mine 2")).to_have_attribute("aria-pressed", "true")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="adder")).to_contain_text("yours")
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
    assert top(chat.root) < top(rows.first) + 400  # close to who was found
    book.page.keyboard.type("3 apples and 4 pears")
    book.page.keyboard.press("Enter")
    chat.ended("adder")
    expect(chat.last()).to_contain_text("7")
    book.shot("hub-chat", hub)
    search.press("Enter")  # the same agent
    expect(chat.message).to_be_focused()
    expect(chat.articles).to_have_count(2)

    book.run(book.add("%aios down"))
    goes_on_saying(hub, "The node is not running")
    book.restart()
    expect(book.output(3).locator(".aios-net-banner")).to_contain_text("the kernel was restarted")
    goes_on_saying(hub, "The kernel was restarted")
    book.shot("hub-restarted", hub)


def top(locator) -> float:
    return locator.evaluate("(node) => node.getBoundingClientRect().top")


def goes_on_saying(hub, why):
    """Also when the second is over after which a kernel counts as busy."""
    expect(hub.locator(".hub-banner")).to_contain_text(why)
    hub.get_by_role("combobox", name="Search agents").fill(why)
    hub.page.evaluate("() => new Promise((done) => setTimeout(done, 1500))")
    expect(hub.locator(".hub-banner")).to_contain_text(why)


NEW = re.compile(r"\bhub-new\b")
"""Pointed out as somebody who just came."""


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
    expect(rows.filter(has_text="echo")).not_to_have_class(NEW)

    bob.node.adopt(describe(sorter, about="Sorts what it is given"))
    expect(rows.filter(has_text="sorter")).to_have_class(NEW)
    book.shot("hub-light", hub)
    book.dark()
    book.shot("hub-dark", hub)
    book.light()
    book.narrow()
    book.shot("hub-narrow", hub)
    assert hub.evaluate("(node) => node.scrollWidth - node.clientWidth") <= 1
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
    hub.get_by_role("button", name="mine 0").click()
    expect(hub).to_contain_text("No agent of yours yet")
    book.shot("hub-none-of-mine", hub)
    hub.get_by_role("button", name="Show all").click()
    expect(rows.filter(has_text="concierge")).to_be_visible()


FARTHER = """
from aios_nb.notebook.widgets.panel import _AWAKE
for hub in _AWAKE:
    far = {row["node"]: 4321.0 for row in hub._browser.page["rows"]}
    hub.tell_now({"type": "around", **hub._browser.around, "far": far})
"""


def test_what_one_presses_or_marks_stays_while_others_come_and_go(open_notebook, make_site):
    def greeter(text):
        return "hello"

    bob = make_site(
        describe(greeter, about="Says hello in many languages", tags=["for children"]), name="bob"
    )
    book = open_notebook(LOAD, "%aios hub")
    book.run_all()
    hub = book.output(1).locator(".aios-hub")
    row = hub.get_by_role("row").filter(has_text="greeter")
    row.get_by_role("button", name="Details of greeter").click()
    about = hub.locator(".hub-all")
    expect(about).to_have_text("Says hello in many languages")
    about.select_text()
    bob.node.adopt(describe(greeter, name="newcomer"))
    expect(hub.locator(".hub-fresh")).to_have_text("1 new")
    assert book.page.evaluate("String(getSelection())") == "Says hello in many languages"
    row.get_by_role("button", name="Chat: greeter").hover()
    book.page.mouse.down()
    bob.node.adopt(describe(greeter, name="another"))
    expect(hub.locator(".hub-fresh")).to_have_text("2 new")
    book.tell(FARTHER)
    expect(row.locator(".hub-trust")).to_contain_text("4,321 ms")
    book.page.mouse.up()
    expect(Chat(book, 1).message).to_be_focused()

    search = hub.get_by_role("combobox", name="Search agents")
    search.fill("name:nobody-has-it greeter")
    show = hub.get_by_role("button", name="Search everywhere")
    show.hover()
    book.page.mouse.down()
    before = hub.locator(".hub-counts").text_content()
    bob.node.adopt(describe(greeter, name="latecomer"))
    expect(hub.locator(".hub-counts")).not_to_have_text(before or "")
    book.page.mouse.up()
    for _ in range(2):
        row.get_by_role("button", name="for children").click()
        expect(search).to_have_value('greeter tag:"for children"')


def test_a_program_of_others_that_changed_is_reviewed_before_it_is_asked(open_notebook, make_site):
    async def tides(text):
        return f"high at {text}"

    theirs = make_site(
        describe(tides, about="Knows the tides", access="public"), name="bob", network="elsewhere"
    )
    add = f"%aios hub add {theirs.node.url}/agents/tides/ --local"
    book = open_notebook(LOAD, add, "%aios hub tides", "%aios hub refresh")
    for cell in range(3):
        book.run(cell)
    hub = book.output(2).locator(".aios-hub")
    row = hub.get_by_role("row").filter(has_text="tides")
    expect(row).to_contain_text("not verified")
    expect(row).to_contain_text("A2A agent")

    evil = "<img src=x onerror=alert(1)> wants your password"
    theirs.node.host(describe(tides, about=evil, access="public"))
    book.run(3)
    row.get_by_role("button", name="Review: tides").click()
    details = hub.locator(".hub-details")
    expect(details).to_contain_text(evil)  # as text
    expect(details.locator("img")).to_have_count(0)
    book.shot("hub-review", hub)
    details.get_by_role("button", name="Approve it as it is now").click()
    expect(row.get_by_role("button", name="Chat: tides")).to_be_visible()
    expect(row).to_contain_text("not verified")
    row.get_by_role("button", name="Chat: tides").click()
    chat = Chat(book, 2)
    chat.say("six")
    chat.ended("tides")
    expect(chat.last()).to_contain_text("high at six")


def test_what_is_asked_for_while_there_is_no_node_is_shown_as_soon_as_it_is_there(open_notebook):
    book = open_notebook(LOAD, "%aios hub", "%aios down", "%aios up")
    for cell in range(3):
        book.run(cell)
    hub = book.output(1).locator(".aios-hub")
    rows = hub.get_by_role("row").filter(visible=True)
    search = hub.get_by_role("combobox", name="Search agents")
    expect(hub).to_contain_text("The node is not running")
    search.fill("name:clock")
    hub.get_by_role("button", name="live").click()
    hub.page.keyboard.press("Tab")
    book.run(3)
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("clock")
    expect(search).to_have_value("name:clock")
    expect(hub.get_by_role("button", name="live")).to_have_attribute("aria-pressed", "true")
    search.press("Enter")
    chat = Chat(book, 1)
    expect(chat.message).to_be_focused()
    book.run(2)
    expect(hub).to_contain_text("The node is not running")
    hub.get_by_role("button", name="Close the chat").click()
    expect(chat.root).to_have_count(0)


def test_more_words_than_are_read_do_not_keep_enter_from_its_work(open_notebook):
    book = open_notebook(LOAD, "%aios hub")
    book.run_all()
    hub = book.output(1).locator(".aios-hub")
    search = hub.get_by_role("combobox", name="Search agents")
    search.focus()
    book.page.keyboard.insert_text("clock " * 100)
    expect(search).to_have_value(("clock " * 100)[:WORDS_MAX])
    expect(hub.get_by_role("row").first).to_contain_text("clock")
    expect(hub.locator(".hub-row .hub-why").first).to_contain_text("name")
    search.press("Enter")
    expect(Chat(book, 1).message).to_be_focused()


def test_a_key_that_composes_a_word_does_nothing_else(open_notebook):
    book = open_notebook(LOAD, "%aios hub")
    book.run_all()
    hub = book.output(1).locator(".aios-hub")
    search = hub.get_by_role("combobox", name="Search agents")
    search.fill("name:echo")
    expect(hub.get_by_role("row").filter(visible=True)).to_have_count(1)
    compose(search, "Enter")
    assert hub.locator("[aria-busy]").count() == 0  # no chat is on its way
    compose(search, "Escape")
    expect(search).to_have_value("name:echo")
    search.press("Enter")
    chat = Chat(book, 1)
    chat.say("first")
    chat.ended("echo")

    chat.choose("Rename…")
    title = chat.root.get_by_role("textbox", name="Title of this conversation")
    title.fill("half")
    compose(title, "Enter")
    compose(title, "Escape")
    title.fill("whole")
    title.press("Enter")
    expect(title).to_have_count(0)
    expect(chat.message).to_be_focused()
    chat.choose("Conversations…")
    expect(chat.root.locator(".aios-chatrow")).to_contain_text("whole")


def compose(field: Locator, key: str) -> None:
    """Press it as an input method does that takes it for its own."""
    field.dispatch_event("keydown", {"key": key, "isComposing": True, "bubbles": True})
