"""AgentChat without a browser: a page in Python hears what a real one hears, over a real node."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest

from aios_nb import richtext
from aios_nb.access import Caller, Principal
from aios_nb.agents.definition import Definition, describe
from aios_nb.client.local import LocalClient
from aios_nb.errors import AgentFailed, InvalidParams, NoSuchAgent
from aios_nb.notebook import failures
from aios_nb.notebook.widgets import following, showing
from aios_nb.notebook.widgets.chat import SAVED_BYTES, AgentChat
from aios_nb.notebook.widgets.company import Company
from aios_nb.notebook.widgets.contents import data_view
from aios_nb.notebook.widgets.following import PAGE
from aios_nb.notebook.widgets.showing import Showing
from aios_nb.notebook.widgets.talk import Talk
from aios_nb.notebook.widgets.transcript import Transcript
from aios_nb.parts import File
from aios_nb.site import Site
from tests.notebook.hosts import Switch
from tests.sites import TestSite

CEILING_S = 30.0
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
NASTY = "<script>alert(1)</script> <img src=x onerror=alert(2)> \u202eevil"
Make = Callable[..., TestSite]
Open = Callable[..., "Window"]


class Page:
    """What a page knows by what it was told; does what chat.js does with it."""

    def __init__(self) -> None:
        self.items: dict[str, dict[str, Any]] = {}
        self.head: dict[str, Any] = {}
        self.other: list[dict[str, Any]] = []

    def take(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "state":
            self.head = message["head"]
            self.items = {item["id"]: item for item in message["items"]}
        elif kind == "items":
            self.items |= {item["id"]: item for item in message["items"]}
        elif kind == "grow":
            item = self.items[message["id"]]
            item["blocks"] = [*item.get("blocks", [])[: message["keep"]], *message["blocks"]]
        elif kind == "head":
            self.head = message["head"]
        else:
            self.other.append(message)

    def sorted(self) -> list[dict[str, Any]]:
        return sorted(self.items.values(), key=lambda item: item["order"])

    def said(self) -> list[tuple[str, str]]:
        """Who said what, in the order in which it is shown."""
        return [(item["who"]["name"], item.get("text", "")) for item in self.sorted()]


class Window(AgentChat):
    """A chat whose words to pages are kept, and a page that hears all of them."""

    def __init__(
        self, site: Site | None, agent: str | None = None, tag: str = "", **options: Any
    ) -> None:
        """``tag``: in its messages' ids, which no two windows share."""
        self.tag = tag
        self.page = Page()
        self.batches: list[dict[str, Any]] = []
        self.news = threading.Condition()
        self.ids = iter(range(1, 1000))
        super().__init__(Switch(site), agent, **options)
        self.say("hello", view="1")

    def send(self, content: Any, buffers: Any = None) -> None:
        with self.news:
            self.batches.append(content)
            for message in content["messages"]:
                first, count = message.get("buffers", (0, 0))
                self.page.take({**message, "bytes": (buffers or [])[first : first + count]})
            self.news.notify_all()

    def say(self, kind: str, *buffers: bytes, **fields: Any) -> None:
        self._handle_custom_msg({"type": kind, **fields}, list(buffers))

    def attach(self, file: str, name: str, *, last: bool = True) -> None:
        """Upload a picture, or the beginning of one."""
        self.say("upload", PNG, id=file, name=name, mime="image/png", offset=0, last=last)

    def write(self, text: str, **fields: Any) -> str:
        """Send a message as a page does; its id."""
        message_id = fields.pop("id", None) or f"m{self.tag}-{next(self.ids)}"
        place = fields.pop("place", self.page.head.get("place"))
        self.say("send", id=message_id, text=text, place=place, **fields)
        return message_id

    def until(self, holds: Callable[[Page], Any]) -> Any:
        with self.news:
            found = self.news.wait_for(lambda: holds(self.page), CEILING_S)
            assert found, (self.page.said(), self.page.head, self.page.other)
            return found

    def hears(self, kind: str) -> dict[str, Any]:
        """A message of that type; heard once."""

        def heard(page: Page) -> dict[str, Any] | None:
            return next((message for message in page.other if message["type"] == kind), None)

        message = self.until(heard)
        self.page.other.remove(message)
        return message

    def answered(self, text: str) -> dict[str, Any]:
        """The reply with this text, when it is there."""
        return self.until(
            lambda page: next(
                (
                    item
                    for item in page.items.values()
                    if item["who"].get("agent")
                    and item.get("text") == text
                    and not item.get("status")
                ),
                None,
            )
        )

    def item(self, **fields: Any) -> dict[str, Any]:
        """An item with these fields, when it is there."""

        def fits(item: dict[str, Any]) -> bool:
            return all(item.get(name, "") == value for name, value in fields.items())

        return self.until(lambda page: next(filter(fits, page.sorted()), None))


async def upper(text: str) -> str:
    return text.upper()


async def spell(text: str) -> AsyncIterator[str]:
    for char in text:
        yield f"{char} "
        await asyncio.sleep(0)


async def asker(text: str, ctx: Any) -> AsyncIterator[str]:
    yield "Let me see. "
    name = await ctx.ask_user("Your name?")
    yield f"Hello {name}!"


async def forever(text: str, ctx: Any) -> AsyncIterator[str]:
    ctx.progress("at it", 0.5)
    yield "on and on"
    await asyncio.Event().wait()


async def moody(text: str) -> str:
    if "please" in text:
        return "all right"
    raise ValueError(f"not {text}")


async def burst(text: str) -> AsyncIterator[str]:
    for nr in range(6000):
        yield f"w{nr} "


AGENTS = (upper, spell, asker, forever, moody, burst)


@pytest.fixture
def site(make_site: Make) -> TestSite:
    return make_site(
        *(describe(agent, about=f"{agent.__name__} answers", examples=["hi"]) for agent in AGENTS)
    )


@pytest.fixture
def open_chat(site: TestSite) -> Iterator[Open]:
    """Open chats; those still open are closed at the end."""
    windows: list[Window] = []

    def make(agent: str | None = "upper", **options: Any) -> Window:
        tag = str(len(windows) or "")
        window = Window(options.pop("site", site.node), agent, tag, **options)
        windows.append(window)
        return window

    yield make
    for window in windows:
        window.close()


# Opening --------------------------------------------------------------------------------------


def test_a_chat_goes_on_where_the_last_one_ended(open_chat: Open, site: TestSite) -> None:
    site.node.ask("upper", "asked by other means")
    first = open_chat()
    assert first.conversation is None
    first.until(lambda page: page.head.get("ready") and page.head["agent"]["examples"] == ["hi"])
    assert first.page.items == {}

    first.write("one")
    first.answered("ONE")
    kept = first.conversation
    assert site.call("chat.history", conversation=kept)["title"] == "Chat with upper"
    again = open_chat()
    assert again.conversation == kept
    again.until(lambda page: page.said() == [("you", "one"), ("upper", "ONE")])
    first.say("rename", title="mine")
    first.until(lambda page: page.head["title"] == "mine")
    assert open_chat().conversation == kept

    fresh = open_chat(new=True)
    fresh.write("two")
    fresh.answered("TWO")
    assert fresh.conversation not in {None, kept}
    assert open_chat().conversation == fresh.conversation
    assert open_chat(None, conversation=kept).conversation == kept
    assert open_chat(None).page.head["agent"]["name"] == "concierge"


def test_a_mistyped_name_is_said_at_once_and_a_late_agent_is_met(
    open_chat: Open, site: TestSite
) -> None:
    with pytest.raises(NoSuchAgent, match="no such agent: uper") as raised:
        open_chat("uper")
    assert raised.value.data["near"] == ["upper"]
    with pytest.raises(InvalidParams, match="no such conversation: c-none"):
        open_chat(None, conversation="c-none")

    chat = open_chat("upper")
    site.node.withdraw("upper")
    chat.until(lambda page: page.head["agent"]["state"] == "gone")
    refused = chat.write("anyone?")
    said = chat.hears("refused")
    assert (said["id"], said["text"]) == (refused, "nobody offers upper now")
    site.node.host(upper)
    chat.until(lambda page: page.head["agent"]["state"] == "alive")
    chat.write("now", id=refused)
    chat.answered("NOW")


# Talking --------------------------------------------------------------------------------------


def test_a_message_is_said_once_however_often_the_page_says_it(
    open_chat: Open, site: TestSite
) -> None:
    chat = open_chat()
    for _ in range(3):
        chat.write("once", id="m-again")
    reply = chat.answered("ONCE")
    assert chat.page.said() == [("you", "once"), ("upper", "ONCE")]
    assert list(chat.page.items) == ["m-again", reply["id"]]
    assert len(site.history(chat.conversation or "")) == 2


def test_greetings_that_waited_together_are_answered_once(open_chat: Open, site: TestSite) -> None:
    chat = open_chat()
    chat.write("one")
    chat.answered("ONE")
    before = len(chat.batches)

    def greet() -> None:  # as when they waited for a busy kernel
        for nr in range(5):
            chat.say("hello", view="1", nr=nr)

    site.on_loop(greet)
    chat.write("two")
    chat.answered("TWO")
    told = [one["type"] for batch in chat.batches[before:] for one in batch["messages"]]
    assert (told.count("ack"), told.count("state")) == (5, 1)


def test_six_thousand_words_arrive_whole_in_few_messages(open_chat: Open, site: TestSite) -> None:
    chat = open_chat("burst")
    chat.write("go")
    whole = "".join(f"w{nr} " for nr in range(6000))
    reply = chat.answered(whole)
    assert site.history(chat.conversation or "")[-1]["text"] == whole
    parsed = richtext.to_data(richtext.parse(whole))
    chat.until(lambda page: page.items[reply["id"]]["blocks"] == parsed)
    assert len(chat.batches) < 40

    late = Page()
    late.take(chat.until(lambda _: state_of(chat)))
    assert late.items == chat.page.items


def test_a_reply_is_shown_right_at_every_stage(open_chat: Open, make_site: Make) -> None:
    parts = ["# One\n\ntext **bo", "ld**\n\n", "```python\nx = 1\n", "y = 2\n```\n\n", "- a\n- b\n"]
    gates = [threading.Event() for _ in parts]

    def author(text: str) -> Iterator[str]:
        for part, gate in zip(parts, gates, strict=True):
            yield part
            assert gate.wait(CEILING_S)

    chat = open_chat("author", site=make_site(author, name="stages").node)
    chat.write("go")
    running = chat.item(re="m-1", status="runs")["id"]
    for nr, gate in enumerate(gates):
        so_far = richtext.Growing()
        wanted = richtext.to_data(so_far.feed("".join(parts[: nr + 1]))[1])
        chat.until(lambda page, wanted=wanted: page.items[running]["blocks"] == wanted)
        gate.set()
    assert chat.answered("".join(parts))["id"] == running


def state_of(chat: Window) -> dict[str, Any]:
    """What a page that opens now is told."""
    chat.say("hello", view="late")
    count = len(chat.batches)

    def told() -> Iterator[dict[str, Any]]:
        for batch in chat.batches[count - 1 :]:
            yield from (one for one in batch["messages"] if one["type"] == "state")

    with chat.news:
        assert chat.news.wait_for(lambda: any(told()), CEILING_S)
    return list(told())[-1]


def test_what_is_asked_elsewhere_is_shown_as_it_is_written(open_chat: Open, site: TestSite) -> None:
    chat = open_chat("spell")
    chat.write("a")
    chat.answered("a ")
    here = {"conversation": chat.conversation}
    site.call("chat.post", text="@spell and @forever bc", message_id="m-else", **here)
    item = chat.item(re="m-else", status="runs", progress="at it (50%)")
    assert item["who"]["name"] == "forever"
    chat.until(lambda page: "on and on" in str(page.items[item["id"]]["blocks"]))
    chat.until(lambda page: page.head["busy"] == ["forever"])
    assert sorted(chat.page.head["also"]) == ["forever"]

    # A window that opens in the middle of it shows the same, and hears the rest.
    other = open_chat("spell")
    other.until(lambda page: "on and on" in str(page.items.get(item["id"], {}).get("blocks")))
    other.say("stop")
    for window in (chat, other):
        window.item(id=item["id"], status="cancelled", text="on and on")
        window.until(lambda page: page.head["busy"] == [])
    assert chat.page.items.keys() == other.page.items.keys()

    site.call("chat.send", agent="upper", text="alone", wait=False, **here)
    chat.answered("ALONE")
    assert chat.item(text="alone")["to"] == ["upper"]
    site.start("chat.send", agent="forever", text="go", **here)
    chat.until(lambda page: "on and on" in str([i for i in page.items.values() if i.get("status")]))
    third = open_chat("spell")  # whose first agent is not the one that answers
    for window in (chat, third):
        assert window.item(status="runs")["who"]["name"] == "forever"
        assert window.item(text="go")["to"] == ["forever"]
    chat.say("stop")
    chat.until(lambda page: page.head["busy"] == [])


def test_of_what_another_caller_asked_one_sees_who_is_at_it(
    open_chat: Open, site: TestSite
) -> None:
    chat = open_chat("upper")
    chat.write("one")
    chat.answered("ONE")
    owner = site.node.client
    bridge = Principal(Caller.TOKEN, "token:1", "tg:")
    phone = LocalClient(owner._dispatcher, bridge, owner.node_id, owner.name)
    here = {"conversation": chat.conversation}
    site.call("chat.join", who="tg:1:2", **here)
    asked = {"text": "@forever go", "sender": "tg:1:2", "message_id": "m-tg", **here}
    site.node.run(lambda: phone.call("chat.post", **asked))
    item = chat.item(re="m-tg", status="runs")
    assert item["who"]["name"] == "forever"
    mine = chat.write("@forever me too")
    chat.item(re=mine, status="waits")
    chat.say("stop")
    chat.item(re=mine, status="cancelled")
    chat.say("stop")
    assert chat.hears("error")["text"] == "only who asked can stop this"
    site.node.run(lambda: phone.call("chat.cancel", message_id="m-tg"))
    chat.until(lambda page: page.head["busy"] == [])


def test_a_name_is_an_address_and_several_answer_in_one_place(open_chat: Open) -> None:
    chat = open_chat("upper")
    chat.write("@calc 2 * 21")
    reply = chat.answered("42")
    asked = chat.page.items["m-1"]
    assert (asked["text"], asked["to"]) == ("2 * 21", ["calc"])
    assert reply["re"] == "m-1"
    chat.write("here @nobody is no name, nor is mail@upper")
    chat.answered("HERE @NOBODY IS NO NAME, NOR IS MAIL@UPPER")
    (line,) = chat.page.items["m-2"]["blocks"]
    assert line == ["lines", {}, ["here @nobody is no name, nor is mail@upper"]]

    chat.write("@spell and @echo: hi")
    chat.answered("@spell and @echo: hi")
    chat.answered(" ".join("@spell and @echo: hi") + " ")
    names = [item["who"]["name"] for item in chat.page.sorted() if item.get("re") == "m-3"]
    assert sorted(names) == ["echo", "spell"]
    assert "to" not in chat.page.items["m-3"]
    marked = [["at", {}, ["@spell"]], " and ", ["at", {}, ["@echo"]], ": hi"]
    assert chat.page.items["m-3"]["blocks"] == [["lines", {}, marked]]


def test_what_is_meant_for_nobody_goes_to_nobody(open_chat: Open, site: TestSite) -> None:
    chat = open_chat("upper")
    for meant in ("@uper hello", "@uper: hello", "@Upper", "@uper\nhello"):
        refused = chat.write(meant)
        said = chat.hears("refused")
        name = meant[1:6].rstrip(": \n")
        assert (said["id"], said["text"]) == (refused, f"nobody is called {name}")
        assert said["nobody"]
        assert "did you mean upper" in said["hint"]
    chat.write("@qqqqqq hello")
    assert chat.hears("refused")["hint"] == "@ shows who is there"
    with pytest.raises(NoSuchAgent, match="nobody is called uper"):
        chat.ask("@uper hello")
    assert chat.conversation is None  # nothing was begun for it

    # An @ of another kind is just a word, of code too.
    for words in ("@property\ndef x(self):", "@aios.agent(about='')", "I am @home, as they say"):
        chat.write(words)
        chat.answered(words.upper())
    chat.say("names", names=["upper", "uper", "property", "calc"])
    assert chat.hears("names")["known"] == ["upper", "calc"]


def test_what_waits_for_its_turn_says_so(open_chat: Open, make_site: Make) -> None:
    gates = [threading.Event(), threading.Event()]

    def slow(text: str) -> str:
        assert gates[int(text)].wait(CEILING_S)
        return f"done {text}"

    chat = open_chat("slow", site=make_site(slow, name="turns").node)
    chat.write("0")
    chat.item(re="m-1", status="runs")
    chat.write("1")
    waits = chat.item(re="m-2", status="waits")
    gates[0].set()
    chat.answered("done 0")
    runs = chat.item(re="m-2", status="runs")
    assert runs["at"] > waits["at"]
    gates[1].set()
    chat.answered("done 1")


def row(seq: int, message_id: str, second: int, **fields: Any) -> dict[str, Any]:
    """A row of a log, as the node tells it."""
    sender = {"id": fields.pop("sender", "owner@here")}
    sender["type"] = "human" if sender["id"].startswith("owner") else "agent"
    at = f"2026-01-01T00:00:{second:02}.000Z"
    nothing = {"kind": "message", "status": "done", "text": "", "data": None, "files": []}
    told = {"seq": seq, "message_id": message_id, "sender": sender, "at": at, "ref": None}
    return {**nothing, **told, **fields}


def test_the_time_of_an_answer_is_what_it_took_to_run() -> None:
    transcript = Transcript("owner@here", str)
    transcript.take(row(1, "m-1", 0, text="go", status="accepted"))
    began = {"kind": "status", "status": "running", "data": {"reply_id": "r-1"}, "ref": "m-1"}
    transcript.take(row(2, "s-1", 40, sender="slow@here", **began))
    transcript.take(row(3, "r-1", 42, sender="slow@here", ref="m-1", text="done"))
    assert transcript.items["r-1"].took_s == 2.0


def test_agents_of_another_node_are_brought_in(open_chat: Open, make_site: Make) -> None:
    bob = make_site(describe(moody, name="judge", about="judges paper planes"), name="bob")
    carol = make_site(describe(upper, name="judge", about="judges paper planes"), name="carol")
    chat = open_chat("upper")
    judge, other = (f"judge@{one.node.node_id}" for one in (bob, carol))
    rows: list[dict[str, Any]] = []

    def offered(_: Page) -> bool:
        nonlocal rows
        chat.say("complete", typed="jud")
        rows = next((m["rows"] for m in reversed(chat.page.other) if m["type"] == "complete"), [])
        return len(rows) > 1

    for _ in range(600):
        if offered(chat.page):
            break
        with chat.news:
            chat.news.wait(0.05)
    assert {(row["id"], row["node"], row["state"]) for row in rows} == {
        (judge, "bob", "alive"),
        (other, "carol", "alive"),
    }
    chat.say("drafting", text="which of these paper planes flies best?")
    assert [row["name"] for row in chat.hears("helpers")["rows"]] == ["judge", "judge"]

    chat.write("@judge please", mentioned={"judge": judge})
    assert chat.answered("all right")["who"]["node"] == "bob"
    chat.write("@upper and @judge please", mentioned={"judge": judge})
    chat.answered("@UPPER AND @JUDGE PLEASE")
    chat.item(kind="note", text="joined")
    assert chat.page.head["also"] == ["judge"]
    chat.say("drafting", text="which of these paper planes flies best?")
    assert [row["id"] for row in chat.hears("helpers")["rows"]] == [other]

    # Another one of the same name, if it was picked.
    chat.write("@judge hm", mentioned={"judge": other})
    chat.answered("HM")
    chat.write("@judge and @echo", mentioned={"judge": other})
    chat.answered(f"@{other} and @echo".upper())
    assert chat.page.items["m-4"]["blocks"][0][2][0] == ["at", {}, ["@judge"]]

    bob.stop()
    chat.write("@judge please")
    chat.item(re="m-5", status="waits")
    chat.until(lambda page: page.head["away"] == [judge])
    chat.say("stop")
    chat.item(re="m-5", status="cancelled")


def test_an_agent_that_asks_back_is_answered(open_chat: Open) -> None:
    chat = open_chat("asker")
    chat.write("hi")
    assert chat.hears("taken")["id"] == "m-1"
    asks = chat.item(kind="asks", text="Your name?")
    writing = chat.item(status="asks")
    assert chat.until(lambda page: page.head.get("asks")) == {
        "reply": writing["id"],
        "question": asks["question"],
        "who": "asker",
    }
    chat.say("answer", id="a-1", reply=writing["id"], question=asks["question"], text="Ada")
    assert chat.hears("taken")["id"] == "a-1"
    reply = chat.answered("Let me see. Hello Ada!")
    assert chat.page.said() == [
        ("you", "hi"),
        ("asker", "Your name?"),
        ("you", "Ada"),
        ("asker", "Let me see. Hello Ada!"),
    ]
    assert reply["id"] == writing["id"]
    assert "asks" not in chat.page.head
    chat.say("answer", id="a-2", reply=writing["id"], question="q-none", text="late")
    assert chat.hears("refused")["id"] == "a-2"
    chat.say("answer", id="a-1", reply=writing["id"], question=asks["question"], text="Ada")
    assert chat.hears("taken")["id"] == "a-1"  # a page that missed that it was

    chat.write("again")
    chat.item(kind="asks", re="m-2")
    chat.say("stop")
    chat.item(re="m-2", status="cancelled")
    assert [item.get("kind", "") for item in chat.page.sorted()[-2:]] == ["asks", ""]


def test_failed_stopped_and_reworded_messages_are_marked_for_good(open_chat: Open) -> None:
    chat = open_chat("moody")
    chat.write("today")
    failed = chat.item(status="failed")
    assert failed["problem"] == "ValueError: not today"
    chat.say("again", of=failed["id"], id="m-retry")
    chat.item(id="m-1", resent="m-retry")
    chat.item(re="m-retry", status="failed")
    chat.say("again", of="m-retry", id="m-edit", text="please")
    chat.answered("all right")
    chat.item(id="m-retry", resent="m-edit")

    chat.write("@forever go")
    running = chat.item(re="m-2", status="runs", progress="at it (50%)")
    chat.until(lambda page: page.items[running["id"]]["blocks"] == [["p", {}, ["on and on"]]])
    chat.say("complete", typed="x")
    chat.hears("complete")  # nothing else has come meanwhile
    assert chat.page.items[running["id"]]["blocks"] == [["p", {}, ["on and on"]]]
    assert not [item for item in chat.page.items.values() if item["id"].endswith("…")]
    chat.say("stop")
    stopped = chat.item(re="m-2", status="cancelled")
    assert stopped["text"] == "on and on"
    chat.say("again", of=stopped["id"], id="m-go")
    assert chat.item(re="m-go", status="runs")["who"]["name"] == "forever"
    chat.say("stop")

    # Of several, the one that failed gets it again.
    chat.write("@moody and @echo try")
    bad = chat.item(re="m-3", status="failed")
    chat.answered("@moody and @echo try")
    chat.say("again", of=bad["id"], id="m-alone")
    chat.item(re="m-alone", status="failed")
    chat.item(id=bad["id"], resent="m-alone")
    assert len([item for item in chat.page.items.values() if item.get("re") == "m-alone"]) == 1

    chat.say("again", of="m-nowhere", id="m-x")
    assert chat.hears("refused")["id"] == "m-x"
    marks = {item["id"]: item.get("resent") for item in chat.page.items.values()}
    later = open_chat("moody")
    later.until(lambda page: {i["id"]: i.get("resent") for i in page.items.values()} == marks)


def test_python_speaks_in_the_same_conversation(open_chat: Open, site: TestSite) -> None:
    chat = open_chat("upper")
    reply = chat.ask("hello", files=[File(PNG, name="a.png")])
    assert (reply, reply.conversation) == ("HELLO", chat.conversation)
    chat.until(lambda page: page.said() == [("you", "hello"), ("upper", "HELLO")])
    assert chat.page.sorted()[0]["files"][0]["name"] == "a.png"
    assert asyncio.run(chat.ask_async("@echo there")) == "there"
    with pytest.raises(AgentFailed, match="not today"):
        chat.ask("@moody today")
    question = chat.ask("@asker hi")
    assert (question, question.status) == ("Your name?", "input_required")
    assert question.answer("Bo") == "Let me see. Hello Bo!"
    chat.answered("Let me see. Hello Bo!")
    chat.until(lambda page: page.head["busy"] == [])
    plain = chat._repr_mimebundle_()[0]["text/plain"]
    assert "you → moody" in plain
    assert "failed: ValueError: not today" in plain


def test_a_chat_whose_opening_is_interrupted_follows_nothing(
    site: TestSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[AgentChat] = []
    goes_on = threading.Event()

    class Interrupted(AgentChat):
        def begin(self) -> None:
            began.append(self)
            site.node.loop.loop.call_soon_threadsafe(goes_on.wait, CEILING_S)
            super().begin()  # what follows is behind it

    def interrupted(_: Any) -> Any:
        raise KeyboardInterrupt

    host = Switch(site.node)
    with monkeypatch.context() as patch:
        patch.setattr(site.node, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Interrupted(host, "upper")
    goes_on.set()
    site.on_loop(lambda: None)  # behind all that was handed over
    assert host.told == []
    assert began[0].talk is None
    began[0].shown()
    site.on_loop(lambda: None)
    assert began[0].talk is None  # for good


def test_stopping_a_wait_for_an_answer_is_one_line(
    open_chat: Open, site: TestSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Any) -> Any:
        raise KeyboardInterrupt

    chat = open_chat()
    with monkeypatch.context() as patch:
        patch.setattr(Site, "stop_face", failures.shorten)
        patch.setattr(site.node.loop, "sync", interrupted)
        with pytest.raises(KeyboardInterrupt) as stopped:
            chat.ask("hi")
    shown = stopped.value._render_traceback_()  # type: ignore[attr-defined]
    assert shown == ["KeyboardInterrupt: waiting for the answer was stopped"]


def test_an_interrupted_question_is_stopped_and_no_other(
    open_chat: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "SETTLE_S", 3600.0)
    chat = open_chat("forever")
    chat.write("typed")
    chat.item(re="m-1", status="runs")

    async def interrupted() -> None:
        asking = asyncio.ensure_future(chat.ask_async("@asker hi"))
        slow = asyncio.ensure_future(chat.ask_async("@spell " + "x" * 100_000))
        await asking
        slow.cancel()
        async with asyncio.timeout(CEILING_S):  # it does not wait for what never comes
            with pytest.raises(asyncio.CancelledError):
                await slow

    asyncio.run(interrupted())
    chat.item(status="cancelled")
    assert chat.item(re="m-1")["status"] == "runs"
    assert chat.item(kind="asks")["question"]
    chat.say("stop")


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


# Files and data -------------------------------------------------------------------------------


def test_files_go_both_ways_in_pieces(open_chat: Open, make_site: Make) -> None:
    def giver(text: str) -> tuple[str, File, File, File]:
        drawing, liar = File(b"<svg onload=x>", name="x.svg"), File(b"<html>", name="liar.png")
        return "here", File(PNG, name="plot.png"), drawing, liar

    chat = open_chat("giver", site=make_site(giver, name="giving").node)
    content = bytes(range(256)) * 8192
    for offset in range(0, len(content), 1 << 20):
        last = offset + (1 << 20) >= len(content)
        piece = content[offset : offset + (1 << 20)]
        chat.say("upload", piece, id="f-1", name="data.bin", mime="", offset=offset, last=last)
    chat.attach("f-2", "a.png")
    chat.write("look", files=["f-1", "f-2"])
    reply = chat.answered("here")
    sent = chat.page.items["m-1"]["files"]
    assert [(file["name"], file["size"]) for file in sent] == [
        ("data.bin", 2 << 20),
        ("a.png", 108),
    ]

    picture, *others = reply["files"]
    chat.say("fetch", sha256=sent[0]["sha256"])
    first, second = chat.hears("file"), chat.hears("file")
    assert (first["offset"], second["offset"], first["size"]) == (0, 1 << 20, 2 << 20)
    assert hashlib.sha256(first["bytes"][0] + second["bytes"][0]).hexdigest() == sent[0]["sha256"]
    chat.say("fetch", sha256=picture["sha256"])
    assert chat.hears("file")["picture"] is True
    for other in others:
        chat.say("fetch", sha256=other["sha256"])
        assert chat.hears("file")["picture"] is False
    chat.say("fetch", sha256="0" * 64)
    missing = chat.hears("unfetchable")
    assert (missing["id"], "not in this conversation" in missing["text"]) == ("0" * 64, True)

    for nr in range(21):  # and more to come
        about = {"id": "f-3", "name": "big", "mime": "", "last": False}
        chat.say("upload", bytes(1 << 20), offset=nr << 20, **about)
    assert chat.hears("unloadable")["text"] == "a file may have 20 MB at most"
    chat.write("with it", files=["f-3"])
    assert chat.hears("refused")["text"] == "a file may have 20 MB at most"
    html = chat._repr_mimebundle_()[0]["text/html"]
    assert html.count("data:image/png;base64,") == 2  # one from each side
    assert "<svg" not in html


def test_data_is_shown_as_what_it_is() -> None:
    rows = [[f"city {nr}", nr / 3, None] for nr in range(120)]
    table = {"columns": ["name", "size", NASTY], "rows": rows}
    view, repeats = data_view("", table)
    assert view is not None
    assert (len(view["rows"]), view["of_rows"], view["numbers"]) == (50, 120, [1, 2])
    assert view["rows"][1] == ["city 1", "0.333333", ""]
    assert "\u202e" not in view["columns"][2]
    assert not repeats
    assert data_view("42", 42) == (None, False)
    assert data_view('{"a": 1}', {"a": 1}) == ({"json": '{\n  "a": 1\n}', "open": True}, True)
    assert data_view("text", {"a": 1}) == ({"json": '{\n  "a": 1\n}'}, False)
    assert data_view("text", None) == (None, False)


# Many messages --------------------------------------------------------------------------------


def test_a_long_conversation_is_read_from_its_end(open_chat: Open, site: TestSite) -> None:
    talk = site.call("chat.open", agents=["echo"], title="long")["conversation"]
    for nr in range(PAGE):
        site.call("chat.send", agent="echo", text=f"{nr} " + "x" * 5000, conversation=talk)
    chat = open_chat("echo")
    chat.until(lambda page: len(page.items) == PAGE and page.head["earlier"])
    assert chat.page.sorted()[0]["text"].startswith("50 ")
    chat.until(lambda _: chat.saved.get("items"))
    kept = chat.saved["items"]
    assert kept == chat.page.sorted()[-len(kept) :]
    assert 0 < len(str(kept)) < 2 * SAVED_BYTES

    site.call("chat.post", text="@forever go", message_id="m-go", conversation=talk)
    running = chat.item(re="m-go", status="runs")
    chat.say("earlier")
    chat.until(lambda page: len(page.items) == 2 * PAGE + 2 and not page.head["earlier"])
    assert [item["text"].split()[0] for item in chat.page.sorted()[:4]] == ["0", "0", "1", "1"]
    assert chat.page.sorted()[-1]["id"] == running["id"]
    assert chat.item(id="m-go")["blocks"] == [["lines", {}, [["at", {}, ["@forever"]], " go"]]]
    chat.say("stop")
    chat.item(id=running["id"], status="cancelled")


def test_a_long_answer_is_parsed_beside_the_loop(open_chat: Open, make_site: Make) -> None:
    long = "\n\n".join(f"**{nr}** `code` and words" for nr in range(2000))

    def author(text: str) -> str:
        return long

    chat = open_chat("author", site=make_site(author, name="author").node)
    chat.write("go")
    reply = chat.answered(long)
    chat.until(lambda page: len(page.items[reply["id"]]["blocks"]) == 2000)
    assert chat.page.items[reply["id"]]["blocks"][7][2][0] == ["b", {}, ["7"]]


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
        ("Chat with upper", "TWO", True),
        ("Chat with upper", "ONE", False),
    ]
    chat.say("open", conversation=first)
    chat.until(lambda page: page.said() == [("you", "one"), ("upper", "ONE")])
    chat.say("export", form="json")
    made = chat.hears("export")
    assert made["name"] == "chat-with-upper.json"
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


# In print -------------------------------------------------------------------------------------


def test_what_is_printed_runs_nothing(open_chat: Open, make_site: Make) -> None:
    def nasty(text: str) -> tuple[str, dict[str, Any], File]:
        table = {"columns": [NASTY], "rows": [[NASTY]]}
        return f"{NASTY} [x](javascript:alert(3))", table, File(PNG, name=f"{NASTY}.png")

    chat = open_chat("nasty", site=make_site(nasty, name="bad").node)
    chat.ask(NASTY)
    html = chat._repr_mimebundle_()[0]["text/html"]
    assert "alert(1)" in html  # as text
    for bad in ("<script", "<img src=x", 'javascript:alert(3)"', "\u202e"):
        assert bad not in html
    assert html.count("<img") == 1


def test_what_was_sent_again_is_printed_once_with_its_answer(open_chat: Open) -> None:
    chat = open_chat("moody")
    chat.write("today")
    failed = chat.item(status="failed")
    chat.say("again", of=failed["id"], id="m-again", text="please")
    chat.answered("all right")
    chat.item(id="m-1", resent="m-again")
    chat.write("@forever go")
    chat.item(re="m-2", status="runs", progress="at it (50%)")
    chat.say("stop")
    chat.item(re="m-2", status="cancelled")
    bundle = chat._repr_mimebundle_()[0]
    for shown in (bundle["text/plain"], bundle["text/html"]):
        assert "all right" in shown
        assert "today" not in shown  # neither what was asked nor what came of it
        assert "stopped" in shown
        assert "cancelled" not in shown


def test_an_empty_answer_is_printed_as_one(open_chat: Open, make_site: Make) -> None:
    def silent(text: str) -> str:
        return ""

    def tables(text: str) -> dict[str, int]:
        return {"a": 1}

    chat = open_chat("silent", site=make_site(silent, tables, name="quiet").node)
    chat.ask("hello")
    bundle = chat._repr_mimebundle_()[0]
    assert bundle["text/plain"].endswith("  (empty answer)")
    assert "(empty answer)" in bundle["text/html"]
    chat.ask("@tables hello")
    assert chat._repr_mimebundle_()[0]["text/plain"].count("(empty answer)") == 1


SHOWN = """
import aios_nb as aios
from aios_nb.notebook.widgets.chat import AgentChat

node = aios.up(name="printer")

class Host:
    def site(self): return node
    def problem(self): return ""
    def subscribe(self, told): return lambda: None

chat = AgentChat(Host(), "echo")
chat
"""


def test_a_kernel_without_a_page_keeps_the_finished_conversation(
    open_notebook: Callable[..., Any],
) -> None:
    book = open_notebook("printed")
    shown = book.run(SHOWN).shown[0]
    assert shown["text/plain"].startswith("Chat with echo\n\nNothing was said yet.")
    assert "%aios ask echo …" in shown["text/html"]
    assert shown["application/vnd.jupyter.widget-view+json"]["model_id"]
    book.run("chat.ask('said in a cell')")
    assert shown["text/plain"].count("said in a cell") == 2
    assert "said in a cell" in shown["text/html"]
    book.run("await chat.ask_async('and awaited')")
    assert shown["text/plain"].count("and awaited") == 2


class Print:
    """What ``Showing`` has of a chat and of the shell: a text that changes, and what was shown."""

    def __init__(self) -> None:
        self.text = ""
        self.shown: asyncio.Queue[str] = asyncio.Queue()
        self.display_pub = self.host = self.talk = self.here = self.transcript = self
        self.writing: dict[str, Any] = {}
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    def site(self) -> None:
        return None

    def mimebundle(self, printed: dict[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
        return printed, {}

    def publish(self, bundle: dict[str, str], *_: Any, **__: Any) -> None:
        self.shown.put_nowait(bundle["text/plain"])

    def work(self, job: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return asyncio.ensure_future(job)

    async def printed(self, _: Any) -> dict[str, str]:
        now = self.text
        self.begun.set()
        await self.go_on.wait()
        return {"text/plain": now, "text/html": now}


@pytest.mark.parametrize("typing", [False, True])
def test_what_comes_while_the_print_is_made_is_printed_later(
    typing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        chat = Print()
        monkeypatch.setattr(showing, "_printed", chat.printed)
        monkeypatch.setattr(showing, "STALE_S", 0.01)
        monkeypatch.setattr(Showing._soon, "__defaults__", (0.01,))
        shows: Any = Showing(chat)  # type: ignore[arg-type]
        shows._display_id, shows._shell = "here", chat
        shows.heard({"type": "hello", "view": "1"})
        chat.text = "one"
        shows.changed()
        await chat.begun.wait()
        if typing:  # and that page is then closed without a word
            shows.heard({"type": "calm", "view": "1", "calm": False})
        else:
            chat.text = "one two"
            shows.changed()
        chat.go_on.set()
        async with asyncio.timeout(CEILING_S):
            while await chat.shown.get() != chat.text:
                pass
        assert shows._printed == shows._version

    asyncio.run(story())


def test_a_page_that_says_hello_again_is_still_typed_in() -> None:
    async def story() -> None:
        shows: Any = Showing(Print())  # type: ignore[arg-type]
        shows.heard({"type": "hello", "view": "1"})
        shows.heard({"type": "calm", "view": "1", "calm": False})
        shows.heard({"type": "hello", "view": "1"})  # said until it was heard
        assert shows._typing()
        shows.heard({"type": "bye", "view": "1"})
        assert not shows._typing()

    asyncio.run(story())


PAGES = """
from aios_nb.notebook.widgets import showing
from aios_nb.parts import File

chat._handle_custom_msg({"type": "hello", "view": "closed"}, [])
chat._handle_custom_msg({"type": "calm", "view": "closed", "calm": False}, [])
showing.STALE_S = 0.1  # that page was closed in the middle of a sentence
chat.ask("look", files=[File(b"\\x89PNG\\r\\n\\x1a\\n" + bytes(100), name="a.png")])

async def printed(ceiling_s=30):
    import asyncio
    async with asyncio.timeout(ceiling_s):
        while chat._showing._printed != chat._showing._version:
            await asyncio.sleep(0.05)

await printed()
"""


def test_a_page_that_was_closed_does_not_keep_the_print_from_being_saved(
    open_notebook: Callable[..., Any],
) -> None:
    book = open_notebook("closed")
    shown = book.run(SHOWN).shown[0]
    book.run(PAGES)
    book.until(lambda: shown["text/plain"].count("look") == 2)
    assert "data:image/png;base64," in shown["text/html"]
