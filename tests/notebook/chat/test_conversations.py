"""One conversation after another, and one node: each message goes where it was written for."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from aios_nb.agents.definition import Definition, describe
from aios_nb.notebook.widgets.company import Company
from aios_nb.notebook.widgets.talk import Talk
from tests.notebook.chat.windows import CEILING_S, PNG, Make, Open, Window, forever, upper
from tests.notebook.hosts import Switch
from tests.sites import TestSite


def say_to_somebody_looked_for(chat: Window, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Say "zero", then "first" to a name that is looked for until the event is set."""
    chat.write("zero")
    chat.answered("ZERO")
    began, found = threading.Event(), asyncio.Event()
    identify = Company.identify

    async def slowly(company: Company, ref: str) -> str:
        began.set()
        await found.wait()
        return await identify(company, ref)

    monkeypatch.setattr(Talk, "knows", lambda *_: False)  # as of an agent of another node
    monkeypatch.setattr(Company, "identify", slowly)
    chat.write("@upper first")
    assert began.wait(CEILING_S)
    return found


def test_a_message_goes_into_no_conversation_that_was_opened_later(
    open_chat: Open, site: TestSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = open_chat()
    found = say_to_somebody_looked_for(chat, monkeypatch)
    chat.write("second")
    chat.attach("f-1", "begun.png", last=False)
    place = chat.page.head["place"]
    chat.write("with a file", files=["f-1"])
    chat.say("new")
    chat.until(lambda page: page.head["place"] != place)
    chat.say("upload", b"end", id="f-1", name="begun.png", mime="", offset=len(PNG), last=True)
    chat.write("late", place=place)  # the page had not heard of it
    site.on_loop(found.set)
    for _ in range(4):
        assert "another conversation was opened" in chat.hears("refused")["text"]

    # One that had not begun is another one, too.
    site.node.ask("spell", "an old one")
    old = site.call("chat.list")["conversations"][0]["conversation"]
    found.clear()
    chat.write("@upper first")
    chat.say("open", conversation=old)
    chat.until(lambda page: page.head["conversation"] == old)
    site.on_loop(found.set)
    assert "another conversation was opened" in chat.hears("refused")["text"]
    assert len(site.call("chat.list")["conversations"]) == 2
    assert [row["text"] for row in site.history(old)][:1] == ["an old one"]
    assert len(site.history(old)) == 2


def test_what_was_sent_right_before_another_conversation_was_opened_is_taken(
    open_chat: Open, site: TestSite
) -> None:
    chat = open_chat()
    chat.write("one")
    chat.answered("ONE")
    assert chat.hears("taken")["id"] == "m-1"
    kept = chat.conversation

    def both() -> None:  # as when both waited for a busy kernel
        chat.write("two")
        chat.say("new")

    site.on_loop(both)
    chat.until(lambda page: page.head["conversation"] is None)
    assert chat.hears("taken")["id"] == "m-2"
    assert "two" in [row["text"] for row in site.history(kept)]
    chat.write("two", id="m-2", place=0)  # a page that missed that it was
    assert chat.hears("taken")["id"] == "m-2"
    assert len(site.call("chat.list")["conversations"]) == 1
    assert len(site.history(kept)) == 4


def test_messages_are_logged_in_the_order_in_which_they_were_sent(
    open_chat: Open, site: TestSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = open_chat()
    found = say_to_somebody_looked_for(chat, monkeypatch)
    chat.write("second")
    chat.write("third", nr=3)
    chat.hears("ack")  # it came, and those before it
    site.on_loop(found.set)
    chat.answered("FIRST")
    chat.answered("THIRD")
    said = [
        row["text"] for row in site.history(chat.conversation) if row["sender"]["type"] != "agent"
    ]
    assert said == ["zero", "first", "second", "third"]


# The conversation as a thing ------------------------------------------------------------------


def test_conversations_are_listed_opened_exported_and_deleted(
    open_chat: Open, site: TestSite
) -> None:
    chat = open_chat("upper")
    chat.say("export", form="md")
    assert chat.hears("error")["text"] == "nothing has been said yet"
    chat.write("one")
    chat.answered("ONE")
    first = chat.conversation
    chat.say("new")
    chat.until(lambda page: not page.items and page.head["conversation"] is None)
    chat.write("two")
    chat.answered("TWO")
    chat.say("chats")
    rows = chat.hears("chats")["rows"]
    assert [(row["title"], row["last"], row["current"]) for row in rows] == [
        ("two", "TWO", True),
        ("one", "ONE", False),
    ]
    assert chat.page.head["called"] == ""  # its first message stands below
    chat.say("open", conversation=first)
    chat.until(lambda page: page.said() == [("you", "one"), ("upper", "ONE")])
    chat.say("export", form="json")
    made = chat.hears("export")
    assert made["name"] == "one.json"
    assert (made["mime"], b'"ONE"' in made["bytes"][0]) == ("application/json", True)
    chat.say("delete", conversation=first, listed=True)
    assert len(chat.hears("chats")["rows"]) == 1
    chat.until(lambda page: not page.items)
    assert open_chat("upper").page.said() == [("you", "two"), ("upper", "TWO")]


def test_of_two_that_are_opened_the_last_one_stays(open_chat: Open, site: TestSite) -> None:
    chat = open_chat("upper")
    found = []
    for text in ("one", "two"):
        chat.say("new")
        chat.write(text, place=None)  # as a page that shows the other one still
        chat.answered(text.upper())
        found.append(chat.conversation)
    assert chat.talk is not None
    talk, call = chat.talk, chat.talk.client.call
    held, slow = threading.Event(), asyncio.Event()

    async def slowly(method: str, **params: Any) -> Any:
        if method == "chat.history" and params["conversation"] == found[0]:
            held.set()
            await slow.wait()
        return await call(method, **params)

    talk.here._client = Slow(talk.client, slowly)
    chat.say("open", conversation=found[0])
    assert held.wait(CEILING_S)
    chat.say("open", conversation=found[1])
    chat.until(lambda page: page.head["conversation"] == found[1])
    site.on_loop(slow.set)
    site.node.run(lambda: silence(talk))
    chat.say("complete", typed="x")
    chat.hears("complete")
    assert chat.page.head["conversation"] == found[1]


class Slow:
    """A client one of whose calls takes its time."""

    def __init__(self, client: Any, call: Any) -> None:
        self._client = client
        self.call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


async def silence(talk: Talk) -> None:
    """Until all that was asked for is done."""
    while talk.speakers:  # noqa: ASYNC110 - nobody rings when all is quiet
        await asyncio.sleep(0.01)


def test_a_conversation_that_was_deleted_elsewhere_makes_room_for_a_new_one(
    open_chat: Open, site: TestSite
) -> None:
    chat = open_chat("upper")
    chat.write("one")
    chat.answered("ONE")
    site.call("chat.delete", conversation=chat.conversation)
    lost = chat.write("two")
    refused = chat.hears("refused")
    assert (refused["id"], refused["text"]) == (lost, "this conversation was deleted elsewhere")
    chat.until(lambda page: page.head["conversation"] is None)
    chat.write("two", id=lost)
    chat.answered("TWO")


# The node -------------------------------------------------------------------------------------


def test_a_chat_outlives_its_node(open_chat: Open, make_site: Make, tmp_path: Any) -> None:
    def agents() -> tuple[Definition, ...]:
        return describe(upper), describe(forever)

    first = make_site(*agents(), name="short")
    chat = open_chat("upper", site=first.node)
    chat.attach("f-1", "a.png")
    chat.attach("f-2", "half.png", last=False)
    chat.write("one", files=["f-1"])
    chat.answered("ONE")
    chat.write("@forever go")
    running = chat.item(re="m-2", status="runs")
    kept = chat.conversation
    first.stop()
    assert isinstance(chat.host, Switch)
    chat.host.turn(None)
    assert chat.hears("offline")["problem"] == "stopped"
    assert chat.conversation == kept
    chat.write("lost")
    chat.hears("offline")
    assert "ONE" in chat._repr_mimebundle_()[0]["text/plain"]

    chat.host.turn(make_site(*agents(), name="short").node)
    cut = chat.item(id=running["id"], status="interrupted")
    assert cut["hint"] == "it may have done part of its work; ask again if that is safe"
    chat.write("with half a file", files=["f-2"])
    assert chat.hears("refused")["hint"] == "attach it again"
    chat.write("two", id="m-3", files=["f-1"])
    chat.answered("TWO")
    assert chat.conversation == kept
    assert chat.ask("three") == "THREE"


def test_a_chat_without_a_node_says_so(open_chat: Open, site: TestSite) -> None:
    chat = open_chat("upper", site=None)
    assert chat.hears("offline")["problem"] == "stopped"
    assert "not running" in chat._repr_mimebundle_()[0]["text/plain"]
    assert isinstance(chat.host, Switch)
    chat.host.turn(site.node)
    chat.until(lambda page: page.head.get("ready"))
    chat.write("one")
    chat.answered("ONE")
