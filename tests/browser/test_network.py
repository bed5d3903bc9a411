"""The network as a picture: who is there, linked how, and who has gone."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.chats import LOAD


def test_two_nodes_are_in_the_picture(open_notebook, make_site):
    bob = make_site(name="bob")
    book = open_notebook("import aios_nb\naios_nb.up(name='alice')", LOAD, "%aios network")
    book.run_all()
    network = book.output(2).locator(".aios-net")
    nodes = network.get_by_role("group", name="Nodes").get_by_role("button")
    expect(nodes).to_have_count(2)
    expect(network.get_by_role("button", name=re.compile("alice.*this node"))).to_be_visible()
    other = network.get_by_role("button", name="bob")
    expect(other).to_be_visible()
    book.shot("network-light", network)

    other.focus()
    other.press("Enter")
    expect(network.get_by_role("complementary", name="The chosen node")).to_contain_text("bob")
    book.shot("network-chosen", network)
    network.get_by_role("button", name="table").click()
    expect(network.get_by_role("region", name="Nodes as a table")).to_contain_text("bob")
    book.dark()
    book.shot("network-table-dark", network)
    network.get_by_role("button", name="links").click()
    book.shot("network-dark", network)
    book.light()
    book.narrow()
    book.shot("network-narrow", network)
    assert network.evaluate("(node) => node.scrollWidth - node.clientWidth") <= 0
    book.wide()

    bob.stop()
    expect(network).to_contain_text("gone")
    book.save()
    svg = [
        out["data"]["image/svg+xml"]
        for out in book.saved()["cells"][2]["outputs"]
        if "image/svg+xml" in out.get("data", {})
    ]
    assert any("bob" in "".join(one) for one in svg)
