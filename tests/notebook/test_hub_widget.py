"""AgentHub without a page: what it would show, over real nodes; and the widget around it."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aios_nb.agents.definition import Definition, describe
from aios_nb.notebook.widgets import hub as module
from aios_nb.notebook.widgets.browse import PAGE_ROWS, ROWS_MAX, Browser, Question
from aios_nb.notebook.widgets.cards import changes, facts
from aios_nb.notebook.widgets.chat import AgentChat
from aios_nb.notebook.widgets.hub import AgentHub, as_html, as_text
from tests.notebook.hosts import Switch
from tests.sites import TestSite

CEILING_S = 40.0
Make = Callable[..., TestSite]
NASTY = "<img src=x onerror=alert(1)> \u202eevil\u200b <script>alert(2)</script>"


def works(name: str, about: str = "", **card: Any) -> Definition:
    async def answer(text: str) -> str:
        return f"{name} has {text}"

    return describe(answer, name=name, about=about or f"{name} answers", **card)


class Watched:
    """A browser of one node, and what it tells, in order."""

    def __init__(self, site: TestSite, *, follow: bool = True) -> None:
        self.site = site
        self.told: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.browser: Browser = site.on_loop(lambda: Browser(site.node.client, self.told.put))
        if follow:
            self.following = site.node.loop.submit(self.browser.follow())

    def ask(self, words: str = "", **more: Any) -> dict[str, Any]:
        """The page that comes of a question."""
        self.site.node.run(lambda: self.browser.ask(Question(words, **more)))
        return self.told_of("page", lambda message: message["words"] == words)

    def told_of(
        self, kind: str, wanted: Callable[[dict[str, Any]], Any] = lambda _: True
    ) -> dict[str, Any]:
        """The next message of a kind that is this."""
        while True:
            message = self.told.get(timeout=CEILING_S)
            if message["type"] == kind and wanted(message):
                return message

    def shows(self, name: str, **fields: Any) -> dict[str, Any]:
        """The row of that agent, once it is on the page like this."""
        while True:
            for row in self.browser.page["rows"]:
                if row["name"] == name and fields.items() <= row.items():
                    return dict(row)
            self.told.get(timeout=CEILING_S)

    def shows_no(self, name: str) -> None:
        while name in names(self.browser.page):
            self.told.get(timeout=CEILING_S)


def names(page: dict[str, Any]) -> list[str]:
    return [row["name"] for row in page["rows"]]


@pytest.fixture
def pair(make_site: Make) -> tuple[TestSite, TestSite]:
    """Two nodes of one home, which find each other."""
    bob = make_site(works("adder", "Adds numbers.", tags=["math"], version="1"), name="bob")
    return make_site(works("own", "Mine.", version="4"), name="alice"), bob


# Asking ---------------------------------------------------------------------------------------


def test_rows_answer_who_what_and_whether_to_trust_it(pair: tuple[TestSite, TestSite]) -> None:
    alice, bob = pair
    hub = Watched(alice)
    hub.ask()
    theirs = hub.shows("adder", node_name="bob")

    own = hub.shows("own")
    assert (own["mine"], own["version"]) == (True, "4")
    assert (theirs["mine"], theirs["verified"], theirs["live"]) == (False, True, True)
    assert theirs["node"] == bob.node.node_id
    assert theirs["tags"] == ["math"]
    counted = {"nodes": 2, "agents": 7, "here": 6, "mine": 1}  # five came along
    while not counted.items() <= hub.browser.around.items():
        hub.told_of("around")
    assert hub.ask("adder")["rows"][0]["why"] == "exact name"


def test_mine_is_what_the_person_offers_and_not_what_every_node_comes_with(
    make_site: Make,
) -> None:
    hub = Watched(make_site(works("own"), works("sum")), follow=False)
    everyone = {row["name"]: row["built_in"] for row in hub.ask()["rows"]}
    mine = hub.ask("", only="mine")

    assert [name for name, built_in in everyone.items() if not built_in] == ["own", "sum"]
    assert everyone["calc"]
    assert (names(mine), mine["total"]) == (["own", "sum"], hub.browser.around["mine"])
    assert names(hub.ask("", only="mine", first=1)) == ["sum"]
    assert names(hub.ask("calc", only="mine")) == []
    assert "built in" in as_html(hub.ask("name:calc"))


def test_of_many_agents_a_page_has_no_more_rows_than_fit(make_site: Make) -> None:
    site = make_site(*(works(f"agent{nr:03}") for nr in range(260)))
    hub = Watched(site, follow=False)

    first = hub.ask()
    assert (len(first["rows"]), first["total"]) == (PAGE_ROWS, 265)
    assert len(hub.ask(count=ROWS_MAX)["rows"]) == ROWS_MAX
    rest = hub.ask(first=ROWS_MAX, count=ROWS_MAX)
    assert (len(rest["rows"]), rest["first"]) == (65, ROWS_MAX)
    named = hub.ask("name:agent", count=ROWS_MAX)
    assert (len(named["rows"]), named["total"]) == (ROWS_MAX, 260)
    assert hub.ask(first=5000)["first"] == 0  # there is nobody so far behind
    asked = Question.read({"words": "x" * 9999, "count": 10**9, "first": -5, "only": "no"})
    assert (asked.count, asked.first, asked.only) == (ROWS_MAX, 0, "all")


def test_the_last_question_wins(make_site: Make) -> None:
    site = make_site(works("adder", "Adds numbers."))
    hub = Watched(site, follow=False)

    async def type_fast() -> None:
        asked = [hub.browser.ask(Question(words)) for words in ("a", "ad", "adder")]
        await asyncio.gather(*asked)

    site.node.run(type_fast)
    told = [hub.told.get(timeout=CEILING_S)]
    while not hub.told.empty():
        told.append(hub.told.get())
    assert [message["words"] for message in told if message["type"] == "page"] == ["adder"]


def test_without_a_match_near_ones_are_offered(make_site: Make) -> None:
    site = make_site(works("adder", "Adds numbers.", tags=["math"]))
    hub = Watched(site, follow=False)
    hub.ask()  # so that names are known

    wider = hub.ask("adder tag:cooking")
    assert (wider["rows"], wider["near"]["kind"]) == ([], "wider")
    assert names(wider["near"]) == ["adder"]
    quoted = hub.ask('adder tag:"of two words"')["near"]
    assert (quoted["kind"], quoted["words"]) == ("wider", "adder")
    misspelt = hub.ask("tag:xxadderxx conzierrge")["near"]
    assert (misspelt["kind"], names(misspelt)) == ("wider", ["concierge"])
    assert names(hub.ask("name:conzierrge")["near"]) == []
    assert hub.ask("qqqwwwzzz")["near"] == {"kind": "alike", "rows": []}


# Following ------------------------------------------------------------------------------------


def test_rows_come_change_and_go_while_one_looks(pair: tuple[TestSite, TestSite]) -> None:
    alice, bob = pair
    hub = Watched(alice)
    hub.ask()
    hub.shows("adder")

    bob.node.host(works("adder", "Adds and subtracts.", version="1"))
    hub.shows("adder", about="Adds and subtracts.")
    bob.node.host(works("newcomer"))
    hub.shows("newcomer")
    bob.node.withdraw("adder")
    assert hub.told_of("gone")["id"].startswith("adder@")
    hub.shows_no("adder")


def test_the_following_ends_with_the_node(
    make_site: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    site = make_site()
    hub = Watched(site)
    hub.ask()
    site.stop()

    assert hub.following.cancelled() or hub.following.exception(CEILING_S) is None
    assert not caplog.records


def test_a_card_that_changed_since_it_was_used_is_shown_word_by_word(
    pair: tuple[TestSite, TestSite],
) -> None:
    alice, bob = pair
    hub = Watched(alice)
    hub.ask()
    agent = hub.shows("adder")["id"]
    alice.call("chat.send", agent=agent, text="hello")
    hub.shows("adder", talks=1, changed=False)
    bob.node.host(works("adder", "Adds large numbers.", tags=["math"], version="2"))
    hub.shows("adder", talks=1, changed=True)

    card = alice.node.run(lambda: hub.browser.card(agent))
    assert card["verified"]
    assert card["facts"]["about"] == "Adds large numbers."
    found = {change["field"]: change["parts"] for change in card["changes"]}
    assert found == {
        "What it does": [["=", "Adds "], ["+", "large "], ["=", "numbers."]],
        "Version": [["-", "1"], ["+", "2"]],
    }
    alice.call("chat.send", agent=agent, text="hello")
    hub.shows("adder", talks=2, changed=False)
    assert alice.node.run(lambda: hub.browser.card(agent))["changes"] == []


def test_a_card_whose_node_is_away_says_so(make_site: Make) -> None:
    site = make_site()
    hub = Watched(site, follow=False)

    card = site.node.run(lambda: hub.browser.card("nobody@" + "a" * 32))
    assert card["problem"].startswith("the node of nobody")


# Texts of strangers ---------------------------------------------------------------------------


def test_what_strangers_write_is_text_everywhere(make_site: Make) -> None:
    site = make_site(works("nasty", NASTY, title=NASTY, tags=["<b>"], examples=[NASTY]))
    hub = Watched(site, follow=False)
    page = hub.ask("name:nasty")

    said = str(page) + str(site.node.run(lambda: hub.browser.card("nasty")))
    assert "\u202e" not in said
    assert "\u200b" not in said
    shown = as_html(page)
    assert "<img" not in shown
    assert "<script" not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown
    assert "nasty  this node" in as_text(page)  # which is no notebook's: there is no kernel


def test_a_card_with_anything_in_it_is_read_in_bounds() -> None:
    read = facts({"about": "x" * 9999, "examples": ["y" * 999] * 99, "tags": [1], "title": None})

    assert (len(read["about"]), len(read["examples"]), read["tags"]) == (4000, 8, ["1"])
    assert changes(None, {}) == []
    assert changes({"changed": True, "said": None}, {"about": "a"})[0]["field"].startswith("Other")


# The widget -----------------------------------------------------------------------------------


class Page:
    """The other end of a widget: what arrives there, and what it says."""

    def __init__(self, hub: AgentHub, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hub = hub
        self.heard: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        monkeypatch.setattr(hub, "send", self._take)

    def _take(self, batch: dict[str, Any], buffers: Any = None) -> None:
        for message in batch["messages"]:
            self.heard.put(message)

    def say(self, **message: Any) -> None:
        self.hub._handle_custom_msg(message, [])

    def until(self, kind: str, **fields: Any) -> dict[str, Any]:
        while True:
            message = self.heard.get(timeout=CEILING_S)
            if message["type"] == kind and fields.items() <= message.items():
                return message


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[AgentHub, Page]]]:
    hubs: list[AgentHub] = []

    def make(host: Switch, query: str = "") -> tuple[AgentHub, Page]:
        hubs.append(AgentHub(host, query))
        return hubs[-1], Page(hubs[-1], monkeypatch)

    yield make
    for each in hubs:
        each.close()


def test_a_page_that_opens_is_told_all_and_may_ask(
    make_site: Make, opened: Callable[..., tuple[AgentHub, Page]]
) -> None:
    site = make_site(works("adder", "Adds numbers."))
    hub, page = opened(Switch(site.node, "starting"), "adder")
    page.say(type="hello", view="v1", nr=1)
    page.until("ack", nr=1)
    assert page.until("welcome")["own"] == {"node": site.node.node_id, "name": "test"}
    assert names(page.until("page", words="adder"))[0] == "adder"

    page.say(type="look", view="v1", ask=7, words="tells the time", only="all", first=0, count=50)
    answer = page.until("page", ask=7, view="v1")
    assert names(answer)[0] == "clock"
    page.say(type="card", agent="clock")
    assert page.until("card", agent="clock")["facts"]["examples"][0] == "now"
    page.say(type="card", agent="nobody")
    assert "no such agent" in page.until("card", agent="nobody")["problem"]
    page.say(type="nonsense")
    hub.close()


def test_a_node_that_starts_stops_and_starts_again_is_followed(
    make_site: Make, opened: Callable[..., tuple[AgentHub, Page]]
) -> None:
    host = Switch(why="starting")
    _, page = opened(host)
    page.say(type="hello", view="v")
    assert page.until("offline")["problem"] == "starting"
    site = make_site(works("first"))
    host.turn(site.node)
    assert "first" in names(page.until("page"))
    host.turn(None)
    page.until("offline")
    site.stop()
    host.turn(make_site(works("second"), name="other").node)

    assert "second" in names(page.until("page"))


def test_chat_opens_inside_and_is_kept_for_the_next_time(
    make_site: Make,
    opened: Callable[..., tuple[AgentHub, Page]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = make_site()
    hub, page = opened(Switch(site.node, "starting"))
    made: list[str] = []
    shown: queue.SimpleQueue[str] = queue.SimpleQueue()
    hub.observe(lambda change: shown.put(change["new"]), "chat")
    make_chat = module._make_chat
    monkeypatch.setattr(
        module, "_make_chat", lambda host, agent: (made.append(agent), make_chat(host, agent))[1]
    )
    for agent in ("clock", "calc", "clock"):
        page.say(type="chat", agent=f"{agent}@{site.node.node_id}")
    first, second, third = (shown.get(timeout=CEILING_S) for _ in range(3))
    page.say(type="chat", agent=f"clock@{site.node.node_id}")
    page.until("chat")  # it is open: who asked may write in it
    hub.set_state({"chat": ""})  # as the page closes it

    assert first.startswith("anywidget:")
    assert (first == third, first == second) == (True, False)
    assert shown.get(timeout=CEILING_S) == ""
    assert [agent.partition("@")[0] for agent in made] == ["clock", "calc"]


def test_a_chat_that_is_made_while_its_hub_is_closed_is_closed_too(
    make_site: Make,
    opened: Callable[..., tuple[AgentHub, Page]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = make_site()
    host = Switch(site.node, "starting")
    hub, page = opened(host)
    begun, goes_on = threading.Event(), threading.Event()
    made: list[AgentChat] = []
    make_chat = module._make_chat

    def slowly(host: Switch, agent: str) -> AgentChat:
        made.append(make_chat(host, agent))
        begun.set()
        goes_on.wait(CEILING_S)
        return made[0]

    monkeypatch.setattr(module, "_make_chat", slowly)
    page.say(type="chat", agent="clock")
    assert begun.wait(CEILING_S)
    hub.close()
    goes_on.set()
    closed(made[0])
    assert host.told == []


def closed(chat: AgentChat) -> None:
    """Wait until it is."""
    ceiling = time.monotonic() + CEILING_S
    while not chat.closed:
        assert time.monotonic() < ceiling
        time.sleep(0.01)


def test_who_has_no_widgets_sees_a_table(
    make_site: Make, opened: Callable[..., tuple[AgentHub, Page]]
) -> None:
    site = make_site(works("adder", "Adds numbers."))
    hub, _ = opened(Switch(site.node, "starting"), "adds numbers")
    bundle, _ = hub._repr_mimebundle_()
    waiting, _ = opened(Switch(why="starting"))

    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "adder" in bundle["text/plain"]
    assert '<td><span class="k"><b>adder</b>' in bundle["text/html"]  # its letters keep together
    assert "✓ yours" in bundle["text/html"]
    assert "not running: starting" in waiting._repr_mimebundle_()[0]["text/plain"]
