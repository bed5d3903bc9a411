"""A host or a home that proves its key and then lies: one clear failure, and nothing of it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from aios_nb.errors import AgentFailed, Busy, InvalidParams, RpcError
from tests.between.conftest import Make, until
from tests.between.liar import Answer, Liar, Pieces, delta, response
from tests.sites import TestSite

EMPTY = hashlib.sha256(b"").hexdigest()
DEEP: Any = 0
for _ in range(300):
    DEEP = [DEEP]


@pytest.fixture
def liar() -> Iterator[Liar]:
    with Liar() as liar:
        yield liar


@pytest.fixture
def a(node: Make, liar: Liar) -> TestSite:
    return node("a", join=liar.url)


def told(*deltas: Any) -> Answer:
    return lambda _: Pieces(deltas, response(result="x"))


def files(*names: str, size: int = 0) -> list[dict[str, Any]]:
    return [{"name": n, "mime": "m" * 1000, "size": size, "sha256": EMPTY} for n in names]


NOT_UNDERSTOOD: dict[str, Answer] = {
    "nothing": lambda _: None,
    "a list": lambda _: [1, 2],
    "no envelope": lambda _: {"x": 1},
    "a result that says running": lambda _: response("running", "x"),
    "a result that says failed": lambda _: response("failed", "x"),
    "a result that says cancelled": lambda _: response("cancelled", "x"),
    "a status nobody knows": lambda _: response("weird", "x"),
    "a question without an id": lambda _: response("input_required", "what?"),
    "a question with a long id": lambda _: response("input_required", "what?", question="q" * 1000),
    "a delta that is nothing": told(None),
    "a delta that is a text": told("text"),
    "a delta without a place": told({"text": "x"}),
    "a delta of lists": told(delta(DEEP)),
    "a note of lists": told(delta("x", progress=DEEP)),
    "too much text": lambda _: response(result="y" * 2_000_000),
    "too much data": lambda _: response(data="y" * 2_000_000),
    "too many files": lambda _: response(files=files(*"abcdefghijklmnopqrstuvwxyz")),
    "a file of no size": lambda _: response(files=files("a", size=-1)),
    "a file without a hash": lambda _: response(files=[{**files("a")[0], "sha256": "../x"}]),
}


@pytest.mark.parametrize("lie", NOT_UNDERSTOOD)
def test_an_answer_no_host_may_give_is_one_clear_failure(
    a: TestSite, liar: Liar, lie: str, caplog: pytest.LogCaptureFixture
) -> None:
    liar.says["aios.message"] = liar.says["chat.stream"] = NOT_UNDERSTOOD[lie]
    with pytest.raises(AgentFailed) as caught:
        a.call("chat.send", agent=liar.agent(), text="hello")
    rows = a.history(caught.value.data["conversation"])
    assert [(row["kind"], row["status"]) for row in rows] == [
        ("message", "failed"),
        ("status", "failed"),
    ]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_places_beyond_the_text_and_before_it_add_nothing(a: TestSite, liar: Liar) -> None:
    liar.says["aios.message"] = lambda _: Pieces(
        [delta("abc", -5), delta("abc"), delta("zzz", 100), delta("bcd", 1), delta("", 1 << 70)],
        response(result="abcd"),
    )
    deltas, result = a.stream(agent=liar.agent(), text="hello")
    assert "".join(piece["text"] for piece in deltas) == result["text"] == "abcd"


def test_a_files_name_and_size_are_not_taken_on_trust(a: TestSite, liar: Liar) -> None:
    liar.says["aios.message"] = lambda _: response(files=files("../../.profile"))
    liar.says["blobs.get"] = lambda _: {"size": 0, "chunk": ""}
    [file] = a.call("chat.send", agent=liar.agent(), text="hello")["files"]
    assert (file["name"], file["size"], len(file["mime"])) == ("profile", 0, 100)


@pytest.mark.parametrize(
    "piece",
    [
        None,
        {},
        {"size": 1, "chunk": 5},
        {"size": 1, "chunk": "no base64"},
        {"size": "1", "chunk": ""},
        {"size": 1, "chunk": ""},
        {"size": 1, "chunk": "AAAA"},
        {"size": 1 << 40, "chunk": "AA=="},
        {"size": 1, "chunk": "AA=="},
    ],
)
def test_a_file_that_is_not_what_was_said_is_one_clear_failure(
    a: TestSite, liar: Liar, piece: Any, caplog: pytest.LogCaptureFixture
) -> None:
    liar.says["aios.message"] = lambda _: response(files=files("a", size=1))
    liar.says["blobs.get"] = lambda _: piece
    with pytest.raises(AgentFailed, match="could not be fetched") as caught:
        a.call("chat.send", agent=liar.agent(), text="hello")
    assert caught.value.data["ran"] == "yes"  # its agent has answered
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_questions_without_end_come_to_an_end(a: TestSite, liar: Liar) -> None:
    numbers = iter(range(1_000_000))
    liar.says["aios.message"] = liar.says["chat.stream"] = lambda _: response(
        "input_required", "and now?", question=f"q{next(numbers)}"
    )
    taken = a.call("chat.send", agent=liar.agent(), text="hello", wait=False)
    until(lambda: a.history(taken["conversation"])[0]["status"] == "failed")
    assert len(a.history(taken["conversation"])) < 300
    until(lambda: "chat.cancel" in liar.methods())


def test_the_same_question_again_and_again_comes_to_an_end(a: TestSite, liar: Liar) -> None:
    liar.says["aios.message"] = liar.says["chat.stream"] = lambda _: response(
        "input_required", "and now?", question="q"
    )
    taken = a.call("chat.send", agent=liar.agent(), text="hello", wait=False)
    until(lambda: a.history(taken["conversation"])[0]["status"] == "failed")


def test_odd_details_of_an_error_are_not_passed_on(a: TestSite, liar: Liar) -> None:
    error = Busy("later")
    error.data = {"retry_after_s": 10**400, "ran": ["no"], "reason": 5, "secret": "x"}
    liar.says["aios.message"] = lambda _: error
    with pytest.raises(Busy) as caught:
        a.call("chat.send", agent=liar.agent(), text="hello")
    assert set(caught.value.data) <= {
        "retry_after_s", "conversation", "message_id", "reply_id", "status", "hint",
    }  # fmt: skip
    assert caught.value.data["retry_after_s"] == 1.0
    liar.says["aios.message"] = lambda _: error if len(liar.heard) < 3 else response(result="x")
    a.call("chat.send", agent=liar.agent(), text="hello", wait=False)  # and is tried again
    until(lambda: len(liar.heard) >= 2)


def test_a_host_that_is_busy_when_asked_how_it_goes_is_asked_again(a: TestSite, liar: Liar) -> None:
    """Busy says that nothing was taken; of what is under way it says nothing."""
    heard = threading.Event()

    class Stuck(Pieces):
        async def result(self) -> Any:
            heard.set()
            await asyncio.sleep(1000)

    liar.says["aios.message"] = lambda _: Stuck([delta("one ")], None)
    answers = iter([Busy("too many open streams", retry_after_s=0.01)])
    liar.says["chat.stream"] = lambda _: next(
        answers, Pieces([delta("two", 4)], {"status": "done", "text": "one two"})
    )
    asked = a.start("chat.send", agent=liar.agent(), text="hello")
    assert heard.wait(20)
    liar.hang_up()
    assert asked.result(20)["text"] == "one two"
    assert liar.methods().count("chat.stream") == 2
    assert liar.methods().count("aios.message") == 1


def test_an_agent_that_says_busy_itself_is_not_asked_again(node: Make) -> None:
    ran: list[str] = []

    def busy(text: str) -> str:
        ran.append(text)
        raise Busy("come back tomorrow")

    b = node("b", busy)
    a = node("a", join=b)
    taken = a.call("chat.send", agent="busy", text="hello", wait=False, deadline_s=600)
    until(lambda: a.history(taken["conversation"])[0]["status"] == "failed")
    assert ran == ["hello"]


def test_an_answer_that_meets_a_busy_host_is_brought_again(a: TestSite, liar: Liar) -> None:
    answered = threading.Event()
    busy = iter([Busy("the disk is full", retry_after_s=0.01)])

    def answer(_: Any) -> Any:
        refusal = next(busy, None)
        if refusal is None:
            answered.set()
        return refusal or {"status": "accepted"}

    class Waits(Pieces):
        async def result(self) -> Any:
            await asyncio.to_thread(answered.wait, 20)
            return {"status": "done", "text": "thanks"}

    liar.says["aios.message"] = lambda _: response("input_required", "your name?", question="q1")
    liar.says["chat.stream"] = lambda _: Waits([], None)
    liar.says["chat.answer"] = answer
    reply = a.call("chat.send", agent=liar.agent(), text="hello")
    done = a.call("chat.answer", message_id=reply["message_id"], text="Ada")
    assert done["text"] == "thanks"


def test_a_host_that_has_forgotten_what_it_took_may_have_run_it(a: TestSite, liar: Liar) -> None:
    heard = threading.Event()

    class Stuck(Pieces):
        async def result(self) -> Any:
            heard.set()
            await asyncio.sleep(1000)

    liar.says["aios.message"] = lambda _: Stuck([delta("one ")], None)
    liar.says["chat.stream"] = lambda _: InvalidParams("no such message")
    asked = a.start("chat.send", agent=liar.agent(), text="hello")
    assert heard.wait(20)
    liar.hang_up()
    with pytest.raises(AgentFailed) as caught:
        asked.result(20)
    assert caught.value.data["ran"] == "unknown"
    assert caught.value.data["status"] == "interrupted"


def test_a_host_is_told_to_stop_though_its_link_is_on_its_way_out(a: TestSite, liar: Liar) -> None:
    heard = threading.Event()

    class Stuck(Pieces):
        async def result(self) -> Any:
            heard.set()
            await asyncio.sleep(1000)

    liar.says["aios.message"] = lambda _: Stuck([delta("one ")], None)
    taken = a.call("chat.send", agent=liar.agent(), text="hello", wait=False, deadline_s=600)
    assert heard.wait(20)
    link = a.on_loop(lambda: a.rooms.links.link(liar.node_id))
    liar.drain()
    until(lambda: not link.is_open)
    assert a.call("chat.cancel", message_id=taken["message_id"])["status"] == "cancelled"
    until(lambda: "chat.cancel" in liar.methods())


# A home that lies ---------------------------------------------------------------------------


def shout(text: str) -> str:
    return text.upper()


def refusal(liar: Liar, b: TestSite, **fields: Any) -> str:
    with pytest.raises(RpcError) as caught:
        liar.call(b, "aios.message", envelope=liar.request(b, "shout", "hello", **fields))
    return type(caught.value).__name__


def test_a_home_gets_nothing_for_what_it_may_not_say(node: Make, liar: Liar) -> None:
    b = node("b", shout)
    ok = liar.request(b, "shout", "hello", message_id="m1", conversation_id="c1")
    assert liar.call(b, "aios.message", envelope=ok)["content"]["result"] == "HELLO"
    assert liar.call(b, "aios.message", envelope=ok)["content"]["result"] == "HELLO"
    same = {"message_id": "m1", "conversation_id": "c1"}
    assert refusal(liar, b, **{**same, "conversation_id": "c2"}) == "InvalidParams"
    assert refusal(liar, b, **same, data=5) == "InvalidParams"
    assert refusal(liar, b, **same, files=files("a")) == "InvalidParams"
    me = liar.node_id
    for routing in (
        {"path": [me, *(f"a{n}@{me}" for n in range(10_000))]},
        {"path": [b.node.node_id]},
        {"path": [f"x@{me}"]},
        {"max_hops": 0},
        {"max_hops": -5},
        {"max_hops": True},
        {"deadline_ms": "5"},
        {"deadline_ms": 0},
        {"deadline_ms": -1},
        {"deadline_ms": 1 << 70},
        {"deadline_ms": 0.5},
    ):
        assert refusal(liar, b, **routing) == "InvalidParams", routing
    event = {"message_id": "m", "seq": 1, "kind": "message", "sender": {"id": "x", "type": "human"}}
    assert refusal(liar, b, context=[{**event, "text": "x" * 1_000_000}]) == "TooLarge"
    for method, params in (
        ("chat.cancel", {"message_id": "nothing"}),
        ("chat.answer", {"message_id": "m1", "text": "x"}),
        ("chat.stream", {"message_id": "nothing"}),
        ("blobs.get", {"message_id": "m1", "sha256": EMPTY, "offset": 0}),
    ):
        with pytest.raises(InvalidParams):
            liar.call(b, method, **params)
    [side] = b.call("chat.list")["conversations"]
    assert [row["text"] for row in b.history(side["conversation"])] == ["hello", "HELLO"]


@pytest.mark.parametrize("piece", [InvalidParams("no such file"), {"size": 0, "chunk": ""}, None])
def test_a_home_that_has_not_the_file_it_names_gets_no_run(
    node: Make, liar: Liar, piece: Any
) -> None:
    ran: list[str] = []

    def hears(text: str) -> str:
        ran.append(text)
        return text

    b = node("b", hears)
    liar.says["blobs.get"] = lambda _: piece
    asked = liar.request(b, "hears", "x", message_id="m1", files=files("a", size=1))
    with pytest.raises(AgentFailed) as caught:
        liar.call(b, "aios.message", envelope=asked)
    assert caught.value.data["ran"] == "no"
    assert ran == []


def test_the_text_of_a_run_that_was_begun_anew_is_not_mixed_with_the_old(
    a: TestSite, liar: Liar
) -> None:
    heard = threading.Event()

    class Stuck(Pieces):
        async def result(self) -> Any:
            heard.set()
            await asyncio.sleep(1000)

    new = "quite another text"
    liar.says["aios.message"] = lambda _: Stuck([delta("the old ")], None)
    liar.says["chat.stream"] = lambda params: Pieces(
        [delta(new[params.offset :], params.offset)], {"status": "done", "text": new}
    )
    flow = a.start("chat.send", agent=liar.agent(), text="hello")
    assert heard.wait(20)
    liar.restarted()
    reply = flow.result(20)
    assert reply["text"] == new
    assert [row["text"] for row in a.history(reply["conversation"])] == ["hello", new]
    asked = next(params for method, params in liar.heard if method == "chat.stream")
    assert asked.offset == 0
    deltas, _ = a.stream(message_id=reply["message_id"])
    assert "".join(piece["text"] for piece in deltas) == new
