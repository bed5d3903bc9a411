"""AgentChat as people use it: complete, at any time, after anything, by keyboard."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.chats import AGENTS, BUSY, LOAD, Chat
from tests.browser.kernels import hears_after_a_cell, hears_beside_a_cell
from tests.browser.notebook import Notebook


def stored(book: Notebook) -> list[str]:
    """What has been said in the only conversation, as the node has it."""
    (row,) = book.rpc("chat.list")["conversations"]
    found = book.rpc("chat.history", conversation=row["conversation"])["messages"]
    return [event["text"] for event in found if event["kind"] == "message"]


@hears_after_a_cell
def test_what_was_typed_beside_a_busy_cell_is_heard_after_it(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat burst", BUSY, "after = True")
    for cell in range(3):
        book.run(cell)
    chat = Chat(book, 2)
    book.start(3)
    book.busy()
    chat.say("go")
    book.interrupt()
    book.done(3, fails=True)

    chat.ended("burst")
    assert stored(book) == ["go", "".join(f"w{nr} " for nr in range(6000))]
    shown = chat.last().locator(".aios-rich").inner_text()
    assert shown.split() == stored(book)[1].split()


@hears_beside_a_cell
def test_all_arrives_while_the_kernel_is_busy(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat burst", BUSY, "after = True")
    book.start_all()
    chat = Chat(book, 2)
    expect(chat.message).to_be_visible()
    expect(book.cell(3).locator(".jp-InputPrompt")).to_have_text("[*]:")

    # "Run All": one cell works, another one waits.
    chat.say("go")
    chat.ended("burst")
    expect(chat.button("Send")).to_be_in_viewport()
    shown = chat.last().locator(".aios-rich").inner_text()
    assert stored(book) == ["go", "".join(f"w{nr} " for nr in range(6000))]
    assert shown.split() == stored(book)[1].split()
    expect(book.cell(3).locator(".jp-InputPrompt")).to_have_text("[*]:")
    book.shot("chat-busy", book.page.locator(".jp-Notebook"))
    book.interrupt()
    book.done(3, fails=True)
    book.idle()

    # One cell by itself, and a page that is loaded again beside it. Until the cell ends JupyterLab
    # does not know the kernel; the reply goes on meanwhile.
    book.start(3)
    book.busy()
    chat.say("@counter go")
    expect(chat.last()).to_contain_text("0 1 2")
    book.reload(idle=False)
    book.interrupt()
    expect(chat.last()).to_contain_text("0 1 2 3 4 5 6 7 8 9")
    expect(chat.last()).to_have_attribute("aria-label", "counter")
    chat.button("Stop").click()
    chat.ended("counter", "cancelled")


def test_a_conversation_survives_reload_and_restart(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat parrot")
    book.run_all()
    chat = Chat(book, 2)
    chat.say("one")
    chat.ended("parrot")
    book.run(2)  # again
    expect(chat.articles).to_have_count(2)
    book.reload()
    expect(chat.articles).to_have_count(2)
    expect(chat.last()).to_contain_text("you said one")
    chat.say("two")
    chat.ended("parrot")
    expect(chat.last()).to_contain_text("you said two")

    book.restart()
    expect(chat.articles).to_have_count(4)  # it is still to be read
    book.run_all()
    expect(chat.articles).to_have_count(4)
    note = {"name": "note.txt", "mimeType": "text/plain", "buffer": b"buy milk"}
    chat.root.locator("input[type=file]").set_input_files(note)
    chat.say("three")
    expect(chat.last()).to_contain_text("you said three")
    assert stored(book) == ["one", "you said one", "two", "you said two", "three", "you said three"]

    down, up = book.add("%aios down"), book.add("%aios up")
    book.run(down)
    expect(chat.root).to_contain_text("%aios up")
    book.shot("chat-offline", chat.root)

    # A file that is wanted meanwhile comes with the node; one that is given has nobody to take it.
    chat.button("Download note.txt, 8 bytes").click()
    chat.root.locator("input[type=file]").set_input_files({**note, "name": "late.txt"})
    expect(chat.root.locator(".aios-toast")).to_contain_text("late.txt: not attached")
    expect(chat.root.locator(".aios-chip")).to_have_count(0)
    with book.page.expect_download() as wanted:
        book.run(up)
    assert wanted.value.path().read_bytes() == b"buy milk"
    expect(chat.root).not_to_contain_text("%aios up")
    chat.say("four")
    expect(chat.last()).to_contain_text("you said four")


def test_a_chat_by_keyboard_alone(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat parrot")
    book.run_all()
    chat = Chat(book, 2)
    keys = book.page.keyboard
    chat.log.focus()  # from the notebook, by Tab; from here on there is no mouse
    keys.press("Tab")
    expect(chat.message).to_be_focused()
    keys.type("first line")
    keys.press("Shift+Enter")
    keys.type("dd aa bb")  # commands of the notebook, if it heard them
    keys.press("Enter")
    chat.ended("parrot")
    assert stored(book)[0] == "first line\ndd aa bb"
    assert len(book.sources()) == 3
    book.printed(2, "dd aa bb")  # what was said is saved, and drawn anew with that
    expect(chat.message).to_be_focused()

    keys.type("@coun")
    option = chat.root.get_by_role("listbox", name="Agents").get_by_role("option")
    expect(option).to_have_count(1)
    expect(chat.root.get_by_role("combobox", name="Message", expanded=True)).to_be_focused()
    keys.press("Enter")
    expect(chat.root.get_by_role("textbox", name="Message")).to_be_focused()
    expect(chat.message).to_have_value("@counter ")
    keys.type("to a million")
    keys.press("Enter")
    expect(chat.last()).to_contain_text("0 1 2")
    keys.press("Escape")
    chat.ended("counter", "cancelled")
    book.printed(2, "0 1 2")
    expect(chat.message).to_be_focused()

    keys.press("ArrowUp")
    expect(chat.message).to_have_value("to a million")
    keys.press("Control+A")
    keys.type("@parrot instead")
    keys.press("Enter")
    chat.ended("parrot")
    expect(chat.last()).to_contain_text("you said")

    for _ in range(12):  # back through what can be reached, to the menu
        if chat.root.get_by_role("button", name="More").evaluate(
            "(node) => node === document.activeElement"
        ):
            break
        keys.press("Shift+Tab")
    keys.press("Enter")
    expect(chat.root.get_by_role("menuitem", name="New conversation")).to_be_focused()
    keys.press("Escape")
    book.shot("chat-keyboard", chat.root)
    expect(chat.root).to_match_aria_snapshot("""
        - region "Chat with parrot":
          - img "alive"
          - button "Export"
          - button "More"
          - log "Conversation with parrot":
            - article "you"
            - article "parrot"
            - article "you":
              - button "Go to the new message"
            - article "counter":
              - text: stopped
            - article "you"
            - article "parrot"
          - textbox "Message"
          - button "Send" [disabled]
        """)


def test_what_would_be_deleted_is_said_and_decided_before_anything_else(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat parrot")
    book.run_all()
    chat = Chat(book, 2)
    keys = book.page.keyboard
    chat.say("one")
    chat.ended("parrot")
    chat.choose("Delete")
    asks = chat.root.get_by_role("alertdialog", name="Delete this conversation?")
    about = "one and everything said in it will be gone. This cannot be undone."
    expect(asks).to_have_accessible_description(about)
    book.shot("chat-delete", chat.root)
    expect(chat.button("Keep")).to_be_focused()
    for name in ("Delete", "Close", "Keep"):
        keys.press("Tab")
        expect(chat.button(name)).to_be_focused()
    keys.press("Shift+Tab")
    expect(chat.button("Close")).to_be_focused()
    asks.get_by_role("paragraph").click()
    keys.press("Escape")
    expect(asks).to_be_hidden()
    expect(chat.message).to_be_focused()
    assert stored(book) == ["one", "you said one"]

    # Whoever goes on elsewhere has nothing to choose any more.
    chat.choose("Conversations")
    listed = chat.root.get_by_role("dialog", name="Conversations")
    expect(listed).to_be_visible()
    chat.message.click()
    expect(listed).to_be_hidden()
    expect(chat.message).to_be_focused()


def test_stop_retry_edit_and_code_into_a_cell(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat moody")
    book.run_all()
    chat = Chat(book, 2)
    chat.say("hello")
    chat.ended("moody", "failed")
    expect(chat.last()).to_contain_text("not today")
    book.shot("chat-failed", chat.root)
    chat.button("Retry").click()
    chat.ended("moody")
    expect(chat.last()).to_contain_text("all right then")

    chat.say("@counter go")
    expect(chat.last()).to_contain_text("0 1 2")
    chat.say("@counter once more")
    expect(chat.last()).to_contain_text("waits for its turn")
    chat.last().hover()
    chat.button("Stop counter").last.click()  # this one alone
    chat.ended("counter", "cancelled")
    first = chat.articles.nth(-3)
    expect(first).to_have_attribute("data-status", "runs")
    chat.button("Stop").click()
    expect(first).to_have_attribute("data-status", "cancelled")
    assert book.value("tries") == ["hello", "hello"]

    chat.say("@painter go")
    chat.ended("painter")
    chat.last().get_by_role("button", name="Put this code into a new cell below").click()
    expect(book.page.locator(".jp-Notebook .jp-Cell")).to_have_count(4)
    expect(book.cell(3)).to_contain_text("math.tau")
    book.has(3, "import math\nprint(math.tau)")
    book.run(3)
    assert book.text(3).startswith("6.28")
    chat.last().get_by_role("button", name="Copy this code").click()
    expect(chat.root.locator(".aios-toast").filter(has_text="copied")).to_be_visible()
    assert book.sources()[3] == "import math\nprint(math.tau)"  # the cell was not dragged away
    copied = book.page.evaluate("() => navigator.clipboard.readText()")
    assert copied == "import math\nprint(math.tau)"


def test_what_agents_send_is_shown_as_it_is(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat painter")
    book.run_all()
    chat = Chat(book, 2)
    book.shot("chat-empty", chat.root)
    chat.say("go")
    chat.ended("painter")
    last = chat.articles.nth(1)
    expect(last.locator("strong")).to_have_text("Three")
    expect(last.locator(".aios-tok-k")).to_have_text(["import"])
    expect(last.get_by_role("cell", name="3.25")).to_be_visible()
    picture = last.get_by_role("img")
    expect(picture).to_be_visible()
    assert picture.evaluate("async (node) => (await node.decode(), node.naturalWidth)") > 100

    # Files and answers go the other way.
    note = {"name": "note.txt", "mimeType": "text/plain", "buffer": b"buy milk"}
    chat.root.locator("input[type=file]").set_input_files(note)
    expect(chat.root.locator(".aios-chip")).to_contain_text("note.txt")
    chat.message.fill("counts to nine, and does not end")
    expect(chat.root.locator(".aios-helpers")).to_contain_text("counter")
    book.shot("chat-composing", chat.root)
    chat.say("@reader here")
    expect(chat.last()).to_contain_text("What about note.txt?")
    book.shot("chat-asked", chat.root)
    chat.say("read it")
    chat.ended("reader")
    expect(chat.last()).to_contain_text("read it: buy milk")

    last.scroll_into_view_if_needed()
    book.shot("chat-light", chat.root)
    book.dark()
    book.shot("chat-dark", chat.root)
    book.narrow()
    book.shot("chat-narrow", chat.root)
    wider = "(node) => node.scrollWidth - node.clientWidth"
    assert chat.root.evaluate(wider) <= 0
    assert chat.log.evaluate(wider) <= 0
