"""``%aios`` and ``%%aios`` in a real shell with a real node."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

import aios_nb as aios
from aios_nb.notebook.show import progress
from aios_nb.richtext import plain
from aios_nb.site import Reply, Site
from tests.notebook.consoles import CEILING_S, Console, Tags, console


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with console(tmp_path_factory.mktemp("magics")) as made:
        made.good("import aios_nb as aios")
        yield made


# Asking ----------------------------------------------------------------------------------------


def test_an_answer_is_shown_once_and_given_back(page: Console):
    ran = page.good("%aios ask echo it's **fine**")
    assert [bundle["text/plain"] for bundle in ran.shown] == ["it's **fine**"]
    assert "<strong>fine</strong>" in ran.html
    assert isinstance(ran.value, Reply)
    assert ran.value == "it's **fine**"
    assert ran.value.ask("more") == "more"


def test_a_variable_takes_the_answer_and_shows_it_later(page: Console):
    ran = page.good("answer = %aios ask echo hello")
    assert ran.text == "hello"
    assert page.names["answer"] == "hello"
    assert page.good("answer").text == "hello"
    in_one_cell = page.good("answer = %aios ask echo once\nanswer")
    assert in_one_cell.text == "once"


def test_an_empty_answer_says_so_on_the_page(page: Console):
    @aios.agent
    def quiet(text: str) -> str | None:
        return None if text == "none" else " " if text == "blank" else ""

    for text in ("none", "blank", "empty"):
        ran = page.good(f"%aios ask quiet {text}")
        assert "(empty answer)" in ran.html
        assert not ran.text.strip()
        assert "(empty answer)" in page.good("_").html
    assert "(empty answer)" not in page.good("%aios ask echo x").html


def test_an_agent_has_one_name_however_it_was_asked(page: Console):
    asked = page.good("answer = %aios ask echo hello")
    by_id = page.good(f"%aios ask echo@{page.node.node_id} hello")
    again = page.good(f"aios.node().ask('echo@{page.node.node_id}', 'x')")
    assert "<b>echo</b>" in asked.html
    assert "<b>echo</b>" in by_id.html
    for shown in (asked, by_id, again):
        assert page.node.node_id[:8] not in shown.html


def test_a_terminal_gets_the_text_as_it_comes_and_no_second_copy(
    page: Console, capsys: pytest.CaptureFixture[str]
):
    said = page.terminal("%aios ask echo hello there", capsys)
    assert said.startswith("hello there\n")
    assert said.count("hello there") == 1
    assert "hello there" in page.terminal("_", capsys)


def test_braces_take_variables_and_nothing_else(page: Console):
    page.good("who = 'Ada'\nbrace = '{who}'")
    asked = '%aios ask echo {who}, {brace}: {"a": 1} {nobody} {In} {who.upper()} {1 + 1} $who'
    assert page.good(asked).text == 'Ada, {who}: {"a": 1} {nobody} {In} {who.upper()} {1 + 1} $who'
    local = "def f():\n    who = 'Bob'\n    got = %aios ask echo {who}\n    return got\nf()"
    assert page.good(local).value == "Bob"


def test_a_cell_is_asked_as_it_is_written(page: Console):
    ran = page.good("%%aios ask echo\nfirst line\n    indented {who}\n")
    assert ran.value == "first line\n    indented Ada"
    assert page.error("%%aios peers\nx").startswith("%aios peers takes no cell")


def test_an_agent_that_asks_back_is_answered(page: Console):
    @aios.agent
    async def polite(text: str, ctx: Any) -> str:
        return f"hello {await ctx.ask_user('your name?')}"

    ran = page.good("reply = %aios ask polite hi")
    assert "your name?" in ran.text
    assert 'reply.answer("…")' in ran.text
    assert "reply.answer(&quot;…&quot;)" in ran.html
    assert 'answer it with reply.answer("…")' in page.error(
        "%aios ask --conversation last polite Ada"
    )
    assert page.good("reply.answer('Ada')").text == "hello Ada"


def test_options_go_on_in_a_conversation_with_a_file(page: Console, tmp_path: Path):
    @aios.agent
    def reads(text: str, ctx: Any) -> str:
        return f"{len(ctx.messages)} {ctx.read(ctx.files[0]).decode()}" if ctx.files else "first"

    (tmp_path / "note.txt").write_text("in the file")
    first = page.good("%aios ask reads one").value
    page.names["note"] = tmp_path / "note.txt"
    second = page.good(f"%aios ask --conversation last --file {tmp_path / 'note.txt'} reads two")
    assert second.value == "2 in the file"
    assert second.value.conversation == first.conversation


def test_what_was_taken_for_a_file_is_said(
    page: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.md").write_text("in the file")
    asked = "%aios ask echo please test the command with --file report.md"
    ran = page.good(f"answer = {asked}")
    assert ran.text == "please test the command with\n[with report.md]"
    assert "with report.md" in ran.html
    assert "[with report.md]" in page.good("answer").text
    assert "[with report.md]" in page.terminal(asked, capsys)
    assert "report.md" in page.good("%aios history").text
    literal = page.good(asked.replace("echo", "echo --"))
    assert literal.text == "please test the command with --file report.md"


def test_a_question_that_names_an_option_is_told_how_to_be_asked(page: Console):
    said = page.error("%aios ask echo what does --file do")
    assert said.startswith("cannot read do: No such file")
    assert "as words: %aios ask AGENT -- TEXT" in said
    assert page.good("%aios ask echo -- what does --file do").value == "what does --file do"


def test_an_agent_that_takes_its_time_is_asked_with_the_file(page: Console, tmp_path: Path):
    seen = threading.Event()

    @aios.agent
    def reader(text: str) -> str:
        assert seen.wait(CEILING_S)
        return text

    (tmp_path / "long.md").touch()
    watcher = threading.Thread(
        target=lambda: page.shows("asking reader with long.md") and seen.set()
    )
    watcher.start()
    ran = page.good(f"%aios ask reader x --file {tmp_path / 'long.md'}")
    watcher.join()
    assert ran.value == "x"


def test_a_text_of_a_megabyte_is_in_the_variable_and_its_beginning_on_the_page(page: Console):
    @aios.agent
    def endless(text: str) -> str:
        return "word " * 200_000

    ran = page.good("said = %aios ask endless go")
    assert len(page.names["said"]) == 1_000_000
    assert len(ran.html) < 300_000
    assert "800,000 more characters" in ran.html


def test_a_long_stream_is_shown_in_few_updates_and_complete(page: Console):
    tokens = [f"word{number} " for number in range(6000)]

    @aios.agent
    async def burst(text: str) -> Any:
        for token in tokens:
            yield token

    ran = page.good("%aios ask burst go")
    assert ran.text == "".join(tokens).rstrip("\n")
    assert "word0 " in ran.html
    assert "word5999" in ran.html
    assert ran.updates < 100
    assert len(ran.shown) == 1


def test_who_waits_sees_how_far_the_agent_is_and_nothing_stays_behind(page: Console):
    @aios.agent
    def slow(text: str, ctx: Any) -> str:
        ctx.progress("page 2 of 4", 0.5)
        return f"{page.shows('page 2 of 4 (50%)')} {page.shows('width:50%')}"

    assert page.good("%aios ask slow x").text == "True True"
    ran = page.good("for _ in range(2): got = aios.node().ask('slow', 'x')\ngot")
    assert ran.text == "True True"
    assert [bundle for bundle in ran.shown if "asking" in str(bundle)] == []
    places = {output["transient"]["display_id"] for output in page.outputs if "transient" in output}
    assert len(places) == 1, "all waits of a cell share one"


def test_an_interrupt_stops_the_wait_and_the_work_and_the_node_lives(page: Console):
    stopped = threading.Event()

    @aios.agent
    async def forever(text: str) -> Any:
        yield "so far "
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    def interrupt() -> None:
        assert page.shows("so far")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    ran = page.run("%aios ask forever x")
    assert not ran.ok
    assert "KeyboardInterrupt" in ran.printed
    assert stopped.wait(CEILING_S)
    assert page.shows("stopped")
    assert page.good("%aios ask echo on").text == "on"


# Looking ---------------------------------------------------------------------------------------


def test_status_says_what_there_is_to_know(page: Console):
    text = page.good("%aios").text
    for word in ("address", "reach", "peers", "agents", "callers", "limits", "nest-asyncio not"):
        assert word in text
    assert page.node.url in text
    assert "reachable from this machine" in text
    assert page.good("%aios status").html.count("<tr>") >= 7


def test_a_search_is_a_table_and_its_rows_can_be_asked(page: Console):
    @aios.agent(about="Adds the numbers in a sentence", tags=["math"])
    def adder(text: str) -> int:
        return sum(int(word) for word in text.split() if word.isdigit())

    ran = page.good("hits = %aios search numbers in a sentence -n 3\nhits")
    assert ran.text.splitlines()[0].split() == ["AGENT", "SCORE", "TAGS", "ABOUT"]
    assert "text match: numbers" in ran.text
    assert "<table" in ran.html
    hits = page.names["hits"]
    assert hits[0].ask("2 and 2") == "4"
    assert hits.df()["name"][0] == "adder"
    assert "numbers" in repr(hits[0])
    assert "adder" in page.good("hits[0]").html
    assert "nothing found" in page.good("%aios search zzzzqqq").text


def test_only_agents_of_the_notebooks_own_node_are_here(
    page: Console, make_site, monkeypatch: pytest.MonkeyPatch
):
    other = make_site(name="other").node
    page.names["other"] = other
    there = page.good("other.search('name:echo')").html
    assert f"other · {other.node_id[:8]}" in there
    assert "this node" not in there
    assert "this node" in page.good("%aios search name:echo").html
    monkeypatch.setattr("aios_nb.notebook.show.agents.running_kernel", object)
    assert "this notebook" in page.good("%aios search name:echo").html
    assert "this notebook" not in page.good("other.search('name:echo')").html


def test_agents_cards_and_callers(page: Console):
    assert "echo" in page.good("%aios agents").text
    card = page.good("%aios card echo")
    assert "built in, not published" in card.text
    assert "Answers with your own words" in card.html
    for shown in (card.text, card.html):
        assert "private: only you" in shown
        assert "inline, answers in one piece, 300 s at most" in shown
        assert shown.count("version") == 1
    page.good("%aios ask echo x")
    callers = page.good("%aios callers")
    assert callers.text.splitlines()[1].startswith("you ")
    assert page.node.node_id not in callers.html
    assert callers.value.df()["calls"][0] >= 1
    assert callers.value[0].id == f"owner@{page.node.node_id}"
    assert "callers   nobody else yet" in page.good("%aios").text
    for line in ("%aios peers", "%aios network"):
        assert "no other node yet" in page.good(line).text
        assert "%aios up --join URL" in page.good(line).text


def test_the_widgets_have_a_text_where_there_is_no_page(page: Console):
    for line in ("%aios chat echo", "%aios hub", "%aios network", "aios.node().agents()[0].chat()"):
        ran = page.good(line)
        assert any("text/plain" in bundle and "text/html" in bundle for bundle in ran.shown), line
    assert "did you mean echo" in page.error("%aios chat ecko")


def test_what_is_text_only_is_text_on_a_page_too(page: Console):
    page.error("%aios <b>")
    for line in ("log", "debug", "help", "ask --help", "help export"):
        ran = page.good(f"%aios {line}")
        shown = Tags(ran.html)
        assert [tag for tag, _ in shown.found if tag not in {"style", "div"}] == ["pre"], line
        assert plain(ran.text.strip()) in shown.text, line
    assert "there is no %aios &lt;b&gt;" in page.good("%aios debug").html


# Conversations ---------------------------------------------------------------------------------


def test_conversations_are_listed_shown_renamed_exported_and_deleted(page: Console, tmp_path: Path):
    reply = page.good("%aios ask echo keep *this*").value
    chats = page.good("%aios chats")
    assert reply.conversation in chats.text
    assert chats.value.df()["conversation"][0] == reply.conversation
    assert "Sums of May" in page.good("%aios rename last Sums of May").text
    history = page.good("%aios history sums of may")
    assert "keep *this*" in history.text
    assert "<em>this</em>" in history.html
    assert len(history.value.df()) == 2
    for form in ("md", "json", "ipynb"):
        page.good(f"%aios export last {tmp_path}/talk.{form}")
    assert "keep *this*" in (tmp_path / "talk.md").read_text()
    assert json.loads((tmp_path / "talk.json").read_text())["title"] == "Sums of May"
    nbformat.validate(nbformat.read(tmp_path / "talk.ipynb", 4))
    assert "exists" in page.error(f"%aios export last {tmp_path}/talk.md")
    page.good(f"%aios export last {tmp_path}/talk.md --force")
    assert ".md, .json or .ipynb" in page.error(f"%aios export last {tmp_path}/talk.txt")
    for line in ("export last ~nobody-here/talk.md", "ask echo hi --file ~nobody-here/talk.md"):
        assert "no home folder for ~nobody-here" in page.error(f"%aios {line}")
    assert "no title now" in page.good('%aios rename "Sums of May" ""').text
    assert page.good("%aios chats").value[0].title == "keep *this*"
    for line in ('history ""', 'rename "" May', 'delete ""'):
        assert "no conversation is named" in page.error(f"%aios {line}")
    assert "is deleted" in page.good("%aios delete last").text
    assert "no such conversation" in page.error(f"%aios history {reply.conversation}")


# Rights, checks, running -----------------------------------------------------------------------


def test_nodes_are_shut_out_and_let_in_by_their_whole_id(page: Console):
    stranger = "b" * 32
    page.good(f"%aios block someone@{stranger}")
    assert "0 calls by 1 other, 1 blocked" in page.good("%aios").text
    assert page.node.callers()[-1].blocked
    page.good(f"%aios allow {stranger}")
    assert not any(row.blocked for row in page.node.callers())
    assert "all 32 characters; `%aios peers`" in page.error("%aios block bob")


def test_withdrawing_names_near_ones(page: Console):
    @aios.agent
    def passing(text: str) -> str:
        return text

    assert "did you mean passing" in page.error("%aios withdraw pasing")
    assert "`%aios agents` lists yours" in page.error("%aios withdraw nosuch")
    assert "no longer offered" in page.good("%aios withdraw passing").text
    assert "no such agent" in page.error("%aios ask passing x")


def test_doctor_log_and_help(page: Console, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AIOS_HOME", str(page.home))
    checkup = page.good("%aios doctor")
    assert checkup.value.ok
    assert "proved its key" in checkup.text
    assert "What programs of others find: 10 of 10" in checkup.text
    assert "What programs of others find: 10 of 10" in checkup.html
    assert checkup.html.count("<table") == 1, "its parts have the same columns"
    page.good(
        "import logging\nlogging.getLogger('aios_nb.test').warning('a \\x1b[31mred\\x1b[0m line')"
    )
    assert page.good("%aios log -n 1").text.endswith("a red line")
    assert "search WORDS [-n N]" in page.good("%aios help").text
    assert "--deadline" in page.good("%aios help ask").text
    assert "--access" in page.good("%aios help %%agent").text
    monkeypatch.setattr("aios_nb.people.checks.machine.machine", lambda: 1 / 0)
    assert "ZeroDivisionError" in page.error("%aios doctor")


def test_an_interrupted_doctor_goes_home(page: Console, monkeypatch: pytest.MonkeyPatch):
    ended = threading.Event()

    async def endless(_: Any) -> list[Any]:
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return []

    monkeypatch.setattr("aios_nb.people.checks.interop.interop", endless)
    page.run("%aios doctor")
    assert ended.wait(CEILING_S)


def test_that_no_bot_is_bridged_is_a_status_and_no_error(
    page: Console, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("TELEGRAM_BOT_TOKEN", raising=False)
    said = page.good("%aios telegram status").text
    assert "no bot is bridged here" in said
    assert "TELEGRAM_BOT_TOKEN" in said
    assert "%aios telegram start" in said
    assert "no bot is bridged here" in page.error("%aios telegram people")
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", f"123456:{'x' * 35}")
    assert "BotFather" not in page.good("%aios telegram status").text


def test_settings_for_other_programs_hold_no_secret(page: Console):
    shown = page.good("%aios mcp-config claude")
    server = json.loads(shown.value.by_command[0].text)["mcpServers"]["aios"]
    assert server["args"] == ["stdio"]
    assert shown.value.by_command[0].text in shown.text
    assert "claude_desktop_config.json" in shown.html
    assert aios.node().run_info.token not in shown.text + shown.html
    assert "did you mean cursor" in page.error("%aios mcp-config curser")


def test_a_node_goes_down_and_comes_up_with_choices(page: Console, capsys):
    page.good("%aios down")
    assert "not running" in page.good("%aios").text
    assert "%aios up starts it" in page.error("%aios ask echo x")
    up = page.good("%aios up --name bob --network lab")
    assert "node bob" in up.text
    assert "network lab" in up.text
    assert aios.node().name == "bob"
    assert "bob" in page.error("%aios up --name alice")
    page.good("%aios down\n%aios up --name again")
    assert page.good("%aios ask echo back").text == "back"


def test_a_wait_for_a_starting_node_is_told(page: Console, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "AFTER_S", 0.0)
    page.good("%aios down")
    ran = page.good("get_ipython()._aios_session.start()\nx = %aios ask echo hello")
    assert page.names["x"] == "hello"
    assert any("waiting for the node" in str(output["data"]) for output in page.outputs)
    assert "hello" in ran.text
    assert "waiting" not in ran.text


@pytest.mark.parametrize(
    ("line", "doing"),
    [
        ("%aios", "looking for other nodes"),
        ("%aios peers", "looking for other nodes"),
        ("%aios network", "looking for other nodes"),
        ("%aios hub", "looking for agents"),
        ("%aios chat echo", "opening the chat"),
    ],
)
def test_what_may_take_a_while_has_a_word_for_who_waits(
    page: Console, monkeypatch: pytest.MonkeyPatch, line: str, doing: str
):
    told: list[str] = []

    @contextlib.asynccontextmanager
    async def face(said: str) -> AsyncIterator[None]:
        told.append(said)
        yield

    monkeypatch.setattr(Site, "wait_face", face)
    page.good(line)
    assert doing in told
