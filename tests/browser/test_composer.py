"""The box where a message is written: what stands in it goes to whom it is meant for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.bare import AGENT, BareChat, mine, theirs
from tests.browser.browser import Chromium

Open = Callable[..., BareChat]


@pytest.fixture
def open_chat(browser: Chromium) -> Iterator[Open]:
    """Open a chat with these items and this head."""
    opened: list[BareChat] = []

    def make(*items: dict[str, Any], **head: Any) -> BareChat:
        opened.append(BareChat(browser, *items, **head))
        return opened[-1]

    yield make
    for chat in opened:
        chat.page.close()
    assert [problem for chat in opened for problem in chat.problems] == []


def asking(nr: int, question: str) -> dict[str, Any]:
    return theirs(f"q-{nr}-item", question, kind="asks", question=f"q-{nr}", reply=f"r-{nr}")


ASKS = {"reply": "r-1", "question": "q-1", "who": "echo"}


def test_a_question_that_comes_while_something_is_typed_does_not_get_that(open_chat):
    chat = open_chat()
    chat.message.fill("and then?")
    chat.tell({"type": "items", "items": [asking(1, "Delete all?")]})
    chat.turn(asks=ASKS)
    chat.message.press("Enter")
    chat.message.fill("something else again")
    chat.message.press("Enter")
    assert [one["text"] for one in chat.said("send")] == ["and then?", "something else again"]

    # It can be answered as soon as one wants to.
    chat.page.get_by_role("article", name="echo asks").get_by_role("button", name="Answer").click()
    expect(chat.page.get_by_text("echo waits for your answer.")).to_be_visible()
    chat.keys.type("no")
    chat.keys.press("Enter")
    (answer,) = chat.said("answer")
    assert (answer["reply"], answer["question"], answer["text"]) == ("r-1", "q-1", "no")
    chat.keys.type("by the way")  # what comes next is not said to it once more
    chat.keys.press("Enter")
    assert chat.said("send")[-1]["text"] == "by the way"


def test_a_question_that_was_put_off_can_be_answered_later(open_chat):
    chat = open_chat(asking(1, "Which one?"), asking(2, "How many?"), asks=ASKS)
    expect(chat.button("Send")).to_have_count(0)
    chat.button("Say something else").click()
    expect(chat.button("Send")).to_be_visible()
    second = chat.page.get_by_role("article", name="echo asks").filter(has_text="How many?")
    second.get_by_role("button", name="Answer").click()
    chat.keys.type("two")
    chat.keys.press("Enter")
    first = chat.page.get_by_role("article", name="echo asks").filter(has_text="Which one?")
    first.get_by_role("button", name="Answer").click()
    chat.keys.type("that one")
    chat.keys.press("Enter")
    said = [(one["question"], one["text"]) for one in chat.said("answer")]
    assert said == [("q-2", "two"), ("q-1", "that one")]


def test_an_answer_begins_with_nobody_elses_name(open_chat):
    chat = open_chat(asking(1, "Your handle?"), asks=ASKS)
    chat.message.fill("@calc 2+2")
    expect(chat.button("Send")).to_be_visible()
    chat.tell({"type": "names", "names": ["calc"], "known": ["calc"]})
    chat.message.press("Enter")
    assert [one["text"] for one in chat.said("send")] == ["@calc 2+2"]

    # What is no name is an answer, and who asks need not be named.
    for text in ("@ada_l", "@echo yes"):
        chat.message.fill(text)
        chat.tell({"type": "names", "names": ["ada_l", "echo"], "known": ["echo"]})
        expect(chat.button("Send")).to_have_count(0)
        chat.message.press("Enter")
        chat.tell({"type": "taken", "id": chat.said("answer")[-1]["id"]})
    assert [one["text"] for one in chat.said("answer")] == ["@ada_l", "yes"]


def test_where_files_go_that_an_answer_cannot_take_is_said(open_chat):
    chat = open_chat(asking(1, "Which one?"), asks=ASKS)
    note = {"name": "note.txt", "mimeType": "text/plain", "buffer": b"buy milk"}
    chat.page.locator("input[type=file]").set_input_files(note)
    expect(chat.page.get_by_text("Files go with your next message.")).to_be_visible()
    chat.message.fill("this one")
    chat.message.press("Enter")
    chat.message.fill("and a file")
    chat.message.press("Enter")
    assert [len(one["files"]) for one in chat.said("send")] == [1]


def test_what_was_sent_with_half_a_file_is_in_the_box_when_the_page_is_loaded_again(open_chat):
    chat = open_chat()
    chat.mute()
    large = {"name": "large.bin", "mimeType": "", "buffer": bytes(2 << 20)}
    chat.page.locator("input[type=file]").set_input_files(large)
    chat.page.wait_for_function("() => model.said.some((one) => one.type === 'upload')")
    chat.message.fill("look at this")
    chat.message.press("Enter")
    expect(chat.message).to_have_value("")
    chat.show()
    expect(chat.message).to_have_value("look at this")


def test_a_folder_that_is_dropped_is_not_attached_and_it_is_said_so(open_chat):
    chat = open_chat()
    chat.page.evaluate(
        """() => {
          const folder = new File([""], "folder");
          folder.slice = () => ({ arrayBuffer: async () => { throw new Error("no file") } });
          const drop = new DragEvent("drop", { bubbles: true, cancelable: true });
          Object.defineProperty(drop, "dataTransfer", { value: { types: [], files: [folder] } });
          document.querySelector("section").dispatchEvent(drop);
        }"""
    )
    expect(chat.page.locator(".aios-toast")).to_have_text("folder cannot be read")
    expect(chat.page.locator(".aios-chip")).to_have_count(0)


def test_a_double_click_on_retry_sends_once_and_what_was_refused_can_be_sent_again(open_chat):
    failed = theirs("r-1", "", re="m-1", status="failed", problem="not today")
    chat = open_chat(mine("m-1", "hello"), failed)
    chat.button("Retry").dblclick()
    (again,) = chat.said("again")
    chat.tell({"type": "taken", "id": again["id"]})
    chat.tell({"type": "items", "items": [mine(again["id"], "hello", 3)]})  # and not yet: resent
    chat.button("Retry").click()
    assert len(chat.said("again")) == 1

    other = theirs("r-2", "", 4, re="m-1", status="failed", problem="not today")
    chat.tell({"type": "items", "items": [{**failed, "resent": again["id"]}, other]})
    chat.button("Retry").click()
    refused = chat.said("again")[-1]["id"]
    chat.tell({"type": "refused", "id": refused, "text": "too many", "hint": ""})
    chat.button("Discard").click()
    chat.button("Retry").click()
    assert len(chat.said("again")) == 3


def test_a_file_that_is_attached_while_a_message_is_edited_goes_with_it(open_chat):
    chat = open_chat(mine("m-1", "look at this"))
    chat.message.press("ArrowUp")
    note = {"name": "note.txt", "mimeType": "text/plain", "buffer": b"buy milk"}
    chat.page.locator("input[type=file]").set_input_files(note)
    chat.button("Send again").click()
    (again,) = chat.said("again")
    (file,) = chat.said("upload")
    assert again["files"] == [file["id"]]
    expect(chat.page.locator(".aios-chip")).to_have_count(0)


def test_an_example_does_not_take_the_place_of_what_was_typed(open_chat):
    chat = open_chat(agent={**AGENT, "ours": True, "examples": ["say hello", "say goodbye"]})
    chat.message.fill("half a thought")
    chat.button("say hello").click()
    expect(chat.message).to_have_value("half a thought\nsay hello")
    expect(chat.message).to_be_focused()
    chat.keys.press("Control+Z")
    expect(chat.message).to_have_value("half a thought")
    chat.message.fill("")
    for example in ("say hello", "say goodbye"):
        chat.button(example).click()
        expect(chat.message).to_have_value(example)
    expect(chat.button("Send")).to_be_enabled()


def names(typed: str, count: int = 1) -> dict[str, Any]:
    """Who is called so, as Python tells it."""
    rows = [
        {"id": f"bob{nr}@here", "name": f"bob{nr}", "state": "alive", "node": "", "about": "builds"}
        for nr in range(count)
    ]
    return {"type": "complete", "typed": typed, "rows": rows}


def test_names_that_come_too_late_are_not_offered(open_chat):
    chat = open_chat()
    options = chat.page.get_by_role("option")
    chat.message.focus()
    chat.keys.type("@bo")
    chat.keys.press("Enter")
    chat.tell(names("bo"))
    expect(options).to_have_count(0)
    chat.keys.press("Enter")

    # Nor to a caret that has gone elsewhere; where it comes back, they are.
    chat.keys.type("for @bo")
    chat.keys.press("Home")
    chat.tell(names("bo"))
    expect(options).to_have_count(0)
    chat.keys.press("End")
    chat.tell(names("bo", 2))
    expect(options).to_have_count(2)
    chat.keys.press("ArrowDown")
    chat.keys.press("Enter")
    expect(chat.message).to_have_value("for @bob1 ")


def test_keys_of_a_letter_that_is_being_composed_neither_send_nor_stop_anything(open_chat):
    chat = open_chat(busy=["echo"])
    chat.message.fill("にほん")
    press = """(box, [key, more]) => {
      const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
      box.dispatchEvent(event);
    }"""
    composed = {"isComposing": True}
    as_safari_says_it = {"keyCode": 229}
    for key in ("Enter", "Escape"):
        for how in (composed, as_safari_says_it):
            chat.message.evaluate(press, [key, how])
    assert chat.said("send", "stop") == []
    chat.message.press("Enter")
    chat.message.press("Escape")
    assert [one["type"] for one in chat.said("send", "stop")] == ["send", "stop"]


def test_all_names_can_be_seen_in_a_young_conversation(open_chat):
    chat = open_chat(mine("m-1", "hello"))
    chat.message.focus()
    chat.keys.type("@")
    chat.tell(names("", 8))
    expect(chat.page.get_by_role("option").first).to_be_in_viewport(ratio=1)
    chat.keys.press("ArrowUp")
    expect(chat.page.get_by_role("option").last).to_be_in_viewport(ratio=1)
    chat.keys.press("ArrowDown")
    expect(chat.page.get_by_role("option").first).to_be_in_viewport(ratio=1)
