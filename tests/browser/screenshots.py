"""The README's pictures, taken in a real JupyterLab among real nodes: ``make screenshots``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from aios_nb.agents.definition import describe
from tests.browser.browser import WITHOUT, find_browser, workshop
from tests.browser.chats import Chat
from tests.browser.notebook import Notebook
from tests.sites import TestSite

TO = Path(__file__).parents[2] / "docs"
SCALE = 1.5
CELLS = [
    "import aios_nb as aios\n\naios.up(name='alice')\n%load_ext aios_nb",
    '''@aios.agent(about="Summarises papers and letters in three sentences", tags=["writing"])
def tldr(text):
    return "It is about agents. They find each other. No server is needed."''',
    "%aios hub explain papers",
    "%aios chat paper_digest",
    "%aios network",
]
OTHERS = ("carol", "dave-laptop", "erin", "lab-3", "lab-4", "mensa", "grace")


def paper_digest(text):
    """Reads an arXiv id and explains the paper in plain words"""
    yield "It proposes that **sites of agents** find each other without a server: a hash table "
    yield "says *where* a node is, gossip says *who offers what*. To try it here:\n\n"
    yield '```python\nimport aios_nb as aios\n\nhits = aios.node().search("explain papers")\n'
    yield 'hits[0].ask("2504.14411")\n```\n'


def plotter(text):
    """Draws a function of x, and tells some of its values"""
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

    x = np.linspace(0, 12, 200)
    figure = Figure(figsize=(5, 1.9), layout="constrained")
    figure.add_subplot().plot(x, np.sin(x) / (1 + x / 4))
    at = np.arange(4)
    frame = pd.DataFrame({"x": at, "y": (np.sin(at) / (1 + at / 4)).round(3)})
    return "A wave that comes to rest:", frame, figure


def academic_search(text):
    """Finds research papers, and compares them"""
    return "three articles"


def translator(text):
    """Translates papers and letters into plain English"""
    return text


@contextmanager
def network(home: Path) -> Iterator[None]:
    """Other people's nodes, with agents."""
    hosts: dict[str, list[Callable[..., Any]]] = {
        "bob-lab": [paper_digest, plotter],
        "uni-site": [academic_search, translator],
    }
    tags = {paper_digest: ["research"], academic_search: ["research", "search"]}
    with ExitStack() as stack:
        for name in (*hosts, *OTHERS):
            agents = [
                describe(agent, about=agent.__doc__, tags=tags.get(agent, ()))
                for agent in hosts.get(name, [])
            ]
            stack.callback(TestSite(home, agents, name=name).stop)
        yield


def take(book: Notebook) -> None:
    book.run(0)
    book.run(1)
    book.run(2)
    hub = book.output(2).locator(".aios-hub")
    expect(hub.get_by_role("row").filter(has_text="uni-site").first).to_be_visible()
    shoot(book, "hub", 2)

    book.run(3)
    chat = Chat(book, 3)
    chat.say("What does 2504.14411 claim about discovery, and does the code do it?")
    chat.ended("paper_digest")
    chat.say("@plotter sin(x) / (1 + x/4)")
    chat.ended("plotter")
    picture = chat.last().get_by_role("img")
    expect(picture).to_be_visible()
    picture.evaluate("(node) => node.decode()")
    chat.log.evaluate("(node) => (node.style.maxHeight = node.style.height = 'none')")
    shoot(book, "chat", 3)

    book.run(4)
    view = book.output(4).locator(".aios-net")
    expect(view).to_contain_text(f"{len(OTHERS) + 3} nodes")
    shoot(book, "network", 4)


def shoot(book: Notebook, name: str, nr: int) -> None:
    """One cell and what it shows, when nobody works in it."""
    book.activate(0)
    book.page.mouse.move(0, 0)
    book.shot(name, book.cell(nr))


def main() -> int:
    executable = find_browser()
    if executable is None:
        sys.exit(WITHOUT)
    TO.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        network(Path(folder) / "home"),
        workshop(executable, Path(folder) / "lab", SCALE) as chromium,
    ):
        home = Path(folder) / "home"
        kernel = chromium.lab.kernel(home)
        book = Notebook(chromium.page(), chromium.lab, kernel, home, TO, "pictures")
        try:
            book.open(CELLS)
            book.resize(1000, 2000)
            take(book)
        finally:
            book.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
