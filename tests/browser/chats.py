"""A chat in a page, by the words a person has for its parts; and agents to chat with."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.browser.notebook import Notebook

LOAD = "%load_ext aios_nb"
AGENTS = """
import asyncio
import aios_nb as aios

@aios.agent(about="Says six thousand words in one breath")
async def burst(text):
    for nr in range(6000):
        yield f"w{nr} "

@aios.agent(about="Says what it was told")
def parrot(text):
    return f"you said {text}"

@aios.agent(about="Counts to nine, and does not end")
async def counter(text):
    for nr in range(10):
        yield f"{nr} "
        await asyncio.sleep(0.05)
    await asyncio.sleep(600)

tries = []

@aios.agent(about="Fails the first time")
def moody(text):
    tries.append(text)
    if len(tries) == 1:
        raise ValueError("not today")
    return "all right then"

@aios.agent(about="Reads files, and asks what to do with them")
def reader(text, ctx):
    file = ctx.files[0]
    wish = ctx.ask_user(f"What about {file.name}?")
    return f"{wish}: {ctx.read(file).decode()}"

TABLE = "| a | b |\\n|--|--:|\\n| x | 1 |"
CODE = "import math\\nprint(math.tau)"

@aios.agent(about="Shows all it can")
def painter(text):
    import pandas as pd
    from matplotlib.figure import Figure
    figure = Figure(figsize=(4, 2))
    figure.add_subplot().plot([1, 3, 2])
    said = f"**Three** things, with `code`:\\n\\n```python\\n{CODE}\\n```\\n\\n{TABLE}"
    return said, pd.DataFrame({"city": ["Oslo", "Rome"], "rain": [7.5, 3.25]}), figure
"""
BUSY = """
import time
while True:
    time.sleep(0.05)
"""
"""Until it is interrupted."""

LOOK_MS = 20
AT_END = "(log) => log.scrollTop && log.scrollHeight - log.scrollTop - log.clientHeight < 2"
MORE = """
@aios.agent(about="Has nothing to say")
def silent(text):
    return ""

@aios.agent(about="Waits until it is let go")
async def slow(text):
    await asyncio.sleep(600)

@aios.agent(about="Speaks as they do in Cairo")
def cairo(text):
    return "مرحبا بالعالم\\n\\nand in English"
"""


def high(locator) -> float:
    return locator.evaluate("(node) => node.getBoundingClientRect().height")


class Chat:
    """The chat that a cell shows."""

    def __init__(self, book: Notebook, nr: int) -> None:
        self.root = book.output(nr).locator(".aios-chat")
        self.message = self.root.get_by_label("Message", exact=True)
        self.log = self.root.get_by_role("log")
        self.articles = self.log.get_by_role("article")

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name, exact=True)

    def say(self, text: str) -> None:
        self.message.fill(text)
        self.message.press("Enter")

    def choose(self, item: str) -> None:
        """In the menu ⋯."""
        self.root.get_by_role("button", name="More").click()
        self.root.get_by_role("menuitem", name=item).click()

    def last(self) -> Locator:
        return self.articles.last

    def at_end(self) -> None:
        """Wait until the log shows the end of what was said."""
        while not self.log.evaluate(AT_END):  # it may be drawn anew meanwhile
            self.root.page.wait_for_timeout(LOOK_MS)

    def to_end(self) -> None:
        while not self.log.evaluate(AT_END):  # it may be drawn anew meanwhile
            self.log.evaluate("(log) => log.scrollTo(0, log.scrollHeight)")
            self.root.page.wait_for_timeout(LOOK_MS)

    def ended(self, name: str, status: str = "") -> None:
        """Wait until the last message is this agent's, and has come to this end."""
        expect(self.last()).to_have_attribute("aria-label", name)
        expect(self.last()).to_have_attribute("data-status", status)
