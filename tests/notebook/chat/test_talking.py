"""AgentChat without a browser: what is said, who answers, and what the page is told of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aios_nb import richtext
from aios_nb.access import Caller, Principal
from aios_nb.agents.definition import describe
from aios_nb.client.local import LocalClient
from aios_nb.errors import AgentFailed, InvalidParams, NoSuchAgent
from aios_nb.notebook import failures
from aios_nb.notebook.widgets import following
from aios_nb.notebook.widgets.chat import AgentChat
from aios_nb.notebook.widgets.transcript import Transcript
from aios_nb.parts import File
from aios_nb.site import Site
from tests.notebook.chat.windows import CEILING_S, PNG, Make, Open, Page, Window, moody, upper
from tests.notebook.hosts import Switch
from tests.sites import Slow, TestSite

# Opening --------------------------------------------------------------------------------------


def test_a_chat_goes_on_where_the_last_one_ended(open_chat: Open, site: TestSite) -> None:
    site.node.ask("upper", "asked by other means")
    first = open_chat()
    assert first.conversation is None
    first.until(lambda page: page.head.get("ready") and page.head["agent"]["examples"] == ["hi"])
    assert first.page.items == {}

    first.write("@upper one")
    first.answered("ONE")
    kept = first.conversation
    assert site.call("chat.history", conversation=kept)["title"] == "one"
    assert first.page.head["called"] == ""
    again = open_chat()
    assert again.conversation == kept
    again.until(lambda page: page.said() == [("you", "one"), ("upper", "ONE")])
    first.say("rename", title="mine")
    first.until(lambda page: page.head["called"] == "mine")
    assert open_chat().conversation == kept

    fresh = open_chat(new=True)
    fresh.write("two")
    fresh.answered("TWO")
    assert fresh.conversation not in {None, kept}

    wordless = open_chat(new=True)
    wordless.attach("f-1", "a.png")
    wordless.write("", files=["f-1"])
    wordless.until(lambda page: page.head["title"] == "Chat with upper")
    assert wordless.page.head["called"] == ""
    wordless.say("delete", conversation=wordless.conversation)
    wordless.until(lambda page: page.head["conversation"] is None)
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

    transcript.take(row(4, "m-2", 43, text="go", status="accepted"))
    began = {**began, "data": {"reply_id": "r-2"}, "ref": "m-2"}
    transcript.take(row(5, "s-2", 44, sender="slow@here", **began))
    found = {**began, "status": "interrupted"}  # by the next life of its node
    transcript.take(row(6, "s-3", 59, sender="slow@here", **found))
    assert transcript.items["r-2"].took_s is None


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


def test_what_is_sent_in_other_words_has_the_files_it_had_and_those_that_came_with_them(
    open_chat: Open,
) -> None:
    chat = open_chat("upper")
    chat.attach("f-1", "a.png")
    chat.write("one", files=["f-1"])
    chat.answered("ONE")
    chat.attach("f-2", "b.png")
    chat.say("again", of="m-1", id="m-edit", text="two", files=["f-2"])
    chat.answered("TWO")
    assert [file["name"] for file in chat.item(id="m-edit")["files"]] == ["a.png", "b.png"]


def test_of_several_at_work_one_is_stopped(open_chat: Open) -> None:
    chat = open_chat("upper")
    chat.write("@forever and @asker go")
    stopped = chat.item(re="m-1", status="runs")
    chat.item(kind="asks", re="m-1")
    chat.say("stop", reply=stopped["id"])
    chat.item(id=stopped["id"], status="cancelled")
    other = chat.item(re="m-1", status="asks")
    assert other["who"]["name"] == "asker"
    chat.say("stop")
    chat.item(id=other["id"], status="cancelled")


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


def test_what_python_says_is_made_where_it_is_said(open_chat: Open, tmp_path: Path) -> None:
    chat, text, file = open_chat("upper"), Slow("look"), tmp_path / "a.png"
    file.write_bytes(PNG)
    assert chat.ask(text, files=str(file)) == "LOOK"
    assert asyncio.run(chat.ask_async(text, files=file)) == "LOOK"
    assert len(text.threads) == 2
    assert "aios-node" not in text.threads
    chat.until(lambda page: page.said()[1::2] == [("upper", "LOOK")] * 2)
    sent = [item["files"] for item in chat.page.sorted() if item.get("files")]
    assert [(one["name"], one["size"]) for (one,) in sent] == [("a.png", len(PNG))] * 2


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

    def interrupted(*_: Any) -> Any:
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
