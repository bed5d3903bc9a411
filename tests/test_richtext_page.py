"""The tree as the page makes elements of it: the widgets' own JavaScript, in Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import aios_nb
from aios_nb.richtext import TAGS, flat, parse, to_data
from tests.hostile.corpus import CORPUS

COMMON = Path(aios_nb.__path__[0]) / "notebook" / "widgets" / "common.js"
PROGRAM = """
const { source, trees } = JSON.parse(require("fs").readFileSync(0, "utf8"));
class Element {
  constructor(tag) { Object.assign(this, { tag, attrs: {}, children: [], handlers: [] }); }
  setAttribute(name, value) { this.attrs[name] = value; }
  addEventListener(name) { this.handlers.push(name); }
  append(...children) { this.children.push(...children); }
  toJSON() { return [this.tag, this.attrs, this.children, this.handlers]; }
  set innerHTML(_) { throw new Error("HTML was parsed"); }
}
const document = { createElement: (tag) => new Element(tag) };
const rich = new Function("document", "navigator", source + "\\n;return rich;")(document, {});
process.stdout.write(JSON.stringify(trees.map((tree) => rich(tree))));
"""
SAFE = {
    *("p", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol"),
    *("li", "a", "br", "hr", "table", "tr", "th", "td", "div", "span"),
}

needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="no Node.js: the page's side of rich text is NOT tested"
)


def elements(*trees: list[Any]) -> list[list[Any]]:
    """What ``rich`` makes of them: texts, and ``[tag, attributes, children, handlers]``."""
    told = json.dumps({"source": COMMON.read_text("utf-8"), "trees": trees})
    ran = subprocess.run(
        ["node", "-e", PROGRAM], input=told, capture_output=True, text=True, check=False
    )
    assert not ran.stderr, ran.stderr
    made: list[list[Any]] = json.loads(ran.stdout)
    return made


def text_of(nodes: list[Any]) -> str:
    """What a reader sees, and what may be done to it."""
    found = ""
    for node in nodes:
        if isinstance(node, str):
            found += node
            continue
        tag, attrs, children, handlers = node
        assert tag in SAFE
        assert not handlers
        assert not [name for name in attrs if name.startswith("on")]
        assert attrs.get("href", "https:").startswith(("http:", "https:", "mailto:"))
        found += "\n" if tag == "br" else text_of(children)
    return found


@needs_node
def test_a_page_shows_every_text_and_runs_none():
    trees = [parse(text) for text in CORPUS.values()]
    made = elements(*map(to_data, trees))
    for name, tree, shown in zip(CORPUS, trees, made, strict=True):
        assert text_of(shown) == flat(tree), name


@needs_node
def test_a_page_knows_every_tag():
    attrs = {"href": "https://a.example", "level": 2, "start": 3, "c": "k", "align": "right"}
    made = elements(*([[tag, attrs, ["x"]]] for tag in sorted(TAGS)))
    plain_spans = [
        tag
        for tag, ((made_tag, made_attrs, _, _),) in zip(sorted(TAGS), made, strict=True)
        if made_tag == "span" and "class" not in made_attrs
    ]
    assert not plain_spans


@needs_node
def test_a_page_does_not_believe_a_tree_from_elsewhere():
    tree = [
        ["script", {}, ["a"]],
        ["a", {"href": "javascript:x"}, ["b"]],
        ["tok", {"c": '"><x'}, ["c"]],
        ["pre", {"lang": '"><x'}, ["d"]],
        ["h", {"level": "9"}, ["e"]],
        ["ol", {"start": "x"}, [["li", {}, ["f"]]]],
        ["td", {"align": "right;background:url(x)"}, ["g"]],
    ]
    (made,) = elements(tree)
    assert text_of(made) == "abcdefg"
    assert "url" not in json.dumps([node[1] for node in made])
