"""Reading a chat: one's place in it, and room for all that is shown."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.chats import AGENTS, LOAD, LOOK_MS, MORE, Chat, high

TALL = """
@aios.agent(about="Says forty lines")
def tall(text):
    return "\\n\\n".join(f"{text} {nr}" for nr in range(40))
"""
PUT_OFF = "(timer := chat._showing._timer) and timer.when() > __import__('time').monotonic() + 60"
"""Whether the kernel would have drawn it anew by now, and waits for who does something there."""
TURNING = """(log) => {
  const turn = () => log.dispatchEvent(new WheelEvent("wheel", { deltaY: 1, bubbles: true }));
  log.turning = setInterval(turn, 100);
}"""


def test_a_long_answer_stays_open_under_its_reader(open_notebook):
    begin = "chat = get_ipython().run_line_magic('aios', 'chat tall')\nchat"
    book = open_notebook(LOAD, f"{AGENTS}\n{TALL}", begin)
    book.run_all()
    chat = Chat(book, 2)
    for text in ("one", "two", "three"):
        chat.say(text)
        chat.ended("tall")
    book.run(2)  # from here on these are of another day
    folded = chat.button("Show all")
    expect(folded).to_have_count(2)
    folded.last.click()
    chat.say("four")
    chat.ended("tall")
    chat.say("@parrot five")
    chat.ended("parrot")

    # Whoever turns the wheel, here over what was said second, is not disturbed ...
    chat.articles.get_by_text("two 20").scroll_into_view_if_needed()
    before = chat.log.element_handle()
    before.evaluate(TURNING)
    while not book.value(PUT_OFF):
        assert before.evaluate("(log) => log.isConnected")
        book.page.wait_for_timeout(LOOK_MS)

    # ... and finds the place again when it is drawn anew: the first answer is folded, no other one.
    was = before.evaluate("(log) => (clearInterval(log.turning), log.scrollTop)")
    book.page.wait_for_function("(log) => !log.isConnected", arg=before)
    expect(folded).to_have_count(1)
    expect(chat.log.get_by_text("two 20")).to_be_in_viewport()
    assert chat.log.evaluate("(log) => log.scrollTop") == pytest.approx(was, abs=2)


def test_a_chat_stays_as_high_as_it_is_while_somebody_writes(open_notebook):
    book = open_notebook(LOAD, AGENTS, MORE, "%aios chat parrot")
    book.run_all()
    chat = Chat(book, 3)
    keys = book.page.keyboard
    bar = chat.root.locator(".aios-bar")
    chat.say("one")
    chat.ended("parrot")
    chat.say("@silent two")
    chat.ended("silent")
    expect(chat.last()).to_contain_text("(empty answer)")
    book.printed(3, "(empty answer)")  # nothing is drawn anew under the keys
    expect(chat.message).to_be_focused()

    # Who gets it is said where it is edited.
    expect(chat.message).to_have_value("")
    before = high(chat.root)
    keys.press("ArrowUp")
    expect(chat.message).to_have_value("two")
    expect(bar).to_contain_text("to silent")
    expect(chat.last()).to_be_in_viewport()
    assert high(chat.root) == pytest.approx(before, abs=1)
    keys.press("Escape")
    expect(bar).to_be_hidden()
    keys.type("counts to nine, and does not end")
    expect(chat.root.locator(".aios-helpers")).to_contain_text("counter")
    keys.press("Shift+Enter")
    keys.press("Shift+Enter")
    assert high(chat.root) == pytest.approx(before, abs=1)
    last, log = chat.last().bounding_box(), chat.log.bounding_box()
    assert last["y"] + last["height"] <= log["y"] + log["height"]
    book.shot("chat-helpers", chat.root)
    keys.press("Control+A")
    keys.press("Backspace")
    expect(chat.root.locator(".aios-helpers")).to_be_hidden()
    assert high(chat.root) == pytest.approx(before, abs=1)


SIDES = """(back) => {
  const range = document.createRange();
  range.selectNodeContents(back);
  const { left, right } = back.getBoundingClientRect();
  const lines = [...range.getClientRects()].filter((line) => line.width);
  return lines.map((line) => (line.left - left < right - line.right ? "left" : "right"));
}"""
"""Where the lines of a draft are drawn, the text area's own being transparent."""


def test_text_tables_and_code_have_room_at_any_width(open_notebook):
    heads, lines, cells = "| station | rain " * 4, "|--|--:" * 4, "| Reykjavik | 7.5 " * 4
    table = f"{heads}|\\n{lines}|\\n{cells}|"
    wide = f"""
@aios.agent(about="Shows a table of many columns, and a line of code")
def wide(text):
    import pandas as pd
    many = {{f"column {{nr}}": [1234.5 + nr, "Honningsvaag"][nr % 2 :][:1] for nr in range(9)}}
    return "{"word " * 200}\\n\\n```python\\nx = 1\\n```\\n\\n{table}", pd.DataFrame(many)
"""
    book = open_notebook(LOAD, AGENTS, MORE, wide, "%aios chat wide")
    book.run_all()
    chat = Chat(book, 4)
    chat.say("@cairo hello")
    chat.ended("cairo")
    lines = chat.last().locator(".aios-rich > p")
    directions = "(nodes) => nodes.map((node) => getComputedStyle(node).direction)"
    assert lines.evaluate_all(directions) == ["rtl", "ltr"]
    chat.message.fill("مرحبا")
    assert chat.message.evaluate("(node) => getComputedStyle(node).direction") == "rtl"
    chat.message.fill("مرحبا\nand in English")
    book.shot("chat-mixed-draft", chat.root)
    assert chat.root.locator(".aios-back").evaluate(SIDES) == ["right", "left"]
    before = chat.message.element_handle()  # of a view that stays as long as there is a draft
    chat.say("go")
    chat.ended("wide")
    book.printed(4, "Honningsvaag")
    book.page.wait_for_function("(box) => !box.isConnected", arg=before)
    chat.message.fill("@parro")
    expect(chat.root.get_by_role("option")).to_have_count(1)  # it has heard all that it asked for
    chat.message.fill("")
    chat.at_end()

    book.page.emulate_media(reduced_motion="reduce")
    chat.log.evaluate("(log) => log.scrollTo(0, 0)")
    jump = chat.root.get_by_role("button", name="Go to the end")
    expect(jump).to_be_visible()
    left = """(jump) => {
        const log = jump.parentElement.querySelector('.aios-log');
        jump.click();
        return log.scrollHeight - log.scrollTop - log.clientHeight;
    }"""
    assert jump.evaluate(left) < 2  # at once: nothing glides where that is not wanted

    book.resize(1800, 900)
    said = chat.last()
    assert said.locator(".aios-rich > p").first.bounding_box()["width"] < 700
    book.shot("chat-1800", chat.root)
    book.resize(480, 900)
    assert chat.root.bounding_box()["width"] < 400
    height = "(node) => node.getClientRects().length && node.firstChild && (() => {\
        const range = document.createRange(); range.selectNodeContents(node);\
        return new Set([...range.getClientRects()].map((one) => one.top)).size })()"
    for cell in ("Reykjavik", "7.5", "1234.5", "Honningsvaag"):
        assert said.get_by_role("cell", name=cell).first.evaluate(height) == 1
    tools = said.locator(".aios-codetools").first.bounding_box()
    code = said.locator("pre code").first.bounding_box()
    assert code["y"] >= tools["y"] + tools["height"]
    said.locator("pre").first.scroll_into_view_if_needed()
    book.shot("chat-380", chat.root)
