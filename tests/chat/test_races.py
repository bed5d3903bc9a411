"""Two things in the same moment, and things cut in the middle: the promises still hold."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from aios_nb.errors import AiosError, InvalidParams
from tests.sites import Gate, TestSite

MakeSite = Callable[..., TestSite]


async def upper(text: str) -> str:
    """Shouts."""
    return text.upper()


def gated() -> tuple[Any, Gate]:
    gate = Gate()

    async def slow(text: str) -> str:
        await gate.pass_through(text)
        return f"done {text}"

    return slow, gate


async def cut(work: Awaitable[Any], turns: int) -> None:
    """Start it, and cancel it after so many turns of the loop."""
    task = asyncio.ensure_future(work)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def orphans(site: TestSite) -> list[Any]:
    """Events of conversations that are not there."""
    store = site.rooms.chat.log.store
    return site.on_loop(
        lambda: store.read(
            "SELECT text FROM events WHERE conversation IS NOT NULL"
            " AND conversation NOT IN (SELECT n FROM conversations)"
        )
    )


@pytest.mark.parametrize("turns", range(6))
def test_an_interrupted_open_harms_nobody(make_site: MakeSite, turns: int) -> None:
    site = make_site(upper)
    client = site.node.client
    site.node.run(lambda: cut(client.call("chat.open", agents=["upper"]), turns))
    for text in ("a", "b"):
        assert site.call("chat.send", agent="upper", text=text)["text"] == text.upper()
    assert site.call("chat.open", agents=["upper"])["conversation"]
    assert orphans(site) == []


@pytest.mark.parametrize("turns", range(6))
def test_an_interrupted_delete_is_done_or_not(make_site: MakeSite, turns: int) -> None:
    site = make_site(upper)
    conversation = site.call("chat.send", agent="upper", text="x")["conversation"]
    client = site.node.client
    site.node.run(lambda: cut(client.call("chat.delete", conversation=conversation), turns))
    listed = {row["conversation"] for row in site.call("chat.list")["conversations"]}
    if conversation in listed:
        assert len(site.history(conversation)) == 2
    else:
        with pytest.raises(InvalidParams, match="no such conversation"):
            site.call("chat.send", agent="upper", text="y", conversation=conversation)
    assert orphans(site) == []


@pytest.mark.parametrize("turns", range(6))
def test_deleting_and_sending_at_once_leave_no_orphan(make_site: MakeSite, turns: int) -> None:
    site = make_site(upper)
    conversation = site.call("chat.send", agent="upper", text="x")["conversation"]
    client = site.node.client

    async def both() -> list[Any]:
        deleting = asyncio.ensure_future(client.call("chat.delete", conversation=conversation))
        for _ in range(turns):
            await asyncio.sleep(0)
        sending = [
            client.call("chat.send", agent="upper", text="y", conversation=conversation),
            client.call("chat.react", conversation=conversation, message_id="m", reaction="!"),
            client.call("chat.join", conversation=conversation, who="echo"),
        ]
        return await asyncio.gather(deleting, *sending, return_exceptions=True)

    done = site.node.run(both)
    assert done[0]["deleted"]
    assert all(isinstance(one, (dict, AiosError)) for one in done), done
    assert orphans(site) == []
    site.stop()
    site = make_site(upper)
    new = site.call("chat.send", agent="upper", text="new")["conversation"]
    assert [row["text"] for row in site.history(new)] == ["new", "NEW"]


def test_sending_while_a_delete_waits_for_a_run_is_refused(make_site: MakeSite) -> None:
    stubborn = Gate()

    async def slow(text: str) -> str:
        try:
            await stubborn.pass_through(text)
        except asyncio.CancelledError:
            await stubborn._open.wait()
            raise
        return text

    site = make_site(slow, upper)
    call = site.start("chat.send", agent="slow", text="x", message_id="m")
    site.node.run(lambda: stubborn.arrived(1))
    (row,) = site.call("chat.list")["conversations"]
    deleting = site.start("chat.delete", conversation=row["conversation"])
    site.node.run(lambda: asyncio.sleep(0))
    with pytest.raises(InvalidParams, match="no such conversation"):
        site.call("chat.send", agent="upper", text="y", conversation=row["conversation"])
    site.on_loop(stubborn.open)
    assert deleting.result()["deleted"]
    with pytest.raises(AiosError):
        call.result()
    assert orphans(site) == []


def test_a_clear_out_leaves_what_is_in_use(make_site: MakeSite) -> None:
    from aios_nb import params as p
    from aios_nb.access import Caller, Principal
    from tests.sites import limits

    slow, gate = gated()
    site = make_site(slow, limits=limits(stranger_log_days=0.0))
    chat = site.rooms.chat
    stranger = Principal(Caller.NODE, "a" * 32)
    running = site.node.loop.submit(chat.send(stranger, p.Send("slow", "x")))
    site.node.run(lambda: gate.arrived(1))
    site.node.run(chat.tidy)
    site.on_loop(gate.open)
    assert running.result()["text"] == "done x"
    assert orphans(site) == []
    site.node.run(chat.tidy)
    assert site.call("chat.list")["conversations"] == []


@pytest.mark.parametrize("turns", range(5))
def test_a_node_stops_whatever_is_pending(make_site: MakeSite, turns: int) -> None:
    site = make_site(upper)
    empty = site.call("chat.open", agents=["upper"])["conversation"]
    site.call("chat.leave", conversation=empty, who="upper")
    client = site.node.client

    async def start_some() -> None:
        for n in range(5):
            for work in (
                client.call("chat.post", conversation=empty, text=f"nobody hears {n}"),
                client.call("chat.send", agent="upper", text="x", message_id="same"),
                client.call("chat.send", agent="upper", text=str(n)),
            ):
                asyncio.ensure_future(work).add_done_callback(lambda done: done.exception())
        for _ in range(turns):
            await asyncio.sleep(0)

    site.node.run(start_some)
    site.stop()  # the ceiling of the test is the assertion


def test_two_joins_and_a_new_title_at_once_are_all_kept(make_site: MakeSite) -> None:
    site = make_site(upper)
    conversation = site.call("chat.open", agents=["upper"])["conversation"]
    client = site.node.client

    async def all_at_once() -> None:
        await asyncio.gather(
            client.call("chat.join", conversation=conversation, who="echo"),
            client.call("chat.join", conversation=conversation, who="calc"),
            client.call("chat.join", conversation=conversation, who="tg:1:2"),
            client.call("chat.rename", conversation=conversation, title="all"),
        )

    site.node.run(all_at_once)
    site.stop()
    site = make_site(upper)
    (row,) = site.call("chat.list")["conversations"]
    assert {agent.split("@")[0] for agent in row["agents"]} == {"upper", "echo", "calc"}
    assert row["title"] == "all"


def test_two_questions_at_once_are_asked_one_after_another(make_site: MakeSite) -> None:
    left: list[float] = []

    async def curious(text: str, ctx: Any) -> str:
        first, second = await asyncio.gather(ctx.ask_user("one?"), ctx.ask_user("two?"))
        left.append(ctx.deadline)
        return f"{first} {second}"

    site = make_site(curious)
    asked = site.call("chat.send", agent="curious", text="x", message_id="m", deadline_s=20)
    answers = {"one?": "1", "two?": "2"}
    again = site.call("chat.answer", message_id="m", text=answers[asked["text"]])
    assert again["status"] == "input_required"
    done = site.call("chat.answer", message_id="m", text=answers[again["text"]])
    assert done["text"] == "1 2"
    assert left[0] <= 20


def test_a_message_for_nobody_cannot_be_cancelled_or_listened_to(make_site: MakeSite) -> None:
    site = make_site(upper)
    conversation = site.call("chat.open", agents=["upper"])["conversation"]
    site.call("chat.leave", conversation=conversation, who="upper")
    posted = site.call("chat.post", conversation=conversation, text="hello?", message_id="m")
    assert posted["replies"] == []
    for method in ("chat.cancel", "chat.answer"):
        more = {"text": "x"} if method == "chat.answer" else {}
        with pytest.raises(InvalidParams):
            site.call(method, message_id="m", **more)
    with pytest.raises(InvalidParams, match="nobody"):
        site.stream(message_id="m")
    again = site.call("chat.post", conversation=conversation, text="hello?", message_id="m")
    assert again == posted


def test_opened_conversations_are_all_listed_page_by_page(make_site: MakeSite) -> None:
    site = make_site(upper)
    opened = [site.call("chat.open", agents=["upper"])["conversation"] for _ in range(5)]
    pages: list[str] = []
    before: dict[str, Any] = {}
    while rows := site.call("chat.list", limit=2, **before)["conversations"]:
        pages += [row["conversation"] for row in rows]
        before = {"before": rows[-1]["cursor"]}
    assert pages == opened[::-1]


def test_long_histories_come_in_pages_that_fit(make_site: MakeSite) -> None:
    async def long(text: str) -> str:
        return "x" * 1_000_000

    site = make_site(long)
    conversation = site.call("chat.send", agent="long", text="0")["conversation"]
    for n in range(1, 12):
        site.call("chat.send", agent="long", text=str(n), conversation=conversation)
    page = site.call("chat.history", conversation=conversation)
    assert page["more"] is True
    assert sum(len(row["text"]) for row in page["messages"]) < 6_000_000
    assert len(site.node.history(conversation).messages) == 24
    exported = site.call("chat.export", conversation=conversation, format="json")
    assert exported["text"].count("x" * 1_000_000) == 12


def test_a_new_member_may_read_the_files_so_far(make_site: MakeSite) -> None:
    from aios_nb.access import Caller, Principal
    from aios_nb.parts import File

    async def drawing(text: str) -> File:
        return File(b"picture", name="p.png")

    site = make_site(drawing)
    sent = site.call("chat.send", agent="drawing", text="x")
    member = Principal(Caller.TOKEN, "tg:1:2")
    blobs = site.rooms.chat.blobs
    sha256 = sent["files"][0]["sha256"]
    assert not site.on_loop(lambda: blobs.may_read(sha256, member))
    site.call("chat.join", conversation=sent["conversation"], who="tg:1:2")
    assert site.on_loop(lambda: blobs.may_read(sha256, member))


def test_with_several_agents_the_status_is_the_worst_of_theirs(make_site: MakeSite) -> None:
    async def asker(text: str, ctx: Any) -> str:
        return str(await ctx.ask_user("well?"))

    site = make_site(upper, asker)
    conversation = site.call("chat.open", agents=["upper"])["conversation"]
    posted = site.call(
        "chat.post", conversation=conversation, text="@asker @upper go", message_id="m"
    )
    replies = {one["agent"].split("@")[0]: one["reply_id"] for one in posted["replies"]}
    _, asked = site.stream(message_id=replies["asker"])
    assert asked["text"] == "well?"
    assert site.history(conversation)[0]["status"] == "input_required"
    assert site.call("chat.answer", message_id=replies["asker"], text="so")["text"] == "so"
    assert site.history(conversation)[0]["status"] == "done"


def test_what_was_asked_is_known_when_its_agent_is_gone(make_site: MakeSite) -> None:
    site = make_site(upper)
    first = site.call("chat.send", agent="upper", text="x", message_id="m")
    site.call("agents.withdraw", name="upper")
    assert site.call("chat.send", agent="upper", text="x", message_id="m") == first
    with pytest.raises(InvalidParams, match="another message"):
        site.call("chat.send", agent="upper", text="y", message_id="m")
    with pytest.raises(AiosError, match="no such agent"):
        site.call("chat.send", agent="upper", text="x", message_id="new")


def test_an_agent_cannot_stop_its_own_node(make_site: MakeSite) -> None:
    async def traitor(text: str) -> str:
        site.node.stop()
        return "stopped"

    site = make_site(traitor)
    with pytest.raises(AiosError, match="cannot be stopped"):
        site.call("chat.send", agent="traitor", text="x")
    assert site.call("chat.send", agent="echo", text="alive")["text"] == "alive"
    site.stop()
    site = make_site(upper)  # the name and the port are free again
    assert site.call("chat.send", agent="upper", text="x")["text"] == "X"


@pytest.mark.parametrize("turns", range(6))
def test_an_interrupted_answer_is_given_once_or_not_at_all(make_site: MakeSite, turns: int) -> None:
    async def asker(text: str, ctx: Any) -> str:
        return f"you said {await ctx.ask_user('well?')}"

    site = make_site(asker)
    asked = site.call("chat.send", agent="asker", text="x", message_id="m")
    client = site.node.client
    site.node.run(lambda: cut(client.call("chat.answer", message_id="m", text="first"), turns))
    said = [row["text"] for row in site.history(asked["conversation"])]
    if "first" in said:
        with pytest.raises(InvalidParams, match="waits for no answer"):
            site.call("chat.answer", message_id="m", text="second")
        assert site.stream(message_id="m")[1]["text"] == "you said first"
    else:
        assert site.call("chat.answer", message_id="m", text="second")["text"] == "you said second"
    answers = [row["text"] for row in site.history(asked["conversation"])]
    assert answers.count("first") + answers.count("second") == 1


def test_two_who_list_in_the_same_moment_see_the_same(make_site: MakeSite) -> None:
    site = make_site(upper)
    asked = site.call("chat.send", agent="upper", text="x")["conversation"]

    async def list_twice() -> list[Any]:
        client = site.node.client
        return await asyncio.gather(client.call("chat.list"), client.call("chat.list"))

    for listed in site.node.run(list_twice):
        assert [row["conversation"] for row in listed["conversations"]] == [asked]


def test_an_agent_runs_in_the_context_of_whoever_asked(make_site: MakeSite) -> None:
    """And not in that of whoever asked in the same moment: a cell shows what its agents print."""
    who: ContextVar[str] = ContextVar("who")
    seen: dict[str, str] = {}

    async def look(text: str) -> str:
        seen[text] = who.get()
        return text

    site = make_site(look)

    async def ask(name: str) -> None:
        who.set(name)
        await site.node.client.call("chat.send", agent="look", text=name)

    async def ask_all() -> None:
        await asyncio.gather(*(ask(name) for name in "abcdef"))

    site.node.run(ask_all)
    assert seen == {name: name for name in "abcdef"}
