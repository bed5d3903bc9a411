"""What no text of a stranger may leave in a page: anything that runs, loads or misleads."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page

ELEMENTS = ("script", "iframe", "frame", "object", "embed", "base", "meta", "form", "math", "audio")
"""Elements that none of our widgets and displays has a use for."""
FINDINGS = """(root, elements) => {
  const found = [];
  const plain = (text) => text.replace(/[\\u0000-\\u0020]/g, "").toLowerCase();
  const saves = (node) => node.hasAttribute("download") &&
    node.getAttribute("href").startsWith("data:application/octet-stream;");
  for (const node of [root, ...root.querySelectorAll("*")]) {
    const shown = node.cloneNode(false).outerHTML.slice(0, 200);
    if (elements.includes(node.localName)) found.push(`element: ${shown}`);
    for (const { name, value } of node.attributes) {
      const low = name.toLowerCase();
      if (low.startsWith("on") || low === "srcdoc") found.push(`handler: ${shown}`);
      if (/^(javascript|vbscript|data:text|data:image\\/svg|data:application)/.test(plain(value)))
        if (!saves(node)) found.push(`address: ${shown}`);
      if (low === "style" && /url\\(|expression|@import/i.test(value))
        found.push(`style: ${shown}`);
    }
    if (node.localName === "a" && node.hasAttribute("href") && !saves(node)) {
      // ":" is the scheme of what cannot be read as an address, and leads nowhere.
      if (!/^(https?|mailto)?:$/.test(node.protocol)) found.push(`link: ${shown}`);
      if (!node.rel.includes("noopener")) found.push(`opener: ${shown}`);
    }
    if (node.localName === "img" && !/^(data:image\\/(png|jpeg|gif|webp)|blob:)/.test(node.src))
      found.push(`image: ${shown}`);
  }
  const hidden = root.textContent.match(
    /[\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff\\u{e0000}-\\u{e007f}]/u);
  if (hidden) found.push(`hidden character: ${hidden[0].codePointAt(0).toString(16)}`);
  return found;
}"""
GLOBALS = "() => Object.getOwnPropertyNames(window)"


def findings(root: Locator) -> list[str]:
    """What in this part of the page should not be there; empty when all is well."""
    found: list[str] = root.evaluate(FINDINGS, list(ELEMENTS))
    return found


class Window:
    """The page's global names: ``grown`` tells which are new since this was made."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._before: set[str] = self._names()

    def grown(self) -> set[str]:
        return self._names() - self._before

    def _names(self) -> set[str]:
        names: Any = self._page.evaluate(GLOBALS)
        return set(names)
