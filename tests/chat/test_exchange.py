"""A request is logged, run once, answered, and found again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from aios_nb.agents.decorator import agent
from aios_nb.agents.definition import describe
from aios_nb.agents.host import AgentHost
from aios_nb.errors import (
    AgentFailed,
    Busy,
    Cancelled,
    DeadlinePassed,
    InvalidParams,
    NoSuchAgent,
    TooLarge,
)
from tests.sites import Gate, TestSite, limits

MakeSite = Callable[..., TestSite]


async def upper(text: str) -> str:
    """Shouts."""
    return text.upper()


def counter() -> tuple[Any, list[str]]:
    seen: list[str] = []

    async def count(text: str) -> str:
        seen.append(text)
        return str(len(seen))

    return count, seen


def gated() -> tuple[Any, Gate]:
    gate = Gate()

    async def slow(text: str) -> str:
        await gate.pass_through(text)
        return f"done {text}"

    return slow, gate


def arrived(site: TestSite, gate: Gate, count: int = 1) -> None:
    site.node.run(lambda: gate.arrived(count))


def test_an_answer_has_all_the_fields_of_the_contract(make_site: MakeSite) -> None:
    site = make_site(upper)
    result = site.call("chat.send", agent="upper", text="hi", message_id="m1")
    assert result["text"] == "HI"
    assert result["status"] == "done"
    assert result["message_id"] == "m1"
    assert set(result) == {
        "conversation", "message_id", "reply_id", "status", "text", "data", "files",
    }  # fmt: skip


def test_request_and_reply_are_in_the_log_in_order(make_site: MakeSite) -> None:
    site = make_site(upper)
    first = site.call("chat.send", agent="upper", text="a")
    site.call("chat.send", agent="upper", text="b", conversation=first["conversation"])
    rows = site.history(first["conversation"])
    assert [row["text"] for row in rows] == ["a", "A", "b", "B"]
    assert [row["seq"] for row in rows] == [1, 2, 3, 4]
    assert {row["status"] for row in rows} == {"done"}
    assert rows[0]["sender"] == {"id": f"owner@{site.node.node_id}", "type": "human"}
    assert rows[1]["sender"] == {"id": f"upper@{site.node.node_id}", "type": "agent"}
    assert rows[1]["ref"] == rows[0]["message_id"]


def test_the_same_id_again_gets_the_stored_answer_and_runs_nothing(make_site: MakeSite) -> None:
    count, seen = counter()
    site = make_site(count)
    first = site.call("chat.send", agent="count", text="x", message_id="same")
    again = site.call("chat.send", agent="count", text="x", message_id="same")
    assert again == first
    assert seen == ["x"]
    assert len(site.history(first["conversation"])) == 2


def test_a_repeat_joins_the_call_that_is_under_way(make_site: MakeSite) -> None:
    slow, gate = gated()
    site = make_site(slow)
    calls = [site.start("chat.send", agent="slow", text="x", message_id="same") for _ in range(20)]
    arrived(site, gate)
    site.on_loop(gate.open)
    results = [call.result() for call in calls]
    assert all(result == results[0] for result in results)
    assert gate.entered == ["x"]


def test_the_same_id_for_another_message_is_refused(make_site: MakeSite) -> None:
    site = make_site(upper)
    site.call("chat.send", agent="upper", text="x", message_id="same")
    for changed in (
        {"text": "y"},
        {"text": "x", "data": {"n": 1}},
        {"text": "x", "agent": "echo"},
    ):
        with pytest.raises(InvalidParams, match="another message"):
            site.call("chat.send", **{"agent": "upper", "message_id": "same", **changed})


def test_the_same_id_in_another_conversation_is_refused(make_site: MakeSite) -> None:
    site = make_site(upper)
    site.call("chat.send", agent="upper", text="x", message_id="same")
    other = site.call("chat.open", agents=["upper"])["conversation"]
    with pytest.raises(InvalidParams, match="another conversation"):
        site.call("chat.send", agent="upper", text="x", message_id="same", conversation=other)


def test_an_id_that_stands_in_the_log_for_something_else_is_refused(make_site: MakeSite) -> None:
    site = make_site(upper)
    first = site.call("chat.send", agent="upper", text="x")
    with pytest.raises(InvalidParams, match="taken in this conversation"):
        site.call(
            "chat.send",
            agent="upper",
            text="y",
            message_id=first["reply_id"],
            conversation=first["conversation"],
        )


def test_a_failing_agent_gives_its_caller_one_line_and_is_remembered(
    make_site: MakeSite, caplog: pytest.LogCaptureFixture
) -> None:
    runs = 0

    def broken(text: str) -> str:
        nonlocal runs
        runs += 1
        raise ValueError(f"cannot {text}")

    site = make_site(broken)
    for _ in range(2):
        with pytest.raises(AgentFailed, match="cannot fly") as failed:
            site.call("chat.send", agent="broken", text="fly", message_id="same")
        assert failed.value.data["status"] == "failed"
        assert failed.value.data["message_id"] == "same"
        assert "\n" not in failed.value.message
        assert "Traceback" not in str(failed.value.to_wire())
    assert runs == 1
    assert "Traceback" in caplog.text
    rows = site.history(failed.value.data["conversation"])
    assert [row["kind"] for row in rows] == ["message", "status"]
    assert rows[0]["status"] == "failed"


def test_whatever_escapes_ends_the_run_and_the_node_stops(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Odd(BaseException):
        pass

    errors = [GeneratorExit, Odd]

    async def carry(*_: Any) -> Any:
        raise errors.pop()

    site = make_site(upper)
    monkeypatch.setattr(AgentHost, "carry", carry)
    while errors:
        with pytest.raises(AgentFailed, match="could not be run"):
            site.call("chat.send", agent="upper", text="x")
    site.stop()


def test_no_such_agent_offers_near_names(make_site: MakeSite) -> None:
    site = make_site(upper)
    with pytest.raises(NoSuchAgent) as missing:
        site.call("chat.send", agent="uper", text="x")
    assert "did you mean upper?" in str(missing.value)


def test_a_late_agent_is_stopped_at_the_deadline(make_site: MakeSite) -> None:
    slow, gate = gated()
    site = make_site(slow)
    with pytest.raises(DeadlinePassed) as late:
        site.call("chat.send", agent="slow", text="x", deadline_s=0.1)
    assert late.value.data["ran"] == "unknown"
    assert site.history(late.value.data["conversation"])[0]["status"] == "failed"
    assert gate.entered == ["x"]


def test_an_agents_own_limit_counts_too(make_site: MakeSite) -> None:
    async def forever(text: str) -> str:
        await asyncio.Event().wait()
        return text

    site = make_site(describe(forever, timeout_s=0.1))
    with pytest.raises(DeadlinePassed):
        site.call("chat.send", agent="forever", text="x", deadline_s=60)


def test_cancel_stops_the_run_and_says_so(make_site: MakeSite) -> None:
    stopped: list[bool] = []
    gate = Gate()

    async def stoppable(text: str) -> str:
        try:
            await gate.pass_through(text)
        except asyncio.CancelledError:
            stopped.append(True)
            raise
        return text

    site = make_site(stoppable)
    call = site.start("chat.send", agent="stoppable", text="x", message_id="m")
    arrived(site, gate)
    assert site.call("chat.cancel", message_id="m")["status"] == "cancelled"
    with pytest.raises(Cancelled):
        call.result()
    assert stopped == [True]
    assert site.call("chat.cancel", message_id="m")["status"] == "cancelled"


def test_cancelling_what_is_over_changes_nothing(make_site: MakeSite) -> None:
    site = make_site(upper)
    site.call("chat.send", agent="upper", text="x", message_id="m")
    assert site.call("chat.cancel", message_id="m")["status"] == "done"
    with pytest.raises(InvalidParams, match="no such message"):
        site.call("chat.cancel", message_id="other")


def test_one_run_at_a_time_in_a_conversation_five_wait_then_busy(make_site: MakeSite) -> None:
    slow, gate = gated()
    site = make_site(slow)
    conversation = site.call("chat.open", agents=["slow"])["conversation"]
    calls = []
    for n in range(6):
        calls.append(
            site.start(
                "chat.send",
                agent="slow",
                text=str(n),
                conversation=conversation,
                message_id=f"m{n}",
            )
        )
        if n == 0:
            arrived(site, gate)
        else:
            _until_logged(site, conversation, n + 1)
    with pytest.raises(Busy) as busy:
        site.call("chat.send", agent="slow", text="6", conversation=conversation)
    assert busy.value.data["retry_after_s"] > 0
    assert gate.entered == ["0"]
    statuses = [row["status"] for row in site.history(conversation)]
    assert statuses == ["running", *["accepted"] * 5]
    site.on_loop(gate.open)
    assert [call.result()["text"] for call in calls] == [f"done {n}" for n in range(6)]
    assert gate.entered == [str(n) for n in range(6)]
    rows = site.history(conversation)
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))


def _until_logged(site: TestSite, conversation: str, count: int) -> None:
    async def wait() -> None:
        log = site.rooms.chat.log
        found = log.get(conversation)
        while found.last_seq < count:
            await log.news(log.cursor)

    site.node.run(wait)


def test_other_conversations_do_not_wait(make_site: MakeSite) -> None:
    slow, gate = gated()
    site = make_site(slow)
    calls = [site.start("chat.send", agent="slow", text=str(n)) for n in range(30)]
    arrived(site, gate, 30)
    site.on_loop(gate.open)
    assert {call.result()["status"] for call in calls} == {"done"}


def test_wait_false_answers_at_once_and_the_reply_comes_later(make_site: MakeSite) -> None:
    slow, gate = gated()
    site = make_site(slow)
    taken = site.call("chat.send", agent="slow", text="x", wait=False)
    assert taken["status"] == "accepted"
    assert taken["text"] == ""
    arrived(site, gate)
    site.on_loop(gate.open)
    _, result = site.stream(message_id=taken["message_id"])
    assert result["text"] == "done x"
    assert result["reply_id"] == taken["reply_id"]


def test_too_large_is_refused_before_anything_is_stored(make_site: MakeSite) -> None:
    site = make_site(upper)
    for changed in ({"text": "x" * ((1 << 20) + 1)}, {"text": "x", "data": "y" * (1 << 20)}):
        with pytest.raises(TooLarge):
            site.call("chat.send", agent="upper", **changed)
    assert site.call("chat.list")["conversations"] == []


def test_a_node_at_its_limit_is_busy(make_site: MakeSite) -> None:
    slow, gate = gated()
    site = make_site(slow, limits=limits(runs=3))
    calls = [site.start("chat.send", agent="slow", text=str(n)) for n in range(3)]
    arrived(site, gate, 3)
    with pytest.raises(Busy):
        site.call("chat.send", agent="slow", text="3")
    site.on_loop(gate.open)
    for call in calls:
        call.result()
    assert site.call("chat.send", agent="slow", text="4")["status"] == "done"


def test_refinement_rounds_see_the_conversation_so_far(make_site: MakeSite) -> None:
    async def recall(text: str, ctx: Any) -> str:
        return " | ".join(message.text for message in ctx.messages)

    site = make_site(recall)
    first = site.call("chat.send", agent="recall", text="one")
    assert first["text"] == ""
    conversation = first["conversation"]
    second = site.call("chat.send", agent="recall", text="two", conversation=conversation)
    assert second["text"] == "one | "
    third = site.call("chat.send", agent="recall", text="three", conversation=conversation)
    assert third["text"] == "one |  | two | one | "


def test_an_agent_calls_another_in_a_child_conversation(make_site: MakeSite) -> None:
    async def asks_upper(text: str, ctx: Any) -> str:
        return f"it said {await ctx.call('upper', text)}"

    site = make_site(upper, asks_upper)
    result = site.call("chat.send", agent="asks_upper", text="x")
    assert result["text"] == "it said X"
    chats = site.call("chat.list")["conversations"]
    child = next(chat for chat in chats if chat["parent"] == result["conversation"])
    rows = site.history(child["conversation"])
    assert rows[0]["sender"]["id"] == f"asks_upper@{site.node.node_id}"
    assert rows[1]["text"] == "X"


def test_a_circle_of_agents_is_refused(make_site: MakeSite) -> None:
    async def ping(text: str, ctx: Any) -> str:
        return str(await ctx.call("pong", text))

    async def pong(text: str, ctx: Any) -> str:
        return str(await ctx.call("ping", text))

    site = make_site(ping, pong)
    with pytest.raises(AgentFailed) as refused:
        site.call("chat.send", agent="ping", text="x")
    assert "circle" in str(refused.value) or "already at work" in str(refused.value)


def test_a_chain_longer_than_the_limit_is_refused(make_site: MakeSite) -> None:
    def link(n: int) -> Any:
        async def step(text: str, ctx: Any) -> str:
            return str(await ctx.call(f"s{n + 1}", text))

        return describe(step, name=f"s{n}")

    site = make_site(*(link(n) for n in range(12)))
    with pytest.raises(AgentFailed, match="limit of 8"):
        site.call("chat.send", agent="s0", text="x")


def test_cancelling_a_caller_stops_whom_it_called(make_site: MakeSite) -> None:
    slow, gate = gated()

    async def asks_slow(text: str, ctx: Any) -> str:
        return str(await ctx.call("slow", text))

    site = make_site(slow, asks_slow)
    call = site.start("chat.send", agent="asks_slow", text="x", message_id="m")
    arrived(site, gate)
    site.call("chat.cancel", message_id="m")
    with pytest.raises(Cancelled):
        call.result()
    chats = site.call("chat.list")["conversations"]
    child = next(chat for chat in chats if chat["parent"])
    _until_status(site, child["conversation"], "cancelled")


def _until_status(site: TestSite, conversation: str, status: str) -> None:
    async def wait() -> None:
        log = site.rooms.chat.log
        while True:
            cursor = log.cursor
            found = await site.node.client.call("chat.history", conversation=conversation)
            if found["messages"][0]["status"] == status:
                return
            await log.news(cursor)

    site.node.run(wait)


def test_a_question_to_the_user_is_answered_and_the_run_goes_on(make_site: MakeSite) -> None:
    async def polite(text: str, ctx: Any) -> str:
        name = await ctx.ask_user("who are you?")
        return f"hello {name}"

    site = make_site(polite)
    asked = site.call("chat.send", agent="polite", text="hi", message_id="m")
    assert asked["status"] == "input_required"
    assert asked["text"] == "who are you?"
    assert site.history(asked["conversation"])[0]["status"] == "input_required"
    answered = site.call("chat.answer", message_id="m", text="Ada")
    assert (answered["status"], answered["text"]) == ("done", "hello Ada")
    with pytest.raises(InvalidParams, match="waits for no answer"):
        site.call("chat.answer", message_id="m", text="again")
    again = site.call("chat.send", agent="polite", text="hi", message_id="m")
    assert again["text"] == "hello Ada"


def test_nobody_waits_behind_a_question_and_who_does_not_wait_queues(make_site: MakeSite) -> None:
    async def polite(text: str, ctx: Any) -> str:
        return f"{text} {await ctx.ask_user('who are you?')}" if text == "hi" else text.upper()

    site = make_site(polite, upper)
    asked = site.call("chat.send", agent="polite", text="hi", message_id="m")
    there = {"conversation": asked["conversation"]}
    with pytest.raises(Busy, match=r"polite waits.*who are you\?.*reply\.answer") as refused:
        site.call("chat.send", agent="polite", text="Ada", **there)
    assert refused.value.data["asks"] == "m"
    assert site.call("chat.send", agent="upper", text="other", **there)["text"] == "OTHER"
    later = site.call("chat.send", agent="polite", text="later", wait=False, **there)
    posted = site.call("chat.post", text="@polite and then", **there)

    assert (later["status"], len(posted["replies"])) == ("accepted", 1)
    assert site.call("chat.answer", message_id="m", text="Ada")["text"] == "hi Ada"
    assert site.call("chat.send", agent="polite", text="go on", **there)["text"] == "GO ON"


def test_a_question_of_an_agent_behind_an_agent_reaches_the_user(make_site: MakeSite) -> None:
    async def inner(text: str, ctx: Any) -> str:
        return f"({await ctx.ask_user('colour?')})"

    async def outer(text: str, ctx: Any) -> str:
        return f"outer {await ctx.call('inner', text)}"

    site = make_site(inner, outer)
    asked = site.call("chat.send", agent="outer", text="x", message_id="m")
    assert (asked["status"], asked["text"]) == ("input_required", "colour?")
    assert site.call("chat.answer", message_id="m", text="red")["text"] == "outer (red)"


def test_a_sync_agent_may_ask_and_call_too(make_site: MakeSite) -> None:
    def sync_asker(text: str, ctx: Any) -> str:
        return f"{ctx.ask_user('name?')} {ctx.call('upper', text)}"

    site = make_site(upper, sync_asker)
    site.call("chat.send", agent="sync_asker", text="x", message_id="m")
    assert site.call("chat.answer", message_id="m", text="Bo")["text"] == "Bo X"


def test_replacing_an_agent_does_not_disturb_its_runs(make_site: MakeSite) -> None:
    slow, gate = gated()
    site = make_site(slow)
    call = site.start("chat.send", agent="slow", text="x")
    arrived(site, gate)

    async def other(text: str) -> str:
        return "new"

    site.node.host(other, name="slow")
    site.on_loop(gate.open)
    assert call.result()["text"] == "done x"
    assert site.call("chat.send", agent="slow", text="y")["text"] == "new"


def test_a_withdrawn_agent_is_gone(make_site: MakeSite) -> None:
    site = make_site(upper)
    site.call("agents.withdraw", name="upper")
    with pytest.raises(NoSuchAgent):
        site.call("chat.send", agent="upper", text="x")


def test_the_decorator_leaves_the_function_alone() -> None:
    @agent
    def plain(text: str) -> str:
        return text

    assert plain("x") == "x"


def test_cancelling_one_that_waits_does_not_let_the_next_overtake(make_site: MakeSite) -> None:
    slow, gate = gated()
    site = make_site(slow)
    conversation = site.call("chat.open", agents=["slow"])["conversation"]
    for n in range(3):
        site.call(
            "chat.send", agent="slow", text=str(n), conversation=conversation,
            message_id=f"m{n}", wait=False,
        )  # fmt: skip
    arrived(site, gate)
    assert site.call("chat.cancel", message_id="m1")["status"] == "cancelled"
    turns = site.node.run(_some_turns)
    assert turns
    assert gate.entered == ["0"]
    site.on_loop(gate.open)
    assert site.stream(message_id="m2")[1]["text"] == "done 2"
    assert gate.entered == ["0", "2"]


async def _some_turns() -> int:
    for _ in range(50):
        await asyncio.sleep(0)
    return 50


def test_cancelled_before_it_is_stored_it_never_runs(make_site: MakeSite) -> None:
    count, seen = counter()
    site = make_site(count)

    site.call("chat.send", agent="echo", text="so that the caller is known")

    async def send_and_cancel() -> str:
        client = site.node.client
        sending = asyncio.create_task(
            client.call("chat.send", agent="count", text="x", message_id="m")
        )
        await asyncio.sleep(0)  # taken, not committed
        status = (await client.call("chat.cancel", message_id="m"))["status"]
        with pytest.raises(Cancelled):
            await sending
        return str(status)

    assert site.node.run(send_and_cancel) == "cancelled"
    assert seen == []


def test_a_conversation_in_use_is_never_forgotten(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aios_nb.chat import conversation as live

    monkeypatch.setattr(live, "LIVE_CONVERSATIONS", 8)
    slow, gate = gated()
    site = make_site(slow, upper)
    first = site.call("chat.send", agent="slow", text="x", message_id="m", wait=False)
    arrived(site, gate)
    for n in range(40):
        site.call("chat.send", agent="upper", text=str(n))
    conversation = first["conversation"]
    site.call("chat.send", agent="upper", text="meanwhile", conversation=conversation)
    site.on_loop(gate.open)
    assert site.stream(message_id="m")[1]["text"] == "done x"
    rows = site.history(conversation)
    assert [row["seq"] for row in rows] == [1, 2, 3, 4]
    assert rows[0]["status"] == "done"


def test_a_refused_envelope_leaves_no_empty_conversation(make_site: MakeSite) -> None:
    slow, gate = gated()
    site = make_site(slow, limits=limits(runs=1))
    site.call("chat.send", agent="slow", text="x", wait=False)
    arrived(site, gate)
    envelope = {
        "sender": {"id": "me", "type": "human"},
        "recipient": {"id": "slow", "type": "agent"},
        "message_type": "request",
        "conversation_id": "theirs",
        "content": {"task": "go"},
    }
    with pytest.raises(Busy):
        site.call("aios.message", envelope=envelope)
    with pytest.raises(InvalidParams, match="no such conversation"):
        site.history("theirs")
    site.on_loop(gate.open)
