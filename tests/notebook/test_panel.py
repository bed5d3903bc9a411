"""What all widgets stand on, over a real node and without a page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from aios_nb.errors import UsageError
from aios_nb.notebook.widgets import panel as panel_module
from aios_nb.notebook.widgets.panel import Panel
from aios_nb.site import Site
from tests.notebook.hosts import Switch
from tests.sites import TestSite

CEILING_S = 30.0
Make = Callable[..., TestSite]


class Parrot(Panel):
    """Answers every page, and keeps what goes out to them."""

    def __init__(self, host: Switch) -> None:
        self.batches: list[dict[str, Any]] = []
        self.news = threading.Condition()
        self.count = 0
        self.broken = False
        super().__init__(host)
        self.begin()

    def send(self, content: Any, buffers: Any = None) -> None:
        with self.news:
            self.batches.append({**content, "bytes": buffers})
            self.news.notify_all()

    def say(self, message: Any, *buffers: bytes) -> None:
        """As a page does."""
        self._handle_custom_msg(message, list(buffers))

    @property
    def told(self) -> list[dict[str, Any]]:
        return [message for batch in self.batches for message in batch["messages"]]

    def until(self, wanted: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            return [message for message in self.told if wanted(message)]

        with self.news:
            assert self.news.wait_for(found, CEILING_S), self.told
        return found()[-1]

    async def attached(self, site: Site) -> None:
        self.tell({"type": "here", "node": site.client.name})

    async def receive(self, message: dict[str, Any], buffers: Sequence[bytes]) -> None:
        if message["type"] == "fail":
            raise UsageError("no parrot says that", hint="aios-nb ask teacher")
        if message["type"] == "burst":
            for nr in range(6000):
                self.tell({"type": "said", "nr": nr})
        elif message["type"] == "count":
            for _ in range(6000):
                self.count += 1
                self.stir()
        else:
            self.tell({"type": "said", "text": message["type"]}, *buffers)

    def pour(self) -> Iterator[dict[str, Any]]:
        if self.broken:
            raise RuntimeError("no seeds")
        if self.count:
            yield {"type": "counted", "count": self.count}
            self.count = 0


@pytest.fixture
def parrot(make_site: Make) -> Iterator[Parrot]:
    panel = Parrot(Switch(make_site().node))
    panel.until(lambda message: message["type"] == "here")
    yield panel
    panel.close()


def test_what_a_page_says_is_acknowledged_and_answered(parrot: Parrot) -> None:
    parrot.say({"type": "hello", "nr": 7}, b"a picture")

    parrot.until(lambda message: message == {"type": "ack", "nr": 7})
    said = parrot.until(lambda message: message.get("text") == "hello")
    assert said["buffers"] == [0, 1]
    batch = next(batch for batch in parrot.batches if said in batch["messages"])
    assert batch["bytes"] == [b"a picture"]
    parrot.say("nonsense")
    parrot.say({"type": "again"})
    parrot.until(lambda message: message.get("text") == "again")


def test_a_burst_arrives_whole_in_few_numbered_batches(parrot: Parrot) -> None:
    parrot.say({"type": "burst"})
    parrot.say({"type": "count"})
    parrot.until(lambda message: message["type"] == "counted")
    parrot.until(lambda message: message.get("nr") == 5999)

    said = [message["nr"] for message in parrot.told if message["type"] == "said"]
    assert said == list(range(6000))
    counted = [message["count"] for message in parrot.told if message["type"] == "counted"]
    assert sum(counted) == 6000
    assert len(counted) <= len(parrot.batches) < 20
    assert [batch["n"] for batch in parrot.batches] == list(range(1, len(parrot.batches) + 1))


def test_a_failure_is_told_and_hurts_nothing_else(parrot: Parrot) -> None:
    parrot.say({"type": "fail"})
    error = parrot.until(lambda message: message["type"] == "error")
    assert (error["text"], error["hint"]) == ("no parrot says that", "%aios ask teacher")
    parrot.say({"type": "still here"})
    parrot.until(lambda message: message.get("text") == "still here")


def test_what_was_told_arrives_though_the_rest_cannot_be_poured(parrot: Parrot) -> None:
    parrot.broken = True
    parrot.say({"type": "first"}, b"a picture")
    error = parrot.until(lambda message: message["type"] == "error")
    assert error["text"] == "RuntimeError: no seeds"
    parrot.broken = False
    parrot.say({"type": "second"})
    parrot.until(lambda message: message.get("text") == "second")
    assert [one["text"] for one in parrot.told if one["type"] == "said"] == ["first", "second"]
    batch = next(batch for batch in parrot.batches if error in batch["messages"])
    assert batch["bytes"] == [b"a picture"]


def test_a_panel_goes_on_with_the_node_that_comes_back(
    make_site: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Switch()
    panel = Parrot(host)
    panel.say({"type": "early"})
    assert panel.told == [{"type": "offline", "problem": "stopped"}]

    first = make_site(name="first")
    host.turn(first.node)
    panel.until(lambda message: message.get("node") == "first")
    monkeypatch.setattr(panel_module, "PAUSE_S", 3600.0)
    panel.say({"type": "in between"})
    first.on_loop(lambda: None)  # it was taken, and its answer is on its way
    first.stop()
    monkeypatch.undo()
    host.turn(None)
    assert panel.told[-1] == {"type": "offline", "problem": "stopped"}
    host.turn(make_site(name="second").node)
    panel.until(lambda message: message.get("node") == "second")
    panel.say({"type": "hello"})
    panel.until(lambda message: message.get("text") == "hello")
    assert "early" not in str(panel.told)

    panel.close()
    assert host.told == []


def test_a_node_that_stops_while_a_page_speaks_is_said(make_site: Make) -> None:
    site = make_site()
    panel = Parrot(Switch(site.node))
    panel.until(lambda message: message["type"] == "here")
    site.stop()  # and nobody has told the panel
    panel.say({"type": "hello"})
    panel.until(lambda message: message["type"] == "offline")
    panel.close()


def test_the_garbage_collector_may_close_it_at_any_time(parrot: Parrot) -> None:
    parrot.close()
    with panel_module._AWAKE_LOCK:
        parrot.close()
    Parrot.__new__(Parrot).close()  # one that was never made


def test_one_that_cannot_say_that_it_rests_rests_all_the_same(
    parrot: Parrot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any) -> None:
        raise OSError("no way out")

    done = threading.Event()
    monkeypatch.setattr(parrot, "rested", done.set)
    parrot.observe(broken, "resting")
    with pytest.raises(OSError, match="no way out"):
        parrot.rest()
    assert done.is_set()
