"""The network view: where nodes are drawn, what pages are told of real nodes, and the picture."""

from __future__ import annotations

import asyncio
import math
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aios_nb.agents.definition import Definition, describe
from aios_nb.errors import NotRunning
from aios_nb.notebook.widgets import graph, network
from aios_nb.notebook.widgets.network import NetworkView
from aios_nb.notebook.widgets.rates import GAP_S, Rates, rounded
from tests.notebook.hosts import Switch
from tests.sites import TestSite

CEILING_S = 40.0
HOSTILE = "<img src=x onerror=alert(1)>\"'&]]>--><script>\u202e\x00\x1b[2J"


def peer(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "node_id": f"{number:032}",
        "name": f"n{number}",
        "url": "http://127.0.0.1:9",
        "state": "alive",
        "latency_ms": 1.0 + number,
        "link": False,
        "agents": 0,
        "sent": 0,
        "received": 0,
        **fields,
    }


# Where nodes are -------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 7, 31, 120, graph.SHOWN_MAX])
def test_nobody_stands_on_another_or_outside(count: int):
    where = ["http://127.0.0.1:9", "http://192.168.0.7:9", "https://example.org", "", "http://["]
    rows = [peer(n, url=where[n % 5], link=n % 9 == 0) for n in range(count)]
    places = graph.Layout().place(rows)
    assert places.keys() == {row["node_id"] for row in rows}
    assert all(math.hypot(x, y) < 1 for x, y in places.values())
    spots = list(places.values())
    apart = min(
        (math.dist(one, other) for i, one in enumerate(spots) for other in spots[:i]), default=1
    )
    assert apart > 0.35 / math.sqrt(count), apart


def test_the_linked_are_in_the_middle_and_the_far_outside():
    rows = [
        peer(1, link=True, url="https://example.org"),
        peer(2),
        peer(3, url="http://10.0.0.2:80"),
        peer(4, url="https://example.org"),
        peer(5, url=""),
    ]
    layout = graph.Layout()
    places = layout.place(rows)
    away = [math.hypot(*places[row["node_id"]]) for row in rows]
    assert away == sorted(away)
    assert [ring.label for ring in layout.rings] == list(graph.ZONES)
    edges = [ring.radius for ring in layout.rings]
    assert all(here < edge for here, edge in zip(away, edges, strict=True))


def test_a_node_stays_where_it_is_while_others_come_and_go():
    layout = graph.Layout()
    rows = [peer(n) for n in range(20)]
    before = layout.place(rows)
    assert before == graph.Layout().place(rows), "the same nodes have the same places"

    fewer = [row for row in rows if row["node_id"] not in {rows[3]["node_id"], rows[9]["node_id"]}]
    after = layout.place([*fewer, peer(100), peer(101)])
    assert {node_id: after[node_id] for node_id in after if node_id in before} == {
        row["node_id"]: before[row["node_id"]] for row in fewer
    }
    assert after[peer(100)["node_id"]] == before[rows[3]["node_id"]], "a free place is taken first"


def test_of_a_few_nobody_moves_when_one_leaves():
    layout = graph.Layout()
    rows = [peer(n) for n in range(3)]
    before = layout.place(rows)
    del before[rows.pop(0)["node_id"]]
    assert layout.place(rows) == before


def test_one_that_gets_a_link_goes_to_the_middle_and_the_others_hardly_turn():
    layout = graph.Layout()
    rows = [peer(n, link=n < 2) for n in range(10)]
    before = layout.place(rows)
    rows[7]["link"] = True
    after = layout.place(rows)
    inner = layout.rings[0].radius
    assert math.hypot(*after[rows[7]["node_id"]]) < inner < math.hypot(*before[rows[7]["node_id"]])
    for row in rows[:7] + rows[8:]:
        assert after[row["node_id"]] == before[row["node_id"]]


def test_of_many_the_nearest_are_shown_and_the_page_says_so():
    rows = [peer(n, latency_ms=None if n % 2 else 5.0) for n in range(1203)]
    rows[1200] |= {"link": True}
    rows[0] |= {"state": "dead"}
    shown = graph.nearest(rows)
    assert len(shown) == graph.SHOWN_MAX
    assert shown[0] is rows[1200]
    assert rows[0] not in shown
    assert all(row["latency_ms"] for row in shown)
    assert graph.showing(len(rows)) == "showing 300 of 1,203, the nearest"
    assert graph.showing(300) == ""
    states = {"nodes": 1204, "alive": 1203, "not answering": 0, "gone": 1}
    assert graph.counts(rows) == states
    assert graph.summary(states, 2150) == "1,204 nodes · 1,203 alive · 1 gone · 2.1 KB/s gossip"
    assert graph.summary(graph.counts([])) == "1 node"


def test_bytes_a_second_come_from_counters_and_begin_anew_after_a_pause():
    rates = Rates()
    assert rates.look(0, {"a": 1000}) == {}
    assert rates.look(2, {"a": 3000, "b": 50}) == {"a": 1000, "b": 0}
    assert 0 < rates.look(3, {"a": 3000, "b": 50})["a"] < 1000
    assert next(iter(rates.past)) == 1000
    assert rates.look(3 + GAP_S + 1, {"a": 9000}) == {}
    assert not rates.past
    assert rates.look(20, {"a": 10}) == {"a": 0}, "a node that started again"
    assert [rounded(rate) for rate in (0.4, 3.14, 41.7, 2049.0)] == [0, 3, 42, 2000]


# The picture without a page --------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 2, 400])
def test_the_picture_is_well_formed_and_has_every_node_once(count: int):
    rows = [
        peer(n, link=n < 3, agents=n, state="suspect" if n == 5 else "alive") for n in range(count)
    ]
    drawn = ET.fromstring(graph.draw("me", rows))
    dots = drawn.findall("{*}circle")
    assert len(dots) == min(count, graph.SHOWN_MAX) + 1
    assert len(drawn.findall("{*}line")) == min(count, 3), "only our own links"
    words = "".join(drawn.itertext())
    assert graph.summary(graph.counts(rows)) in words
    assert ("no other node yet" in words) == (count == 0)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_no_name_stands_on_a_line_and_a_long_one_says_that_it_goes_on(count: int):
    rows = [peer(n, name=f"a-very-long-name-of-a-machine-{n}", link=True) for n in range(count)]
    drawn = ET.fromstring(graph.draw("texts-twyjlr", rows, title=False))
    texts = {text: text.text or "" for text in drawn.findall("{*}text")}
    ours = [text for text, said in texts.items() if said == "texts-twyjlr (you)"]
    theirs = [text for text, said in texts.items() if said.startswith("a-ver")]
    assert (len(ours), len(theirs)) == (1, count)
    assert all(texts[text].endswith("…") for text in theirs)
    for text in [*ours, *theirs]:
        assert not any(_touches(line, text) for line in drawn.findall("{*}line")), texts[text]


def _touches(line: ET.Element, text: ET.Element) -> bool:
    """Whether one of many points of the line is on the letters."""
    wide = 6.1 * len(text.text or "")
    left = float(text.get("x", 0)) - {"start": 0, "middle": wide / 2}.get(
        text.get("text-anchor", ""), wide
    )
    top = float(text.get("y", 0)) - 10
    x1, y1, x2, y2 = (float(line.get(key, 0)) for key in ("x1", "y1", "x2", "y2"))
    points = ((x1 + (x2 - x1) * n / 500, y1 + (y2 - y1) * n / 500) for n in range(501))
    return any(left < x < left + wide and top < y < top + 12 for x, y in points)


def test_names_in_the_picture_are_text_and_nothing_else():
    rows = [peer(n, name=HOSTILE, link=True) for n in range(3)]
    for title in (True, False):
        drawn = ET.fromstring(graph.draw(HOSTILE, rows, title=title))
        tags = {element.tag.rpartition("}")[2] for element in drawn.iter()}
        assert tags <= {"svg", "rect", "ellipse", "line", "circle", "title", "text"}
        attributes = {name for element in drawn.iter() for name in element.attrib}
        assert not {name for name in attributes if name.startswith("on") or "href" in name}
        words = "".join(drawn.itertext())
        assert "<img src=x" in words
        assert not set("\u202e\x00\x1b") & set(words)


# What pages are told ---------------------------------------------------------------------------


class Page(NetworkView):
    """A view whose page is this test."""

    def __init__(self, host: Switch) -> None:
        self.heard: list[dict[str, Any]] = []
        self.rows: dict[str, dict[str, Any]] = {}
        super().__init__(host)

    def send(self, content: Any, buffers: Any = None) -> None:
        for message in content["messages"]:
            if message["type"] == "picture":
                kept = {} if message["whole"] else self.rows
                kept = {key: row for key, row in kept.items() if key not in message["gone"]}
                self.rows = {**kept, **{row["id"]: dict(row) for row in message["rows"]}}
                for node_id, flow in message["flows"].items():
                    names = ("sent", "received", "rate")
                    self.rows[node_id] |= dict(zip(names, flow, strict=True))
            self.heard.append(message)

    def say(self, **message: Any) -> None:
        self._heard(self, {"view": "p", **message}, [])

    def await_(self, kind: str, holds: Callable[[Any], Any] = lambda _: True) -> dict[str, Any]:
        """The next message of this kind for which that holds."""
        self.until(lambda: any(m["type"] == kind and holds(m) for m in self.heard))
        return next(m for m in self.heard if m["type"] == kind and holds(m))

    def until(self, done: Callable[[], Any]) -> None:
        ends = time.monotonic() + CEILING_S
        while not done():
            assert time.monotonic() < ends, self.heard[-3:]
            time.sleep(0.01)


def works(name: str) -> Definition:
    async def answer(text: str) -> str:
        return text

    return describe(answer, name=name, about=f"{name} is at work")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., TestSite]]:
    """Nodes of one user on one machine."""
    sites: list[TestSite] = []

    def make(name: str, *agents: Any) -> TestSite:
        sites.append(TestSite(tmp_path / "home", agents, name=name))
        return sites[-1]

    yield make
    for site in reversed(sites):
        site.stop()


@pytest.fixture
def views() -> Iterator[list[Page]]:
    views: list[Page] = []
    yield views
    for view in views:
        view.close()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "EVERY_S", 0.05)
    monkeypatch.setattr(network, "SHARE", 0)
    monkeypatch.setattr(network, "SAVED_EVERY_S", 0.1)


def test_a_page_sees_real_nodes_come_change_and_go(start, views):
    me = start("me")
    host = Switch(me.node)
    view = Page(host)
    views.append(view)

    view.say(type="hello")
    alone = view.await_("picture")
    assert alone["whole"]
    assert alone["rows"] == []
    assert alone["summary"] == "1 node"
    assert alone["own"]["url"] == me.node.url

    bob = start("bob", works("painter"), works("smith"))
    bob_id = bob.node.node_id
    start("carol")
    view.until(lambda: {row["name"] for row in view.rows.values()} == {"bob", "carol"})

    def row() -> dict[str, Any]:
        return view.rows.get(bob_id, {})

    view.until(lambda: row()["agents"] == 2)
    assert row()["word"] == "alive"
    view.until(lambda: view.heard[-1].get("summary", "").startswith("3 nodes · 3 alive"))
    view.heard.clear()
    unchanged = view.await_("picture", lambda m: not m["rows"])
    assert not unchanged["whole"]
    assert len(view.rows) == 2, "what has not changed is not told again"

    me.call("chat.send", agent=f"painter@{bob_id}", text="x" * 50_000)
    view.until(lambda: row()["sent"] > 50_000)
    view.until(lambda: row()["link"] and row()["rate"] > 0)

    view.say(type="details", node=bob_id)
    details = view.await_("details")
    assert sorted(agent["name"] for agent in details["agents"]) == ["painter", "smith"]
    assert not details["blocked"]

    bob.stop()
    view.until(lambda: row()["word"] == "gone")
    assert me.node.run_info.token not in str(view.heard)


def test_the_node_is_only_asked_while_somebody_looks(start, views):
    me = start("me")
    view = Page(Switch(me.node))
    views.append(view)
    asked: list[str] = []
    real = me.node.client.call

    async def counting(method: str, /, **params: Any) -> Any:
        asked.append(method)
        return await real(method, **params)

    me.node.client.call = counting  # type: ignore[method-assign]

    def still(then: Callable[[], None]) -> None:
        """After that nothing more is asked or told."""
        then()
        view.until(lambda: view._following is not None and view._following.done())
        before = len(asked), len(view.heard)
        me.on_loop(lambda: None)
        me.node.run(lambda: asyncio.sleep(5 * network.EVERY_S))
        assert (len(asked), len(view.heard)) == before

    assert asked == []
    view.say(type="hello", view="one")
    view.say(type="hello", view="two")
    view.until(lambda: asked.count("node.peers") > 4)
    view.say(type="visible", view="one", visible=False)
    seen = len(asked)
    view.until(lambda: len(asked) > seen + 4)
    still(lambda: view.say(type="bye", view="two"))

    view.say(type="visible", view="one", visible=True)
    seen = len(asked)
    view.until(lambda: len(asked) > seen + 4)

    def long_ago() -> None:
        view._pages["one"] -= network.UNHEARD_S

    still(lambda: me.on_loop(long_ago))


def test_a_page_allows_and_blocks(start, views):
    me, bob = start("me"), start("bob")
    view = Page(Switch(me.node))
    views.append(view)
    bob_id = bob.node.node_id
    view.say(type="hello")
    view.until(lambda: bob_id in view.rows)
    view.say(type="rule", node=bob_id, rule="block")
    assert view.await_("ruled") == {"type": "ruled", "node": bob_id, "rule": "block"}
    assert me.call("node.callers")["callers"] == [
        {"id": bob_id, "calls": 0, "seconds": 0, "last_at": None, "blocked": True, "name": "bob"}
    ]
    view.say(type="details", node=bob_id)
    assert view.await_("details")["blocked"]
    view.say(type="rule", node=bob_id, rule="allow")
    view.await_("ruled", lambda m: m["rule"] == "allow")
    assert me.call("node.callers")["callers"] == []
    for odd in ({"node": bob_id, "rule": "eat"}, {"node": "nobody", "rule": "block"}):
        view.heard.clear()
        view.say(type="rule", **odd)
        assert view.await_("error")["text"]


def test_a_page_hears_that_the_node_is_away_and_back(start, views):
    host = Switch(None)
    view = Page(host)
    views.append(view)
    view.say(type="hello")
    assert view.await_("offline")["problem"] == "stopped"
    with pytest.raises(NotRunning, match="the node is not running: stopped"):
        _ = view.peers
    me = start("me")
    host.turn(me.node)
    view.await_("online")
    view.say(type="hello")
    view.await_("picture")
    view.heard.clear()
    host.turn(None)
    view.await_("offline")
    view.until(lambda: view._following is None or view._following.done())
    assert not [m for m in view.heard if m["type"] == "error"]


def test_a_saved_notebook_has_the_picture_in_every_form(start, views):
    me = start("me")
    host = Switch(me.node)
    view = Page(host)
    views.append(view)
    bob = start("bob", works("painter"))
    view.say(type="hello")
    view.until(lambda: view.rows.get(bob.node.node_id, {}).get("agents") == 1)

    data, _ = view._repr_mimebundle_()
    assert set(data) == {
        "application/vnd.jupyter.widget-view+json",
        "text/html",
        "text/plain",
        "image/svg+xml",
    }
    for form in ("text/html", "text/plain", "image/svg+xml"):
        assert "bob" in data[form]
        assert "2 nodes · 2 alive" in data[form]
        assert me.node.run_info.token not in data[form]
    ET.fromstring(data["image/svg+xml"])
    ET.fromstring(data["text/html"])
    assert bob.node.node_id[:8] in data["text/plain"]

    frame = view.peers.df()
    assert list(frame["name"]) == ["bob"]
    assert {"link", "agents", "sent", "received"} <= set(frame.columns)
    view.until(lambda: [row["name"] for row in view.saved["picture"]["rows"]] == ["bob"])
    assert me.node.run_info.token not in str(view.get_state())

    host.turn(None)
    data, _ = view._repr_mimebundle_()
    assert "stopped" in data["text/plain"]
    assert "image/svg+xml" not in data
