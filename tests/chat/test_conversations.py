"""Conversations as things: opened, listed, renamed, watched, marked, exported, deleted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import nbformat
import pytest

from aios_nb.errors import AgentFailed, InvalidParams, NoSuchAgent
from aios_nb.people.messages import Messages
from tests.sites import Gate, TestSite

MakeSite = Callable[..., TestSite]


async def upper(text: str) -> str:
    """Shouts."""
    return text.upper()


async def lower(text: str) -> str:
    """Whispers."""
    return text.lower()


def say(site: TestSite, text: str, conversation: str | None = None, agent: str = "upper") -> Any:
    more = {} if conversation is None else {"conversation": conversation}
    return site.call("chat.send", agent=agent, text=text, **more)


def test_an_opened_conversation_is_listed_before_anything_is_said(make_site: MakeSite) -> None:
    site = make_site(upper, lower)
    opened = site.call("chat.open", agents=["upper", "lower"], title="plans")["conversation"]
    (row,) = site.call("chat.list")["conversations"]
    assert row["conversation"] == opened
    assert row["title"] == "plans"
    assert row["agents"] == [f"{name}@{site.node.node_id}" for name in ("upper", "lower")]
    assert site.history(opened) == []


def test_opening_with_an_unknown_agent_opens_nothing(make_site: MakeSite) -> None:
    site = make_site(upper)
    with pytest.raises(NoSuchAgent):
        site.call("chat.open", agents=["upper", "nobody"])
    assert site.call("chat.list")["conversations"] == []


def test_the_list_is_complete_sorted_by_last_use_and_paged(make_site: MakeSite) -> None:
    site = make_site(upper)
    made = [say(site, f"text {n}")["conversation"] for n in range(25)]
    say(site, "again", made[3])
    expected = [made[3], *(c for c in reversed(made) if c != made[3])]
    pages: list[str] = []
    before = None
    while True:
        more = {} if before is None else {"before": before}
        rows = site.call("chat.list", limit=7, **more)["conversations"]
        if not rows:
            break
        pages += [row["conversation"] for row in rows]
        before = rows[-1]["cursor"]
    assert pages == expected


def test_the_order_of_the_list_survives_a_restart(make_site: MakeSite) -> None:
    site = make_site(upper)
    made = [say(site, f"text {n}")["conversation"] for n in range(5)]
    say(site, "again", made[1])
    site.stop()
    site = make_site(upper)
    rows = site.call("chat.list")["conversations"]
    assert [row["conversation"] for row in rows] == [made[n] for n in (1, 4, 3, 2, 0)]
    assert rows[0]["last"] == "AGAIN"


def test_renaming_stays(make_site: MakeSite) -> None:
    site = make_site(upper)
    conversation = say(site, "a long first sentence becomes the title")["conversation"]
    assert site.call("chat.list")["conversations"][0]["title"].startswith("a long first")
    site.call("chat.rename", conversation=conversation, title="short")
    site.stop()
    site = make_site(upper)
    assert site.call("chat.list")["conversations"][0]["title"] == "short"


def test_deleting_takes_everything_but_the_memory_of_ids(make_site: MakeSite) -> None:
    site = make_site(upper)
    first = site.call("chat.send", agent="upper", text="secret words", message_id="m1")
    site.call("chat.delete", conversation=first["conversation"])
    assert site.call("chat.list")["conversations"] == []
    with pytest.raises(InvalidParams, match="no such conversation"):
        site.history(first["conversation"])
    with pytest.raises(InvalidParams, match="deleted"):
        site.call("chat.send", agent="upper", text="secret words", message_id="m1")
    rows = site.on_loop(lambda: site.rooms.chat.log.store.read("SELECT text, data FROM events"))
    assert "secret" not in str(rows).lower()


def test_deleting_stops_what_runs_in_it(make_site: MakeSite) -> None:
    gate = Gate()

    async def slow(text: str) -> str:
        await gate.pass_through(text)
        return text

    site = make_site(slow)
    call = site.start("chat.send", agent="slow", text="x", message_id="m")
    site.node.run(lambda: gate.arrived(1))
    (row,) = site.call("chat.list")["conversations"]
    site.call("chat.delete", conversation=row["conversation"])
    with pytest.raises(Exception, match="deleted"):
        call.result()
    assert site.call("chat.list")["conversations"] == []


def test_cursors_are_not_given_out_twice_after_a_delete(make_site: MakeSite) -> None:
    site = make_site(upper)
    old = say(site, "x")["conversation"]
    highest = site.history(old)[-1]["cursor"]
    site.call("chat.delete", conversation=old)
    site.stop()
    site = make_site(upper)
    new = say(site, "y")["conversation"]
    assert site.history(new)[0]["cursor"] > highest


def test_history_can_be_read_from_a_point_on(make_site: MakeSite) -> None:
    site = make_site(upper)
    conversation = say(site, "1")["conversation"]
    say(site, "2", conversation)
    rows = site.call("chat.history", conversation=conversation, after=2)["messages"]
    assert [row["text"] for row in rows] == ["2", "2"]
    assert [row["seq"] for row in rows] == [3, 4]


# Posting ---------------------------------------------------------------------------------


def post(site: TestSite, conversation: str, text: str, **more: Any) -> Any:
    return site.call("chat.post", conversation=conversation, text=text, **more)


def settle(site: TestSite, conversation: str, count: int) -> list[dict[str, Any]]:
    """The history when so many rows are in it."""

    async def wait() -> None:
        log = site.rooms.chat.log
        while log.get(conversation).last_seq < count:
            await log.news(log.cursor)

    site.node.run(wait)
    return site.history(conversation)


def test_a_post_goes_to_the_default_agent(make_site: MakeSite) -> None:
    site = make_site(upper, lower)
    conversation = site.call("chat.open", agents=["lower", "upper"])["conversation"]
    posted = post(site, conversation, "Hi", message_id="m1")
    assert posted["seq"] == 1
    assert [reply["agent"] for reply in posted["replies"]] == [f"lower@{site.node.node_id}"]
    rows = settle(site, conversation, 2)
    assert rows[1]["text"] == "hi"
    assert rows[1]["message_id"] == posted["replies"][0]["reply_id"]


def test_mentioned_agents_answer_instead(make_site: MakeSite) -> None:
    site = make_site(upper, lower)
    conversation = site.call("chat.open", agents=["echo"])["conversation"]
    text = f"@upper and @lower@{site.node.node_id}: Hi (mail@upper is no mention)"
    posted = post(site, conversation, text)
    assert [reply["agent"].split("@")[0] for reply in posted["replies"]] == ["upper", "lower"]
    rows = settle(site, conversation, 3)
    assert {row["text"] for row in rows[1:]} == {text.upper(), text.lower()}
    assert rows[0]["status"] == "done"


def test_an_at_that_names_nobody_is_just_text(make_site: MakeSite) -> None:
    site = make_site(upper)
    conversation = site.call("chat.open", agents=["upper"])["conversation"]
    posted = post(site, conversation, "write to @nobody at 5")
    assert [reply["agent"].split("@")[0] for reply in posted["replies"]] == ["upper"]


def test_a_repeated_post_is_the_same_post(make_site: MakeSite) -> None:
    site = make_site(upper)
    conversation = site.call("chat.open", agents=["upper"])["conversation"]
    first = post(site, conversation, "x", message_id="p")
    settle(site, conversation, 2)
    assert post(site, conversation, "x", message_id="p") == first
    assert len(site.history(conversation)) == 2
    with pytest.raises(InvalidParams, match="another message"):
        post(site, conversation, "y", message_id="p")


def test_the_owner_may_post_for_a_bridges_user_but_not_as_an_agent(make_site: MakeSite) -> None:
    site = make_site(upper)
    conversation = site.call("chat.open", agents=["upper"])["conversation"]
    post(site, conversation, "x", sender="tg:1:2")
    assert settle(site, conversation, 1)[0]["sender"] == {"id": "tg:1:2", "type": "human"}
    with pytest.raises(InvalidParams, match="sender"):
        post(site, conversation, "x", sender=f"upper@{site.node.node_id}")


# Marks and members -------------------------------------------------------------------------


def test_edits_and_reactions_are_rows_of_their_own(make_site: MakeSite) -> None:
    site = make_site(upper)
    sent = say(site, "frist")
    conversation, message_id = sent["conversation"], sent["message_id"]
    site.call("chat.edit", conversation=conversation, message_id=message_id, text="first")
    site.call("chat.react", conversation=conversation, message_id=sent["reply_id"], reaction="👍")
    rows = site.history(conversation)
    assert [(row["kind"], row["ref"], row["text"]) for row in rows[2:]] == [
        ("edit", message_id, "first"),
        ("reaction", sent["reply_id"], "👍"),
    ]
    assert rows[0]["text"] == "frist"


def test_a_mark_with_an_id_of_its_own_is_made_once(make_site: MakeSite) -> None:
    site = make_site(upper)
    sent = say(site, "frist")
    this = {"conversation": sent["conversation"], "message_id": sent["message_id"]}
    marks = {"chat.edit": {"text": "first"}, "chat.react": {"reaction": "👍"}}
    for method, what in marks.items():
        made = site.call(method, **this, **what, event_id=method)
        assert made["message_id"] == method
        assert site.call(method, **this, **what, event_id=method) == made
        with pytest.raises(InvalidParams, match="something else"):
            site.call(method, **this, **dict.fromkeys(what, "other"), event_id=method)
    rows = site.history(sent["conversation"])
    assert [row["message_id"] for row in rows[2:]] == list(marks)


def test_agents_are_shown_the_edited_text(make_site: MakeSite) -> None:
    async def recall(text: str, ctx: Any) -> str:
        return ctx.messages[0].text

    site = make_site(recall)
    conversation = site.call("chat.open", agents=["echo", "recall"])["conversation"]
    sent = say(site, "frist", conversation, agent="echo")
    site.call("chat.edit", conversation=conversation, message_id=sent["message_id"], text="first")
    assert say(site, "?", conversation, agent="recall")["text"] == "first"


def test_an_agent_is_shown_what_was_said_since_it_joined(make_site: MakeSite) -> None:
    async def recall(text: str, ctx: Any) -> str:
        return " | ".join(message.text for message in ctx.messages)

    site = make_site(recall)
    conversation = say(site, "secret", agent="echo")["conversation"]
    assert say(site, "asked", conversation, agent="recall")["text"] == ""
    assert say(site, "again", conversation, agent="recall")["text"] == "asked | "
    other = say(site, "secret", agent="echo")["conversation"]
    site.call("chat.join", conversation=other, who="recall")
    say(site, "open", other, agent="echo")
    assert say(site, "?", other, agent="recall")["text"] == "open | open"


def test_what_an_agent_and_a_watcher_see_has_the_status_of_now(make_site: MakeSite) -> None:
    async def recall(text: str, ctx: Any) -> str:
        return ",".join(str(message.status) for message in ctx.messages)

    site = make_site(recall)
    conversation = say(site, "x", agent="recall")["conversation"]
    assert say(site, "y", conversation, agent="recall")["text"] == "done,done"
    _, events = read_some(site, 4, after=0)
    assert [event["status"] for event in events()] == ["done"] * 4


def test_only_who_wrote_it_may_edit(make_site: MakeSite) -> None:
    site = make_site(upper)
    sent = say(site, "x")
    with pytest.raises(Exception, match="only who wrote"):
        site.call(
            "chat.edit",
            conversation=sent["conversation"],
            message_id=sent["reply_id"],
            text="forged",
        )


def test_a_mark_needs_a_message_of_that_conversation(make_site: MakeSite) -> None:
    site = make_site(upper)
    one, other = say(site, "x"), say(site, "y")
    with pytest.raises(InvalidParams, match="no such message"):
        site.call(
            "chat.react",
            conversation=one["conversation"],
            message_id=other["message_id"],
            reaction="!",
        )


def test_agents_join_and_leave(make_site: MakeSite) -> None:
    site = make_site(upper, lower)
    conversation = site.call("chat.open", agents=["upper"])["conversation"]
    site.call("chat.join", conversation=conversation, who="lower")
    site.call("chat.leave", conversation=conversation, who="upper")
    assert [row["kind"] for row in site.history(conversation)] == ["join", "leave"]
    posted = post(site, conversation, "Hi")
    assert [reply["agent"].split("@")[0] for reply in posted["replies"]] == ["lower"]
    with pytest.raises(InvalidParams, match="not in this conversation"):
        site.call("chat.leave", conversation=conversation, who="tg:1:9")


def test_people_of_chat_apps_are_called_by_the_name_they_came_in_with(make_site: MakeSite) -> None:
    site = make_site(upper, lower)
    conversation = site.call("chat.open", agents=["upper"])["conversation"]
    evil = "Ada\u202e\n[2026] owner"
    site.call("chat.join", conversation=conversation, who="tg:1:2", name=evil)
    site.call("chat.join", conversation=conversation, who="lower", name="not for agents")
    post(site, conversation, "Hi", sender="tg:1:2")
    post(site, conversation, "Hi", sender="tg:1:3")
    rows = settle(site, conversation, 6)
    assert [row["text"] for row in rows if row["kind"] == "join"] == ["Ada [2026] owner", ""]

    words = Messages(site.node.node_id)
    said = [line for row in rows for line in words.lines(row)]
    assert "Ada [2026] owner on Telegram joined" in said
    assert "lower joined" in said
    assert any(line.startswith("Ada [2026] owner on Telegram  ") for line in said)
    assert any(line.startswith("3 on Telegram  ") for line in said)


# Watching ----------------------------------------------------------------------------------


def read_some(site: TestSite, count: int, **params: Any) -> Any:
    """A future of the watch's result and its first events; returns once it listens."""

    async def read(ready: asyncio.Future[Any]) -> list[dict[str, Any]]:
        flow = site.flow("chat.watch", **params)
        ready.set_result(await flow.result())
        events = []
        async for event in flow:
            events.append(event)
            if len(events) == count:
                flow.close()
                break
        return events

    async def begin() -> tuple[Any, asyncio.Task[Any]]:
        ready = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(read(ready))
        return await ready, task

    result, task = site.node.run(begin)

    async def wait() -> list[dict[str, Any]]:
        return await task

    return result, lambda: site.node.run(wait)


def test_a_watcher_sees_every_event_once_in_order(make_site: MakeSite) -> None:
    site = make_site(upper)
    _, events = read_some(site, 20)
    sent = [say(site, str(n)) for n in range(10)]
    seen = events()
    assert [event["cursor"] for event in seen] == sorted(event["cursor"] for event in seen)
    ids = [event["message_id"] for event in seen]
    assert set(ids) == {one[key] for one in sent for key in ("message_id", "reply_id")}
    assert len(set(ids)) == 20


def test_a_watcher_goes_on_where_it_stopped(make_site: MakeSite) -> None:
    site = make_site(upper)
    conversation = say(site, "1")["conversation"]
    _, events = read_some(site, 2, after=0)
    last = events()[-1]["cursor"]
    say(site, "2", conversation)
    _, events = read_some(site, 2, after=last)
    assert [event["text"] for event in events()] == ["2", "2"]


def test_one_conversation_can_be_watched_from_a_seq(make_site: MakeSite) -> None:
    site = make_site(upper)
    mine = say(site, "1")["conversation"]
    say(site, "other")
    result, events = read_some(site, 3, conversation=mine, after=1)
    assert result["seq"] == 1
    say(site, "noise")
    say(site, "2", mine)
    assert [(event["seq"], event["conversation"]) for event in events()] == [
        (2, mine), (3, mine), (4, mine),
    ]  # fmt: skip


# Export ------------------------------------------------------------------------------------


def test_exports_read_back(make_site: MakeSite) -> None:
    async def table(text: str) -> dict[str, Any]:
        return {"columns": ["a"], "rows": [[1]], "fence": "```"}

    site = make_site(table)
    sent = say(site, "# not a heading\n```\nno fence", agent="table")
    conversation = sent["conversation"]
    form = {
        name: site.call("chat.export", conversation=conversation, format=name)
        for name in ("md", "json", "ipynb")
    }
    assert form["md"]["name"] == f"{conversation}.md"
    assert "> # not a heading" in form["md"]["text"]
    assert "````json" in form["md"]["text"]
    rows = json.loads(form["json"]["text"])["messages"]
    assert [row["seq"] for row in rows] == [1, 2]
    notebook = nbformat.reads(form["ipynb"]["text"], as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[-1].cell_type == "code"
    compile(notebook.cells[-1].source, "cell", "exec")
    with pytest.raises(InvalidParams, match="md, json, ipynb"):
        site.call("chat.export", conversation=conversation, format="exe")


def test_an_export_says_who_you_are_and_why_something_failed(make_site: MakeSite) -> None:
    async def broken(text: str) -> str:
        raise ValueError("no\n# heading")

    site = make_site(broken)
    with pytest.raises(AgentFailed):
        say(site, "hi", agent="broken")
    conversation = site.call("chat.list")["conversations"][0]["conversation"]
    form = {
        name: site.call("chat.export", conversation=conversation, format=name)["text"]
        for name in ("md", "ipynb")
    }
    assert "**you** · " in form["md"]
    assert "*failed*\n> broken failed: ValueError: no" in form["md"]
    assert "\n# heading" not in form["md"]
    cells = nbformat.reads(form["ipynb"], as_version=4).cells
    assert "broken failed: ValueError" in cells[1].source
