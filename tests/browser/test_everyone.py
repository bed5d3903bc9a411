"""For everyone: read by a screen reader, used by keyboard, in the dark and on a narrow page."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from aios_nb.agents.definition import describe
from tests.browser.chats import AGENTS, LOAD, Chat
from tests.browser.contrast import hard_to_read
from tests.browser.notebook import Notebook

PANELS = ["%aios hub", "%aios chat painter", "%aios network"]
SHOWN = [
    *PANELS, "%aios", "%aios search numbers", "%aios agents", "%aios peers", "%aios card painter",
    "%aios ask painter hello", "%aios chats", "%aios history", "%aios callers", "%aios doctor",
]  # fmt: skip
PHONE = (400, 900)


def test_nothing_is_in_the_way_in_light_in_the_dark_and_on_a_narrow_page(open_notebook, make_site):
    def adder(text):
        return "7"

    about = "Adds numbers, however many of them there may be"
    bob = make_site(describe(adder, about=about), name="bob")
    book = open_notebook(LOAD, AGENTS, *SHOWN)
    for nr in range(3):
        book.run(nr)
    hub = book.output(2).locator(".aios-hub")
    bobs = hub.get_by_role("row").filter(has_text="adder")
    expect(bobs).to_be_visible()  # or there is nothing to be found yet
    for nr in range(3, 2 + len(SHOWN)):
        book.run(nr)
    chat = Chat(book, 3)
    chat.say("show me")
    chat.ended("painter")
    chat.say("@moody hello")
    expect(chat.root).to_contain_text("not today")
    book.rpc("chat.send", agent="adder", text="3 and 4")
    bob.node.host(describe(adder, about=f"{about} by now"))
    assert complaints(book) == []

    hub.get_by_role("button", name="Review: adder").click()
    expect(hub.locator(".hub-changes")).to_contain_text("by now")
    book.output(4).get_by_role("button", name="bob").press("Enter")
    book.output(4).get_by_role("button", name="table").click()
    assert complaints(book) == []
    book.dark()
    assert complaints(book) == []

    book.light()
    book.resize(*PHONE)
    assert complaints(book) == []
    for nr, line in enumerate(SHOWN[len(PANELS) :], 2 + len(PANELS)):
        named = ".jp-RenderedHTML > div" if line == "%aios history" else ".aios-out"
        shown = book.output(nr).locator(named).first
        # Both are rounded: one pixel is no more than that.
        assert shown.evaluate("(node) => node.scrollWidth - node.clientWidth") <= 1
    found = book.output(6)
    book.shot("search-phone", found)
    about = found.locator("td").filter(has_text="Adds numbers").last.bounding_box()
    whole = found.locator(".aios-out").bounding_box()
    assert about
    assert whole
    assert about["width"] > 0.8 * whole["width"]  # below the name, not in a column of letters


FRAMES = """
import aios_nb as aios, pandas as pd

@aios.agent
def frames(text):
    frame = {f"column {nr}": [nr * 1000.125] for nr in range(38)}
    return pd.DataFrame({**frame, "stranger": ["x" * 5000], "x" * 5000: [1]})
"""


def test_a_wide_table_breaks_no_number_and_a_long_word_does_not_widen_the_page(open_notebook):
    book = open_notebook(LOAD, FRAMES, "%aios ask frames x")
    book.run_all()
    shown = book.output(2).locator(".aios-out").first
    cells = shown.locator("th, td")
    lines = """(cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return range.getClientRects().length;
    }"""
    for nr in (0, 37, 40, 77):  # names and numbers, first and last
        assert cells.nth(nr).evaluate(lines) == 1
    assert cells.nth(78).evaluate("(cell) => cell.clientWidth") < 500
    assert shown.evaluate("(node) => node.scrollWidth - node.clientWidth") <= 1
    book.shot("wide-table", book.output(2))


def complaints(book: Notebook) -> list[str]:
    """What axe says against our part of the page, and which words of it are pale."""
    expect(book.output(4).locator(".aios-net")).to_have_attribute("data-live", "yes")
    for nr in range(2, 2 + len(SHOWN)):
        book.output(nr).evaluate("(node, nr) => (node.id = `shown-${nr}`)", nr)
    ours = [[f"#shown-{nr}"] for nr in range(2, 2 + len(SHOWN))]
    found = Axe().run(book.page, {"include": ours}).response["violations"]
    said = [
        f"{one['id']}: {one['help']}: {node['html'][:200]}"
        for one in found
        for node in one["nodes"]
    ]
    return said + [one for nr in range(2, 2 + len(SHOWN)) for one in hard_to_read(book.output(nr))]
