"""A chat in a page of its own, without JupyterLab: what Python says to it comes from the test."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page, Route

from aios_nb.notebook.widgets.chat import AgentChat
from tests.browser.browser import Chromium

WHERE = "http://chat.test/"
AGENT = {"id": "echo@here", "name": "echo", "state": "alive", "node": "", "about": ""}
HEAD = {
    "place": 0,
    "agent": {**AGENT, "ours": True, "examples": []},
    "also": [],
    "home": "here",
    "conversation": "c-1",
    "title": "",
    "called": "",
    "ready": True,
}
BEGIN = """
class Model {
  constructor(name) {
    this.name = name;
    this.said = [];
    this.pages = [];
    this.batches = 0;
    this.mute = false;
  }
  get(key) { return { line: this.name, saved: {}, resting: false }[key]; }
  on(kind, listener) { if (kind === "msg:custom") this.pages.push(listener); }
  send(message) {
    this.said.push(message);
    if (!this.mute) queueMicrotask(() => this.tell({ type: "ack", nr: message.nr }));
  }
  tell(...messages) {
    const batch = { type: "batch", n: ++this.batches, messages };
    for (const page of this.pages) page(batch, []);
  }
}
window.model = new Model("a line");
widget.initialize({ model });
window.leave = widget.render({ model, el: document.body });
"""
"""The widget as JupyterLab shows it; in place of its model, one that keeps what was said."""


AT = "2026-01-01T12:00:00Z"
ME = {"id": "owner@here", "name": "you", "mine": True}
WHO = {"id": AGENT["id"], "name": AGENT["name"], "agent": True}


def mine(item: str, text: str, order: int = 1, **more: Any) -> dict[str, Any]:
    """A message of the person."""
    return {**_item(item, text, order), "who": ME, **more}


def theirs(item: str, text: str, order: int = 2, **more: Any) -> dict[str, Any]:
    """A message of the agent."""
    return {**_item(item, text, order), "who": WHO, **more}


def _item(item: str, text: str, order: int) -> dict[str, Any]:
    blocks = [["p", {}, [text]]]
    return {"id": item, "text": text, "blocks": blocks, "at": AT, "order": [order, 0, 0]}


class BareChat:
    """The chat and what it says to Python."""

    def __init__(self, browser: Chromium, *items: dict[str, Any], **head: Any) -> None:
        self.page: Page = browser.page()
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.route("**/*", _empty)
        self.head = {**HEAD, **head}
        self.items = list(items)
        self.show()
        self.message: Locator = self.page.get_by_label("Message", exact=True)
        self.keys = self.page.keyboard

    def show(self) -> None:
        """Load the page, or load it again."""
        self.page.goto(WHERE)
        self.page.add_style_tag(content=AgentChat._css)
        script = AgentChat._esm.replace("export default", "const widget =")
        self.page.evaluate(f"() => {{ {script}\n{BEGIN} }}")
        self.tell({"type": "state", "head": self.head, "items": self.items})

    def tell(self, *messages: dict[str, Any]) -> None:
        """What Python says."""
        self.page.evaluate("(messages) => model.tell(...messages)", messages)

    def mute(self) -> None:
        """Python says by itself no more that it has heard something."""
        self.page.evaluate("() => { model.mute = true }")

    def turn(self, **head: Any) -> None:
        """The head is another one now."""
        self.head |= head
        self.tell({"type": "head", "head": self.head})

    def said(self, *kinds: str) -> list[dict[str, Any]]:
        """What was said to Python, of these kinds."""
        said: list[dict[str, Any]] = self.page.evaluate("() => model.said")
        return [message for message in said if message["type"] in kinds]

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)


def _empty(route: Route) -> None:
    route.fulfill(content_type="text/html", body="<!doctype html><title>chat</title>")
