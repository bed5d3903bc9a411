"""The Python API as people type it."""

from __future__ import annotations

import asyncio
import copy
import functools
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import aios_nb as aios
from aios_nb.agents import decorator
from aios_nb.agents.definition import describe
from aios_nb.config import Settings
from aios_nb.current import program
from aios_nb.errors import Busy, NoSuchAgent, NotRunning, Unreachable, UsageError
from aios_nb.site import History, Peer, Peers, Site
from tests.sites import Slow


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    decorator.declared.clear()
    yield
    aios.down()
    decorator.declared.clear()


def test_the_readmes_first_minute() -> None:
    @aios.agent(about="Adds the numbers in a sentence", tags=["math"])
    def adder(text: str) -> int:
        return sum(int(word) for word in text.split() if word.isdigit())

    node = aios.up(name="alice")
    assert aios.node() is node
    hits = node.search("sum up numbers")
    reply = hits[0].ask("2 and 2")
    assert reply == "4"
    assert reply.data == 4
    assert adder("1 1") == 2  # unchanged


def test_an_agent_declared_later_is_hosted_at_once_and_again_replaces() -> None:
    node = aios.up()

    @aios.agent
    async def greet(text: str) -> str:
        return f"hello {text}"

    assert node.ask("greet", "Ada") == "hello Ada"

    @aios.agent(name="greet")
    async def greet_better(text: str) -> str:
        return f"good day, {text}"

    assert node.ask("greet", "Ada") == "good day, Ada"
    node.withdraw("greet")
    with pytest.raises(NoSuchAgent):
        node.ask("greet", "Ada")
    aios.down()
    with pytest.raises(NoSuchAgent):
        aios.up().ask("greet", "Ada")


def test_versions_count_replacements_and_outlive_the_node() -> None:
    def offer(about: str, **given: str) -> None:
        @aios.agent(name="greet", about=about, **given)  # type: ignore[arg-type]
        async def greet(text: str) -> str:
            return text

    def version() -> str:
        card, record = aios.node().card("greet").card, aios.node().agents()
        assert [hit.version for hit in record if hit.name == "greet"] == [card["version"]]
        return str(card["version"])

    offer("says hello")
    aios.up()
    assert version() == "1"
    offer("says hello")
    assert version() == "2", "the code may be another one"
    aios.down()
    aios.up()
    assert version() == "2", "nothing was replaced"
    aios.down()
    offer("says good day")
    aios.up()
    assert version() == "3"
    offer("says good day", version="2026-11")
    assert version() == "2026-11"


def test_a_declared_agent_comes_back_with_the_next_node() -> None:
    @aios.agent
    async def greet(text: str) -> str:
        return f"hello {text}"

    assert aios.up().ask("greet", "a") == "hello a"
    aios.down()
    assert aios.up().ask("greet", "b") == "hello b"


def test_up_twice_is_the_same_node_and_another_name_is_refused() -> None:
    node = aios.up(name="alice")
    assert aios.up() is node
    assert aios.up(name="alice") is node
    with pytest.raises(UsageError, match="alice"):
        aios.up(name="bob")


def test_without_a_node_it_says_how_to_start_one() -> None:
    with pytest.raises(NotRunning, match=r"aios\.up"):
        aios.node()
    node = aios.up()
    aios.down()
    with pytest.raises(NotRunning, match=r"no node is running.*aios\.up"):
        node.ask("echo", "x")


def test_a_reply_is_a_str_that_goes_on() -> None:
    @aios.agent
    async def recall(text: str, ctx: Any) -> str:
        return str(len(ctx.messages))

    node = aios.up()
    first = node.ask("recall", "a")
    assert isinstance(first, str)
    second = first.ask("b")
    assert (first, second) == ("0", "2")
    assert second.conversation == first.conversation
    history = node.history(first.conversation)
    assert [event.text for event in history.messages] == ["a", "0", "b", "2"]
    assert "recall: 2" in str(history)
    assert str(node.history(second)) == str(node.history(node.chats()[0])) == str(history)
    assert str(asyncio.run(node.history_async(second))) == str(history)
    assert [chat.conversation for chat in node.chats()] == [first.conversation]


def test_tables_and_files_travel_both_ways(tmp_path: Path) -> None:
    @aios.agent
    def table(text: str) -> pd.DataFrame:
        return pd.DataFrame({"x": [1, 2], "y": ["a", None]})

    @aios.agent
    def copy(text: str, ctx: Any) -> aios.File:
        return aios.File(ctx.read(ctx.files[0])[::-1], name="../back.bin")

    node = aios.up()
    frame = node.ask("table", "x").df()
    assert frame["x"].tolist() == [1, 2]
    content = bytes(range(256)) * 5000
    source = tmp_path / "in.bin"
    source.write_bytes(content)
    reply = node.ask("copy", "x", files=[source])
    assert reply.files[0].read() == content[::-1]
    saved = reply.files[0].save(tmp_path)
    assert saved == tmp_path / "back.bin"
    with pytest.raises(UsageError, match=r"back\.bin exists.*another name"):
        reply.files[0].save(tmp_path)
    assert reply.files[0].save(tmp_path / "out.bin").read_bytes() == content[::-1]
    with pytest.raises(UsageError, match="cannot be written"):
        reply.files[0].save(tmp_path / "missing" / "out.bin")


@pytest.mark.parametrize("twin", [False, True])
def test_what_is_slow_to_read_holds_up_who_reads_it_and_nobody_else(
    tmp_path: Path, *, twin: bool
) -> None:
    @aios.agent
    def look(text: str, ctx: Any) -> str:
        return f"{text}: {ctx.read(ctx.files[0]).decode()}"

    node = aios.up()
    slow, text = tmp_path / "slow.txt", Slow("read")
    os.mkfifo(slow)

    async def main() -> None:
        ask = node.ask_async if twin else functools.partial(asyncio.to_thread, node.ask)
        asked = asyncio.create_task(ask("look", text, files=[slow]))  # type: ignore[operator]
        with await asyncio.to_thread(slow.open, "wb") as disk:  # it is being read
            assert await asyncio.wait_for(node.ask_async("echo", "x"), 20) == "x"
            disk.write(b"at last")
        assert await asked == "read: at last"

    asyncio.run(main())
    assert "aios-node" not in text.threads


def test_a_question_is_answered() -> None:
    @aios.agent
    async def polite(text: str, ctx: Any) -> str:
        return f"hello {await ctx.ask_user('name?')}"

    node = aios.up()
    reply = node.ask("polite", "hi")
    assert (reply.status, str(reply)) == ("input_required", "name?")
    with pytest.raises(Busy, match=r"name\?"):
        reply.ask("Ada")
    assert reply.answer("Ada") == "hello Ada"
    with pytest.raises(UsageError, match="asks nothing"):
        node.ask("echo", "x").answer("y")


def test_every_verb_has_an_async_twin_that_leaves_the_callers_loop_free() -> None:
    release = threading.Event()

    @aios.agent
    def slow(text: str) -> str:
        release.wait(30)
        return text

    node = aios.up()

    async def main() -> None:
        waiting = asyncio.create_task(node.ask_async("slow", "x"))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()
        release.set()
        assert await waiting == "x"
        assert (await node.info_async()).name == node.name
        assert await node.peers_async() == []
        assert {hit.name for hit in await node.agents_async()} >= {"echo", "slow"}
        hits = await node.search_async("slow")
        assert await hits[0].ask_async("y") == "y"
        assert (await node.card_async("echo")).card["name"] == "echo"
        reply = await node.ask_async("echo", "z")
        assert await reply.ask_async("again") == "again"
        assert len(await node.chats_async()) == 3
        assert (await node.history_async(reply.conversation)).messages[0].text == "z"

    asyncio.run(main())


def test_an_interrupt_cancels_the_wait_and_the_work() -> None:
    started, stopped = threading.Event(), threading.Event()

    @aios.agent
    async def forever(text: str) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return text

    node = aios.up()

    def interrupt() -> None:
        started.wait(30)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        node.ask("forever", "x")
    assert stopped.wait(30)
    assert node.ask("echo", "still here") == "still here"
    (chat,) = [chat for chat in node.chats() if chat.agents[0].startswith("forever")]
    deadline = time.monotonic() + 30
    while node.history(chat.conversation).messages[0].status != "cancelled":
        assert time.monotonic() < deadline
    assert node.history(chat.conversation).messages[0].status == "cancelled"


def test_a_mistake_is_one_line_with_a_way_out() -> None:
    node = aios.up()
    with pytest.raises(NoSuchAgent) as wrong:
        node.ask("ecko", "x")
    assert str(wrong.value) == "no such agent: ecko (did you mean echo?)"

    with pytest.raises(UsageError, match="notebook's kernel") as kernel:

        @aios.agent(engine="kernel")
        def in_kernel(text: str) -> str:
            return text

    assert "\n" not in str(kernel.value)


def test_rows_show_themselves_and_become_tables() -> None:
    node = aios.up()
    rows = node.agents()
    assert "echo@" in str(rows)
    assert set(rows.df()["name"]) == {hit.name for hit in rows}
    assert "id" in dir(rows[0])


def test_two_nodes_in_one_process_are_two_nodes(tmp_path: Path) -> None:
    async def one(text: str) -> str:
        return "one"

    async def two(text: str) -> str:
        return "two"

    from aios_nb.config import Settings

    with (
        aios.Node(Settings(name="a", home=tmp_path / "h")) as a,
        aios.Node(Settings(name="b", home=tmp_path / "h")) as b,
    ):
        a.host(one, name="who")
        b.host(two, name="who")
        assert (a.ask("who", ""), b.ask("who", "")) == ("one", "two")
        assert a.node_id != b.node_id
        assert a.url != b.url
    assert not a.running
    assert not b.running


def test_another_node_is_let_in_and_shut_out(tmp_path: Path) -> None:
    def secret(text: str) -> str:
        return f"between us: {text}"

    bob = aios.Node(Settings(name="bob", home=tmp_path / "bob")).start()
    try:
        bob.host(secret, access="known")
        alice = aios.up(name="alice", join=f"{bob.url}#{bob.node_id}")
        with pytest.raises(NoSuchAgent):
            alice.ask("secret", "x")
        bob.allow(alice.node_id)
        assert alice.ask("secret", "x") == "between us: x"
        asyncio.run(bob.block_async(alice.node_id))
        while alice.peers()[0].state == "alive":
            pass  # she hears of it in her own time
        with pytest.raises(Unreachable, match="refuses the link"):
            alice.ask("secret", "x")
        asyncio.run(bob.allow_async(alice.node_id))
        assert alice.ask("secret", "y") == "between us: y"
    finally:
        bob.stop()


def test_what_need_not_be_waited_for_is_answered_when_the_other_node_is_back(
    tmp_path: Path,
) -> None:
    def shout(text: str) -> str:
        return text.upper()

    def start(port: int = 0) -> aios.Node:
        settings = Settings(name="bob", home=tmp_path / "bob", port=port)
        return aios.Node(settings, [describe(shout)]).start()

    bob = start()
    try:
        alice = aios.up(name="alice", join=f"{bob.url}#{bob.node_id}")
        assert alice.ask("shout", "x") == "X"
        port = int(bob.url.rpartition(":")[2])
        bob.stop()
        with pytest.raises(Unreachable, match="could not be reached"):
            alice.ask("shout", "now", deadline_s=5)
        sent = [alice.ask("shout", text, wait=False, deadline_s=600) for text in ("a", "b")]
        assert [(one, one.status) for one in sent] == [("", "accepted")] * 2
        bob = start(port)
        assert (sent[0].wait(), sent[0].wait().status) == ("A", "done")
        assert asyncio.run(sent[1].wait_async()) == "B"
    finally:
        bob.stop()


def test_an_agent_is_named_by_its_function_or_by_a_row_too() -> None:
    @aios.agent(name="shouts")
    async def loud(text: str) -> str:
        return text.upper()

    node = aios.up()
    assert node.ask(loud, "hello") == "HELLO"
    assert node.ask(node.search("shouts")[0], "hello") == "HELLO"
    assert node.ask(loud, "a").ask("b") == "B"
    assert node.ask(node.search("shouts")[0].row, "hello") == "HELLO"
    for agent in (loud, node.search("shouts")[0]):
        assert node.card(agent).card == asyncio.run(node.card_async("shouts")).card
    for wrong in (len, 7, None):
        for verb in (node.card, lambda agent: node.ask(agent, "hello")):
            with pytest.raises(UsageError, match="is not an agent of this program"):
                verb(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": "x"}, {"port": True}, {"host": None}, {"name": 7}, {"allow_hosts": "a"},
        {"home": 1}, {"join": 7}, {"join": [7]}, {"network": None}, {"network": "No Name"},
    ],
)  # fmt: skip
def test_what_cannot_be_meant_keeps_a_node_from_starting_in_one_line(wrong: Any) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        aios.up(**wrong)


@pytest.mark.parametrize("join", ["nowhere", ["http://a", "http://b/path"], "http://a#short"])
def test_what_is_no_address_is_not_joined(join: Any) -> None:
    with pytest.raises(UsageError):
        aios.up(join=join)
    with pytest.raises(NotRunning):
        aios.node()


def test_a_running_node_does_not_quietly_ignore_whom_to_join() -> None:
    node = aios.up(network="lab")
    assert node.settings.network == "lab"
    assert aios.up() is node
    assert aios.up(network="lab") is node
    for other in ({"join": "http://127.0.0.1:9"}, {"network": "home"}):
        with pytest.raises(UsageError, match="runs already"):
            aios.up(**other)  # type: ignore[arg-type]


def test_a_node_that_knows_no_other_says_how_to_join_one() -> None:
    peers = aios.up().peers()
    assert peers == []
    assert "aios.up(join=URL)" in str(peers)


def test_a_peer_is_shown_in_one_line() -> None:
    known = Peer("b" * 32, "bob", "http://127.0.0.1:9", "alive", 1.234)
    gone = Peer("c" * 32, "", "", "left")
    assert str(Peers([known, gone])).splitlines() == [
        f"bob at http://127.0.0.1:9: alive, 1.2 ms ({'b' * 32})",
        f"a node at an unknown address: left ({'c' * 32})",
    ]


def test_only_what_is_meant_to_be_used_is_listed() -> None:
    assert dir(aios) == sorted(aios.__all__)
    assert not [name for name in dir(aios) if name.startswith("_") and name != "__version__"]
    assert all(hasattr(aios, name) for name in dir(aios))


def test_every_error_of_ours_is_caught_by_one_name() -> None:
    with pytest.raises(aios.AiosError):
        aios.up().ask("ecko", "x")


def test_a_hit_without_a_description_shows_its_id_alone() -> None:
    @aios.agent
    async def quiet(text: str) -> str:
        return text

    node = aios.up()
    hit = next(hit for hit in node.agents() if hit.name == "quiet")
    assert repr(hit) == f"<{hit.id}>"


def test_a_node_that_is_starting_in_another_thread_is_waited_for() -> None:
    code = """
import sys, threading
import aios_nb as aios

loading = threading.Event()

class Watching:
    def find_spec(self, name, path=None, target=None):
        if name == "aios_nb.node":
            loading.set()

sys.meta_path.insert(0, Watching())
starter = threading.Thread(target=aios.up)
starter.start()
loading.wait()
print(aios.running_node().running)
starter.join()
aios.down()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_who_called_and_what_was_said_as_tables() -> None:
    node = aios.up()
    reply = node.ask("echo", "hello")
    assert node.callers().df()["calls"][0] == 1
    assert node.callers()[0].id == f"owner@{node.node_id}"
    history = node.history(reply.conversation)
    assert list(history.df()["text"]) == ["hello", "hello"]
    assert list(history.df()["sender"]) == [f"owner@{node.node_id}", f"echo@{node.node_id}"]
    assert node.chats().df()["conversation"][0] == reply.conversation


def test_a_table_without_rows_has_its_columns() -> None:
    node = aios.up()
    for empty in (node.search("zzzzqqq"), node.callers(), node.peers(), node.chats()):
        assert len(empty.df()) == 0
        assert len(empty.df().columns) > 3
    assert list(node.search("zzzzqqq").df()) == list(node.agents().df())
    asked = node.ask("echo", "hello")
    assert list(History("c", []).df()) == list(node.history(asked.conversation).df())


def test_a_chat_needs_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    hit = aios.up().agents()[0]
    with pytest.raises(UsageError, match="load_ext"):
        hit.chat()
    monkeypatch.setattr(Site, "chat_face", lambda site, agent: (site, agent))
    assert hit.chat() == (aios.node(), hit.id)


def test_a_found_agent_says_why_and_hides_nothing() -> None:
    @aios.agent(about="Adds \u202enumbers\x1b[2J")
    def adder(text: str) -> str:
        return text

    hits = aios.up().search("numbers")
    assert "numbers" in hits[0].why
    assert hits[0].why in repr(hits[0])
    assert repr(hits[0]).isprintable()


def test_an_answer_can_be_kept_in_a_file_and_copied() -> None:
    node = aios.up()
    reply = node.ask("calc", "6 * 7")
    hits = node.search("calculate")
    for again in (pickle.loads(pickle.dumps(reply)), copy.deepcopy(reply), copy.copy(reply)):
        assert (str(again), again.data, again.conversation) == ("42", 42, reply.conversation)
        assert again.ask("2 + 2") == "4"
    assert pickle.loads(pickle.dumps(hits))[0].ask("1 + 1") == "2"

    kept = pickle.dumps(reply)
    aios.down()
    later = pickle.loads(kept)
    assert later == "42"
    with pytest.raises(NotRunning):
        later.ask("x")
    aios.up()
    assert later.ask("3 + 3") == "6"


def test_what_is_in_hand_goes_on_when_its_node_is_up_again() -> None:
    @aios.agent
    async def count(text: str, ctx: Any) -> tuple[str, aios.File]:
        return str(len(ctx.messages)), aios.File(text.encode(), name="said.txt")

    @aios.agent
    async def polite(text: str, ctx: Any) -> str:
        return f"hello {await ctx.ask_user('name?')}"

    node = aios.up()
    reply, hits = node.ask("count", "a"), node.search("count")
    aios.down()
    kept = pickle.dumps(reply)  # when nobody is there to say whose it is
    aios.up()
    assert reply.ask("b") == "2"
    assert asyncio.run(reply.ask_async("c")) == "4"
    assert reply.files[0].read() == asyncio.run(reply.files[0].read_async()) == b"a"
    assert hits[0].ask("d") == "0"
    assert pickle.loads(kept).ask("e") == "6"
    assert node.ask("polite", "hi").answer("Ada") == "hello Ada"
    assert [event.text for event in node.history(reply.conversation).messages][::2] == list("abce")


def test_what_is_of_another_node_says_whose_it_was_and_whom_to_ask() -> None:
    was = aios.up(name="alice")
    reply, hits, whose = was.ask("echo", "x"), was.agents(), was.node_id
    kept = pickle.dumps(reply)
    aios.down()
    node = aios.up(name="bob")
    of_it = rf"of node {whose}, which was stopped.*aios\.node\(\)\.ask"
    for again in (reply, hits[0], pickle.loads(kept)):
        with pytest.raises(NotRunning, match=of_it):
            again.ask("y")
        with pytest.raises(NotRunning, match=of_it):
            asyncio.run(again.ask_async("y"))
    assert node.ask("echo", "z") == "z"


def test_an_answer_waits_for_its_node_that_starts_anew() -> None:
    reply = aios.up().ask("echo", "x")
    aios.down()
    starting = threading.Event()
    leave = program.subscribe(starting.set)
    starter = threading.Thread(target=aios.up)
    starter.start()
    starting.wait()
    leave()
    assert reply.ask("y") == "y"
    starter.join()
