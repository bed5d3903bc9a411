"""What the widgets' scripts call is somewhere: in the script itself, or in every browser."""

from __future__ import annotations

import re

import pytest

from aios_nb.notebook.widgets.chat import AgentChat
from aios_nb.notebook.widgets.hub import AgentHub
from aios_nb.notebook.widgets.network import NetworkView

BROWSERS = """() => {
  const names = new Set();
  const look = (one) => one && Object.getOwnPropertyNames(one).forEach((name) => names.add(name));
  look(window);
  for (const name of [...names]) {
    const { value } = Object.getOwnPropertyDescriptor(window, name) || {};
    if (typeof value === "function") [value, value.prototype].forEach(look);
  }
  [Math, JSON].forEach(look);
  return [...names];
}"""
ANYWIDGETS = {"get", "set", "on", "off", "send"}
"""Methods of a model."""
COMMENT = re.compile(r"^\s*//.*$|/\*.*?\*/", re.MULTILINE | re.DOTALL)
CALLED = re.compile(r"(?:\.|(?<![\w.$'\"-]))(\w+)\(")
MADE = re.compile(
    r"^ +(?:async |get )?(\w+)\(.*\) \{$"  # a method
    r"|^(?:async )?function (\w+)"
    r"|(?<![\w.])(\w+)(?=\s*[=,:)]|\}| of )",  # a variable, a parameter, a key
    re.MULTILINE,
)
WORDS = {"if", "for", "while", "switch", "catch", "function", "return", "constructor", "super"}


@pytest.mark.parametrize("widget", [AgentChat, AgentHub, NetworkView])
def test_what_a_script_calls_is_there(browser, widget):
    page = browser.page()
    everywhere = set(page.evaluate(BROWSERS))
    page.close()
    script = COMMENT.sub("", widget._esm)
    made = {name for found in MADE.findall(script) for name in found if name}
    known = made | everywhere | ANYWIDGETS | WORDS
    assert set(CALLED.findall(script)) - known == set()
