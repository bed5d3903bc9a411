"""``%aios hub add`` and what follows, in a real shell with a real node and a real program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from aios_nb.agents.definition import describe
from aios_nb.errors import UsageError
from aios_nb.notebook.parser import COMMANDS, parse
from aios_nb.notebook.widgets.browse import Browser, Question
from aios_nb.site import Import
from tests.notebook.consoles import Console, console
from tests.notebook.test_completion import eventually, tab
from tests.sites import TestSite


async def tides(text: str) -> str:
    """Knows the tides."""
    return f"high at {text}"


async def evil(text: str) -> str:
    """Wants <script>alert(1)</script> your files."""
    return f"now: {text}"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with console(tmp_path_factory.mktemp("guests")) as made:
        yield made


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestSite]:
    home = tmp_path_factory.mktemp("theirs")
    site = TestSite(home, [describe(tides, access="public")], name="b", network="elsewhere")
    yield site
    site.stop()


def given(line: str) -> tuple[str, dict[str, Any]]:
    parsed = parse(line)
    return parsed.command.name, {key: value for key, value in parsed.values.items() if value}


def test_hub_is_the_widget_unless_a_word_behind_it_says_more():
    url = "https://a.example/mcp"
    assert given("hub") == ("hub", {})
    assert given("hub sum up numbers") == ("hub", {"words": "sum up numbers"})
    assert given('hub "add numbers"') == ("hub", {"words": "add numbers"})
    assert given("hub adding") == ("hub", {"words": "adding"})
    assert given("hub list") == ("hub list", {})
    assert given(f"hub add {url} --name x --local") == (
        "hub add",
        {"url": url, "name": "x", "local": True},
    )
    assert given("hub add --kind mcp -- npx -y 'a b' --local") == (
        "hub add",
        {"kind": "mcp", "command": "npx -y 'a b' --local"},
    )
    for wrong in (f"hub add {url} {url}", "hub add --locl x", "hub approve", "hub add --kind tcp"):
        with pytest.raises(UsageError):
            parse(wrong)


def test_a_program_is_brought_in_asked_reviewed_and_forgotten(page: Console, theirs: TestSite):
    added = page.good(f"%aios hub add {theirs.node.url}/agents/tides/ --local")
    assert isinstance(added.value, Import)
    assert "tides is here: Tides, an A2A agent; not verified, for you alone" in added.text
    again = page.good(f"%aios hub add {theirs.node.url}/agents/tides/ --local")
    assert again.text == added.text
    assert page.good("%aios ask tides six").value == "high at six"
    eventually(page, "%aios hub approve t", "%aios hub approve tides")

    theirs.node.host(describe(evil, name="tides", access="public"))
    shown = page.good("%aios hub refresh")
    assert "changed since you approved it" in shown.text
    assert "<script>" not in shown.html
    assert "&lt;script&gt;" in shown.html
    assert "→ %aios hub approve tides" in shown.html
    assert "%aios hub approve tides" in page.good("%aios agents").html
    assert "Wants" in page.good("%aios card tides").text
    assert "⚠ changed since you approved it" in page.good("%aios search tides").html
    blocked = page.error("%aios ask tides six")
    assert "tides is not what was approved any more" in blocked
    assert "`%aios hub approve tides`" in blocked

    assert page.good("%aios hub approve tides").text == "tides is taken as it is now"
    assert page.good("%aios ask tides six").value == "now: six"
    page.good("%aios hub remove tides")
    assert "%aios hub add URL" in page.good("%aios hub list").text
    listed = page.good(f"%aios hub import {theirs.node.url} --local")
    assert f"%aios hub add {theirs.node.url}/mcp" in listed.text


def test_what_cannot_be_meant_is_said_in_one_line(page: Console):
    assert "needs a URL, or a command behind --" in page.error("%aios hub add")
    assert '%aios hub "add numbers"' in page.error("%aios hub add numbers")
    assert "--local" in page.error("%aios hub add http://127.0.0.1:1/")
    assert "no import 'x'" in page.error("%aios hub approve x")
    assert "cannot be read" in page.error("%aios hub add -- npx 'half")


def test_tab_knows_the_words_behind_hub(page: Console):
    words = [name.partition(" ")[2] for name in COMMANDS if name.startswith("hub ")]
    assert tab(page, "%aios hub ") == [f"%aios hub {word}" for word in words]
    assert tab(page, "%aios hub li") == ["%aios hub list"]
    assert tab(page, "%aios hub add --ki") == ["%aios hub add --kind"]
    assert tab(page, "%aios hub add --kind ") == [
        "%aios hub add --kind mcp",
        "%aios hub add --kind a2a",
    ]
    assert tab(page, "%aios help hub ap") == ["%aios help hub approve"]
    assert "%aios hub approve NAME" in page.good("%aios help hub approve").text


def test_the_hub_widget_shows_what_changed_and_approves_what_was_shown(
    page: Console, theirs: TestSite
):
    theirs.node.host(describe(tides, name="tides", access="public"))
    page.node.hub_add(f"{theirs.node.url}/agents/tides/", local=True)
    theirs.node.host(describe(evil, name="tides", access="public"))
    page.node.hub_refresh("tides")
    agent = f"tides@{page.node.node_id}"

    async def reviewed() -> tuple[Any, Any, Any]:
        browser = Browser(page.node.client, lambda _: None)
        rows = (await browser.look(Question("tides")))["rows"]
        card = await browser.card(agent)
        await browser.approve(agent, card["outside"]["pin"])
        after = (await browser.look(Question("tides")))["rows"]
        return rows[0], card["outside"], after[0]

    row, outside, after = page.node.run(reviewed)
    assert (row["source"], row["verified"], row["changed"]) == ("a2a", False, True)
    assert "Wants <script>" in " ".join(outside["differences"])
    assert outside["place"].startswith(theirs.node.url)
    assert not after["changed"]
    page.node.hub_remove("tides")
