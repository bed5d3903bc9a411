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
    assert network.evaluate("(node) => node.scrollWidth - node.clientWidth") <= 1
    book.wide()

    bob.stop()
    expect(network).to_contain_text("gone")


PLAIN_HTTP = "Object.defineProperty(navigator, 'clipboard', {value: undefined})"
"""Where a browser gives a page no clipboard."""


def test_a_node_that_is_alone_says_how_others_come(open_notebook):
    book = open_notebook("import aios_nb\naios_nb.up(name='alice')", LOAD, "%aios network")
    book.run_all()
    network = book.output(2).locator(".aios-net")
    expect(network).to_contain_text("No other node yet")
    network.get_by_role("button", name="Copy the line").click()
    expect(network).to_contain_text("copied")
    expect(network).to_contain_text("%aios up --join http://127.0.0.1:")
    book.shot("network-alone", network)
    copy = network.get_by_role("button", name="Copy the line")
    expect(copy).to_have_text("copy")
    book.page.evaluate(PLAIN_HTTP)
    copy.press("Enter")
    expect(copy).to_have_text("copied")
    expect(copy).to_be_focused()
    expect(copy).to_have_text("copy")
    book.page.evaluate("document.execCommand = () => false")
    copy.press("Enter")
    expect(copy).to_have_text("not copied")
    book.reload()
    expect(network).to_contain_text("No other node yet")
    expect(network).to_have_attribute("data-live", "yes")


POINT = """(groups) => {
  const group = groups.find((one) => one.nextElementSibling);  // below another one
  group.dispatchEvent(new PointerEvent("pointerenter"));
  return [!group.nextElementSibling, group.getAnimations().length];
}"""
"""Whether it is above the others then, and how much of it is in motion."""


def test_a_node_that_is_pointed_at_stays_in_sight(open_notebook, make_site):
    for name in ("bob", "carol"):
        make_site(name=name)
    book = open_notebook("import aios_nb\naios_nb.up(name='alice')", LOAD, "%aios network")
    book.page.emulate_media(reduced_motion="no-preference")
    book.run_all()
    network = book.output(2).locator(".aios-net")
    nodes = network.locator('.aios-net-node:not([data-own="yes"])')
    expect(nodes).to_have_count(2)
    expect(network.locator(".aios-net-node.coming")).to_have_count(0)
    assert nodes.evaluate_all(POINT) == [True, 0]


def test_who_allows_or_blocks_a_node_by_keyboard_goes_on_by_keyboard(open_notebook, make_site):
    bob = make_site(name="bob")
    book = open_notebook("import aios_nb\naios_nb.up(name='alice')", LOAD, "%aios network")
    book.run_all()
    network = book.output(2).locator(".aios-net")
    network.get_by_role("button", name="bob").press("Enter")
    network.get_by_role("button", name="Block…").press("Enter")
    expect(network.get_by_role("button", name="Block", exact=True)).to_be_focused()
    book.page.keyboard.press("Enter")
    expect(network).to_contain_text("You blocked it.")
    expect(network.get_by_role("button", name="Allow…")).to_be_focused()

    book.rpc("nodes.allow", node=bob.node.node_id)
    book.page.keyboard.press("Escape")
    node = network.get_by_role("group", name="Nodes").get_by_role("button", name="bob")
    node.press("Enter")
    expect(network.get_by_role("button", name="Block…")).to_be_enabled()
    expect(network).not_to_contain_text("You blocked it.")


def test_a_saved_notebook_has_the_picture(open_notebook, make_site):
    make_site(name="bob")
    book = open_notebook("import aios_nb\naios_nb.up(name='alice')", LOAD, "%aios network")
    book.run_all()
    expect(book.output(2).get_by_role("button", name="bob")).to_be_visible()
    book.run(2)  # they have met: it is the picture of now
    book.save()
    svg = [
        out["data"]["image/svg+xml"]
        for out in book.saved()["cells"][2]["outputs"]
        if "image/svg+xml" in out.get("data", {})
    ]
    assert any("bob" in "".join(one) for one in svg)


def test_on_a_sliver_names_are_shortened_not_left_out(open_notebook, make_site):
    for nr in range(3):
        make_site(name=f"a-machine-with-a-long-name-{nr}")
    book = open_notebook("import aios_nb\naios_nb.up(name='alice')", LOAD, "%aios network")
    book.run_all()
    network = book.output(2).locator(".aios-net")
    nodes = network.get_by_role("group", name="Nodes").get_by_role("button")
    expect(nodes).to_have_count(4)
    network.evaluate("(node) => (node.style.width = '314px')")
    expect(network.locator("svg text").filter(has_text="…").first).to_be_visible()
    book.shot("network-sliver", network)
    expect(network.locator('.aios-net-node[data-named="no"]')).to_have_count(0)
    inside = """(svg) => [...svg.querySelectorAll(".aios-net-node text")].every((text) => {
      const [word, all] = [text.getBoundingClientRect(), svg.getBoundingClientRect()];
      return word.left >= all.left && word.right <= all.right;
    })"""
    stage = network.locator("svg.aios-net-stage").element_handle()
    book.page.wait_for_function(inside, arg=stage)  # they may still walk to their places
