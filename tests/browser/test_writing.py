"""Writing in a chat: no text is lost, and keys do what they do elsewhere."""

from __future__ import annotations

import re

from playwright.sync_api import Response, WebSocketRoute, expect

from tests.browser.chats import AGENTS, LOAD, LOOK_MS, MORE, Chat, high
from tests.browser.notebook import Notebook

DRAFTS = "() => Object.keys(sessionStorage).filter((key) => key.startsWith('aios-chat'))"


def toast(chat: Chat, text: str):
    return chat.root.locator(".aios-toast").filter(has_text=text)


class Lossy:
    """A way from kernel to page on which news of widgets can be lost; a full server drops them."""

    def __init__(self, book: Notebook) -> None:
        self.loses = False
        self.lost: list[bytes] = []
        self._page = book.page
        book.page.route_web_socket(re.compile("/channels"), self._carry)
        book.reload()

    def lost_one(self, word: bytes) -> None:
        """Wait until something with this word in it is lost."""
        while not any(word in said for said in self.lost):
            self._page.wait_for_timeout(LOOK_MS)
        self.lost.clear()

    def _carry(self, page: WebSocketRoute) -> None:
        def to_page(message: str | bytes) -> None:
            said = message if isinstance(message, bytes) else message.encode()
            if self.loses and b'"batch"' in said:
                self.lost.append(said)
            else:
                page.send(message)

        page.connect_to_server().on_message(to_page)


def in_file(book: Notebook, text: str) -> bool:
    return any(text in str(cell["outputs"]) for cell in book.saved()["cells"])


def is_saved(response: Response) -> bool:
    return response.request.method == "PUT" and "/api/contents/" in response.url


def test_what_is_typed_after_a_restart_is_kept_for_the_cell_that_is_run_again(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat parrot")
    book.run_all()
    chat = Chat(book, 2)
    chat.say("one")
    chat.ended("parrot")
    book.run(book.add("%aios chat parrot"))  # the same conversation
    other = Chat(book, 3)
    other.message.fill("three, elsewhere")
    book.restart()
    expect(chat.root).to_contain_text("Run your cells again")
    chat.say("two, typed in between")
    expect(toast(chat, "Your text is kept")).to_be_visible()
    expect(chat.message).to_have_value("two, typed in between")
    expect(chat.articles).to_have_count(2)  # nothing pretends to be on its way
    chat.button("Send").click()
    expect(chat.message).to_have_value("two, typed in between")
    book.shot("chat-restarted", chat.root)

    book.run_all()
    kept = re.compile("two, typed in between|three, elsewhere")
    for one in (chat, other):
        expect(one.root).not_to_contain_text("Run your cells again")
        expect(one.message).to_have_value(kept)
    assert chat.message.input_value() != other.message.input_value()
    for one in (chat, other):
        said = one.message.input_value()
        one.message.press("Enter")
        expect(one.last()).to_contain_text(f"you said {said}")
    assert book.page.evaluate(DRAFTS) == []


def test_what_was_not_sent_is_there_when_the_cell_is_run_or_the_page_loaded_again(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat parrot", "%aios withdraw parrot")
    for nr in range(3):
        book.run(nr)
    chat = Chat(book, 2)
    chat.message.fill("a draft")
    book.run(2)
    expect(chat.message).to_have_value("a draft")
    book.reload()
    expect(chat.message).to_have_value("a draft")
    chat.message.press("Enter")
    chat.ended("parrot")

    # What is begun while an earlier message is edited comes back.
    chat.message.fill("half a thought")
    chat.articles.first.hover()
    chat.articles.first.get_by_role("button", name="Edit and send again").click()
    expect(chat.message).to_have_value("a draft")
    chat.message.press("Escape")
    expect(chat.message).to_have_value("half a thought")
    chat.articles.first.get_by_role("button", name="Edit and send again").click()
    chat.say("in other words")
    expect(chat.last()).to_contain_text("you said in other words")
    expect(chat.message).to_have_value("half a thought")

    # So it does when the kernel goes meanwhile.
    chat.root.get_by_role("button", name="Edit and send again").last.click()
    chat.message.fill("once more")
    book.restart()
    expect(chat.message).to_have_value("half a thought\nonce more")
    for nr in range(3):
        book.run(nr)
    expect(chat.message).to_have_value("half a thought\nonce more")

    # What waits for the node has not been sent.
    down, up = book.add("%aios down"), book.add("%aios up")
    book.run(down)
    expect(chat.root).to_contain_text("The node is stopped")
    chat.say("are you there?")
    expect(chat.log).to_contain_text("waits for the node")
    book.reload()
    book.run(up)
    expect(chat.message).to_have_value("are you there?")
    chat.message.fill("")

    # What was refused is text of one's own, too.
    book.run(3)
    expect(chat.root).to_contain_text("Nobody offers parrot here now")
    chat.say("one")
    expect(chat.last()).to_contain_text("not sent")
    chat.say("two")
    expect(chat.log.get_by_text("not sent")).to_have_count(4)  # above and below the text
    book.shot("chat-not-sent", chat.root)
    chat.last().get_by_role("button", name="Discard").click()
    expect(chat.log.get_by_text("not sent")).to_have_count(2)
    book.run(2)
    expect(chat.message).to_have_value("one")
    expect(chat.log.get_by_text("not sent")).to_have_count(0)


def test_what_waits_for_the_node_can_be_taken_back(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat parrot", "%aios down", "%aios up")
    for nr in range(4):
        book.run(nr)
    chat = Chat(book, 2)
    expect(chat.root).to_contain_text("The node is stopped")
    chat.say("one")
    book.shot("chat-waits", chat.root)
    chat.button("Take back").click()
    expect(chat.message).to_be_focused()
    expect(chat.message).to_have_value("one")
    expect(chat.articles).to_have_count(0)
    chat.say("one, in other words")
    expect(chat.log).to_contain_text("waits for the node")
    book.run(4)
    chat.ended("parrot")
    expect(chat.articles).to_have_count(2)
    expect(chat.last()).to_contain_text("you said one, in other words")


def test_one_message_is_edited_after_another_and_all_that_was_written_is_kept(open_notebook):
    with_whom = "get_ipython().run_line_magic('aios', f'chat {who}')"
    book = open_notebook(LOAD, f"{AGENTS}\nwho = 'parrot'", with_whom)
    book.run_all()
    chat = Chat(book, 2)
    for text in ("one", "two"):
        chat.say(text)
        chat.ended("parrot")
    first, second = chat.articles.nth(0), chat.articles.nth(2)
    chat.message.fill("half a thought")
    for message, before in ((first, "one"), (first, "one, in other words"), (second, "two")):
        message.hover()
        message.get_by_role("button", name="Edit and send again").click()
        expect(chat.message).to_be_focused()
        expect(chat.message).to_have_value(before)
        if message == first:
            chat.message.fill("one, in other words")
    chat.message.press("Escape")
    expect(chat.message).to_have_value("half a thought\none, in other words")

    # Its cell shows another one and the page is loaded again: who opens it finds what was written.
    book.tell("who = 'moody'")
    book.run(2)
    expect(chat.message).to_have_value("")
    book.reload()
    book.run(book.add("%aios chat parrot"))
    chat = Chat(book, 3)
    expect(chat.message).to_have_value("half a thought\none, in other words")

    # What was meant for a conversation that is gone may be said in the next one.
    chat.message.fill("")
    (row,) = book.rpc("chat.list")["conversations"]
    book.rpc("chat.delete", conversation=row["conversation"])
    chat.say("three")
    expect(chat.last()).to_contain_text("not sent: this conversation was deleted elsewhere")
    expect(chat.articles).to_have_count(1)
    book.shot("chat-deleted", chat.root)
    chat.button("Retry").click()
    expect(chat.last()).to_contain_text("you said three")

    # The list of all has room, however little was said in this one.
    for text in ("four", "five", "six"):
        chat.choose("New conversation")
        expect(chat.articles).to_have_count(0)
        chat.say(text)
        chat.ended("parrot")
    chat.choose("Conversations")
    rows = chat.root.locator(".aios-chatrow")
    expect(rows).to_have_count(4)
    before = high(chat.root)
    for nr in range(4):
        expect(rows.nth(nr)).to_be_in_viewport(ratio=1)
    book.shot("chat-conversations", chat.root)
    chat.button("Close").click()
    assert high(chat.root) < before


def test_a_notebook_that_is_opened_again_shows_what_was_saved(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat parrot", "%aios hub", "%aios network")
    book.run_all()
    chat = Chat(book, 2)
    chat.say("one")
    chat.ended("parrot")
    book.printed(2, "you said one")
    expect(book.output(3).get_by_role("row").filter(has_text="parrot")).to_be_visible()
    book.save()
    book.another_day()
    expect(chat.last()).to_contain_text("you said one")
    expect(chat.root).to_contain_text("This is what was saved")
    expect(book.output(3)).to_contain_text("This is what was saved")
    expect(book.output(4)).to_contain_text("this is what was saved")
    chat.say("two")
    expect(toast(chat, "Your text is kept")).to_be_visible()
    book.shot("another-day")

    book.run_all()
    expect(chat.root).not_to_contain_text("This is what was saved")
    expect(chat.message).to_have_value("two")
    chat.message.press("Enter")
    expect(chat.last()).to_contain_text("you said two")


def test_an_answer_that_a_restart_has_cut_does_not_look_alive(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat counter")
    book.run_all()
    chat = Chat(book, 2)
    chat.say("go")
    expect(chat.last()).to_contain_text("0 1 2")
    expect(chat.button("Stop")).to_be_visible()
    book.restart()
    expect(chat.last().get_by_text("cut by the restart")).to_be_visible()
    expect(chat.last()).not_to_contain_text("typing")
    expect(chat.button("Stop")).to_be_hidden()
    book.shot("chat-cut", chat.root)
    book.run_all()
    expect(chat.last()).to_contain_text("interrupted")
    expect(chat.last()).to_contain_text("0 1 2")

    chat.say("go")
    expect(chat.last()).to_contain_text("0 1 2")
    down, up = book.add("%aios down"), book.add("%aios up")
    book.run(down)
    expect(chat.last().get_by_text("cut: the node was stopped")).to_be_visible()
    for menu in ("Export", "More"):
        expect(chat.button(menu)).to_be_disabled()
    expect(chat.last()).not_to_contain_text("typing")
    expect(chat.button("Stop")).to_be_hidden()
    book.shot("chat-stopped", chat.root)
    book.run(up)
    expect(chat.last()).to_contain_text("interrupted")
    expect(chat.button("More")).to_be_enabled()


def test_what_was_said_is_saved_though_the_caret_rests_in_the_box(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat parrot", "%aios chat parrot", "%aios hub")
    book.run_all()
    chat = Chat(book, 2)
    keys = book.page.keyboard
    chat.say("while I look")
    before = chat.message.element_handle()
    chat.ended("parrot")
    book.printed(2, "you said while I look")
    book.page.wait_for_function("(box) => !box.isConnected", arg=before)  # it was drawn anew, and
    expect(chat.message).to_be_focused()

    book.run(3)  # the same conversation once more
    chat.message.focus()

    # Ctrl+S is the notebook's, from here as from anywhere; text is the box's.
    keys.type("half a sentence")
    keys.press("Control+A")
    keys.press("Control+B")
    with book.page.expect_response(is_saved):
        keys.press("Control+S")
    assert in_file(book, "you said while I look")
    expect(book.page.locator(".jp-Dialog")).to_have_count(0)
    expect(chat.message).to_be_focused()

    # Who has begun a sentence is not disturbed.
    chat.message.evaluate("(node) => (node.dataset.seen = 'yes')")
    (row,) = book.rpc("chat.list")["conversations"]
    book.rpc("chat.send", agent="parrot", text="from afar", conversation=row["conversation"])
    expect(chat.last()).to_contain_text("you said from afar")
    book.printed(3, "you said from afar")  # where nobody types
    expect(chat.message).to_have_attribute("data-seen", "yes")
    keys.type("all gone")  # what was marked is replaced
    expect(chat.message).to_have_value("all gone")
    keys.press("Control+A")
    keys.press("Backspace")
    book.printed(2, "you said from afar")

    hub = book.output(4).locator(".aios-hub")
    hub.get_by_role("combobox", name="Search agents").click()
    with book.page.expect_response(is_saved):
        keys.press("Control+S")
    assert in_file(book, "you said from afar")


UP_AT_ONCE = """() => {
  const all = () => [...document.querySelectorAll(".aios-log")];
  const known = new Set(all());
  const meet = (log) => {
    known.add(log);
    new ResizeObserver((_, sizer) => (sizer.disconnect(), log.scrollTo(0, 0))).observe(log);
  };
  const look = () => all().forEach((log) => known.has(log) || meet(log));
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}"""
"""Scroll a new view to its top right after it went to its end, before an event tells of that."""


def test_who_scrolls_up_in_the_first_frame_of_a_view_stays_there(open_notebook):
    begin = "chat = get_ipython().run_line_magic('aios', 'chat burst')\nchat"
    book = open_notebook(LOAD, AGENTS, begin)
    lossy = Lossy(book)
    book.run_all()
    chat = Chat(book, 2)
    chat.say("go")
    chat.ended("burst")
    chat.to_end()  # if it came all at once it is read from its top
    before = chat.log.element_handle()
    book.page.evaluate(UP_AT_ONCE)
    lossy.loses = True  # what came in the same moment would draw it once more
    book.tell("chat._showing._publish(update=True)")
    book.page.wait_for_function("(log) => !log.isConnected", arg=before)
    expect(chat.root.get_by_role("button", name="Go to the end")).to_be_visible()
    assert chat.log.evaluate("(log) => log.scrollTop") == 0


def test_keys_that_fall_between_two_views_are_not_lost(open_notebook):
    begin = "chat = get_ipython().run_line_magic('aios', 'chat parrot')\nchat"
    book = open_notebook(LOAD, AGENTS, begin)
    book.run_all()
    chat = Chat(book, 2)
    chat.message.focus()
    typed = ""
    for nr in range(12):
        before = chat.message.element_handle()
        book.tell("chat._showing._publish(update=True)")
        words = 0
        while words < 3 or before.evaluate("(box) => box.isConnected"):  # until it is drawn anew
            words += 1
            book.page.keyboard.type(f"{nr} ", delay=10)
            typed += f"{nr} "
        expect(chat.message).to_be_focused()
    expect(chat.message).to_have_value(typed)


def test_somebody_in_a_menu_or_on_a_button_is_not_disturbed(open_notebook):
    steps = """
@aios.agent(about="Says twenty times a second how far it is")
async def steps(text, ctx):
    for nr in range(12_000):
        ctx.progress(f"step {nr}")
        await asyncio.sleep(0.05)
"""
    book = open_notebook(LOAD, AGENTS, steps, "%aios chat parrot")
    book.run_all()
    chat = Chat(book, 3)
    chat.say("one")
    chat.ended("parrot")
    (row,) = book.rpc("chat.list")["conversations"]
    chat.root.get_by_role("button", name="More").click()
    item = chat.root.get_by_role("menuitem", name="New conversation")
    expect(item).to_be_focused()
    book.rpc("chat.send", agent="echo", text="from afar", conversation=row["conversation"])
    expect(chat.root.locator(".aios-head")).to_contain_text("also here: echo")
    expect(item).to_be_focused()
    book.page.keyboard.press("Escape")
    expect(chat.root.get_by_role("button", name="More")).to_be_focused()

    chat.say("@steps go")
    expect(chat.last()).to_contain_text("step 3")
    chat.last().hover()
    chat.last().get_by_role("button", name="Stop").click(delay=200)  # more than one step
    chat.ended("steps", "cancelled")


def test_what_becomes_of_a_message_is_found_out_though_the_news_of_it_was_lost(open_notebook):
    book = open_notebook(LOAD, AGENTS, "%aios chat parrot")
    lossy = Lossy(book)
    book.run_all()
    chat = Chat(book, 2)
    chat.say("one")
    chat.ended("parrot")
    lossy.loses = True
    chat.say("@nosuch two")  # that it was refused is not heard
    lossy.lost_one(b'"refused"')
    lossy.loses = False
    chat.say("three")
    expect(chat.message).to_have_value("@nosuch two")
    expect(chat.last()).to_contain_text("you said three")
    expect(chat.articles).to_have_count(4)

    lossy.loses = True
    note = {"name": "note.txt", "mimeType": "text/plain", "buffer": b"buy milk"}
    chat.root.locator("input[type=file]").set_input_files(note)
    expect(chat.root.locator(".aios-chip")).to_contain_text("note.txt")
    lossy.lost_one(b'"ack"')
    lossy.loses = False
    chat.say("@reader four")
    chat.ended("reader asks")
    chat.say("print")
    chat.ended("reader")
    expect(chat.last()).to_contain_text("print: buy milk")


def test_a_chat_under_two_cells_is_one_chat_for_one_pair_of_hands(open_notebook):
    begin = "chat = get_ipython().run_line_magic('aios', 'chat parrot')\nchat"
    book = open_notebook(LOAD, AGENTS, begin, "chat")
    book.run_all()
    chat, other = Chat(book, 2), Chat(book, 3)
    chat.message.fill("once")
    expect(other.message).to_have_value("once")
    note = {"name": "note.txt", "mimeType": "text/plain", "buffer": b"buy milk"}
    chat.root.locator("input[type=file]").set_input_files(note)
    expect(other.root.locator(".aios-chip")).to_contain_text("note.txt")
    other.button("Remove note.txt").click()
    expect(chat.root.locator(".aios-chip")).to_have_count(0)
    chat.message.press("Enter")
    chat.ended("parrot")
    expect(other.message).to_have_value("")
    expect(other.button("Send")).to_be_disabled()

    # What is asked for in one is given there.
    loaded = []
    book.page.on("download", lambda one: loaded.append(one.suggested_filename))
    with book.page.expect_download():
        chat.root.get_by_role("button", name="Export").click()
        chat.root.get_by_role("menuitem", name="Markdown").first.click()
    chat.choose("Conversations")
    expect(chat.root.locator(".aios-chatrow")).to_have_count(1)
    expect(other.root.locator(".aios-sheet")).to_be_hidden()
    assert len(loaded) == 1
    chat.button("Close").click()

    # Who reads on in one of them and writes in the other misses nothing.
    chat.say("@burst")
    chat.ended("burst")
    other.log.evaluate("(log) => log.scrollTo(0, 0)")
    chat.say("seen")
    chat.ended("parrot")
    expect(book.page.locator(".aios-new")).to_have_count(0)

    # A file may be dropped on all of it.
    drop = """(log) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(["buy milk"], "dropped.txt"));
      log.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    }"""
    chat.log.evaluate(drop)
    expect(chat.root.locator(".aios-chip")).to_contain_text("dropped.txt")


def test_who_is_meant_and_where_the_keyboard_is(open_notebook):
    book = open_notebook(LOAD, AGENTS, MORE, "%aios chat moody")
    book.run_all()
    chat = Chat(book, 3)
    keys = book.page.keyboard
    coloured = chat.root.locator(".aios-back .aios-at")

    chat.say("@nosuch hello")
    expect(toast(chat, "nobody is called nosuch")).to_be_visible()
    expect(chat.message).to_have_value("@nosuch hello")
    expect(chat.articles).to_have_count(0)
    expect(coloured).to_have_count(0)
    chat.message.fill("ask @parrot or @nosuch")
    expect(coloured).to_have_text(["@parrot"])

    # Who cannot see is told of all that came at once, and of what is shown for a moment.
    chat.say("@parrot and @cairo hello")
    told = chat.root.locator("[aria-live=polite]")
    expect(told).to_contain_text("parrot: you said")
    expect(told).to_contain_text("cairo: ")
    chat.last().hover()
    chat.last().get_by_role("button", name="Copy this message").click()
    expect(told).to_contain_text("copied")

    # A button that goes away leaves the keyboard in the box.
    chat.say("hello")
    chat.ended("moody", "failed")
    chat.button("Retry").focus()
    keys.press("Enter")
    expect(chat.message).to_be_focused()
    chat.ended("moody")
    chat.say("@slow one")
    expect(chat.last()).to_have_attribute("data-status", "runs")
    chat.say("@slow two")
    expect(chat.last()).to_contain_text("waits for its turn")
    expect(chat.last().locator(".aios-dots")).to_have_count(0)
    # An Escape that ends the choice of a word in Japanese stops nobody.
    chat.message.dispatch_event("keydown", {"key": "Escape", "isComposing": True})
    chat.message.dispatch_event("keydown", {"key": "Escape", "keyCode": 229})
    chat.say("@parrot are they at it?")
    chat.ended("parrot")
    expect(chat.articles.nth(-3)).to_have_attribute("data-status", "waits")

    chat.button("Stop").click()
    expect(chat.message).to_be_focused()
    expect(chat.articles.nth(-3)).to_have_attribute("data-status", "cancelled")

    # What was to be edited stays behind in its conversation; the text is still one's own.
    keys.press("ArrowUp")
    expect(chat.button("Send again")).to_be_visible()
    chat.choose("New conversation")
    expect(chat.articles).to_have_count(0)
    expect(chat.button("Send")).to_be_visible()
    chat.say("@parrot anew")
    chat.ended("parrot")
