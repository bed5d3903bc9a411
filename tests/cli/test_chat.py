from __future__ import annotations

import re
import stat
from collections.abc import Iterator

import pytest

from tests.cli.screen import ALT_ENTER, CTRL_C, CTRL_D, Screen


@pytest.fixture
def screen(site) -> Iterator[object]:
    opened: list[Screen] = []

    def open_screen(*args: str, **env: str) -> Screen:
        opened.append(Screen(site.home, *args, **env))
        return opened[-1]

    yield open_screen
    for one in opened:
        one.close()


# Without a terminal --------------------------------------------------------------------


def test_lines_from_a_pipe_are_answered_in_one_conversation(site):
    done = site("chat", "echo", stdin="first\n\nsecond\n")
    assert (done.stdout, done.stderr, done.returncode) == ("first\nsecond\n", "", 0)
    messages = site.json("history", "last")["messages"]
    assert [row["text"] for row in messages] == ["first", "first", "second", "second"]


def test_a_failure_does_not_end_the_lines_but_shows_in_the_exit_code(site):
    done = site("chat", "echo", stdin="one\n@breaks two\nthree\n/quit\nfour\n")
    assert done.stdout == "one\nthree\n"
    assert done.stderr.startswith("! ")
    assert done.stderr.count("\n") == 1
    assert done.returncode == 1


def test_mentions_ask_others_and_alone_turn_to_them(site):
    done = site("chat", "echo", stdin="@spell a  b\n@spell\nc   d\n")
    assert done.stdout.splitlines() == ["a b ", "c d "]
    assert "now talking to spell" in done.stderr


def test_an_agent_that_asks_back_is_answered_by_the_next_line(site):
    done = site("chat", "asks", stdin="hi\nAda\n")
    assert done.stdout == "What is your name?\nhello Ada\n"


def test_commands_work_in_a_pipe(site, tmp_path):
    path = tmp_path / "talk.md"
    said = f"/help\n/agents\n/search every word\nhello\n/title Greetings\n/save {path}\n/history\n"
    done = site("chat", "echo", stdin=said)
    assert done.returncode == 0
    assert "/search WORDS" in done.stdout
    assert "spell" in done.stdout
    assert "hello" in path.read_text()
    assert "Greetings" in site("chats").stdout
    assert "/help" in site("chat", "echo", stdin="/hlep\n").stderr


def test_a_line_may_begin_with_a_slash_when_it_is_doubled(site):
    assert site("chat", "echo", stdin="//etc\n").stdout == "/etc\n"


def test_a_mistyped_agent_is_found_before_anything_is_asked(site):
    done = site("chat", "ehco", stdin="hello\n")
    assert done.returncode == 1
    assert "echo" in done.stderr


# At a terminal -------------------------------------------------------------------------


def test_a_person_talks_streams_stops_an_answer_and_leaves(site, screen):
    chat = screen("chat", "echo")
    chat.until("talking to echo", "echo>")
    chat.type("hello there\r")
    chat.until("hello there", "\nhello there", "echo>")
    chat.type("@forever go\r")
    chat.until("begun")
    chat.type(CTRL_C)
    chat.until("stopped", "echo>")
    chat.type("@breaks please\r")
    chat.until("! ", "echo>")
    chat.type("still here\r")
    chat.until("\nstill here", "echo>")
    chat.type(CTRL_D)
    assert chat.end() == 0
    assert "Traceback" not in chat.text
    statuses = [row["status"] for row in site.json("history", "last")["messages"]]
    assert "cancelled" in statuses
    kept = site.home / "chat_history"
    assert "hello there" in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_alt_enter_and_pasted_lines_make_one_message(screen):
    chat = screen("chat", "echo")
    chat.until("echo>")
    chat.type("one" + ALT_ENTER + "two")
    chat.until("two")
    chat.type("\x1b[200~\nthree\nfour\x1b[201~")
    chat.until("four")
    chat.type("\r")
    chat.until("\none\ntwo\nthree\nfour", "echo>")
    chat.type("/quit\r")
    assert chat.end() == 0


def test_an_agent_asks_back_at_the_prompt(screen):
    chat = screen("chat", "asks")
    chat.until("asks>")
    chat.type("hi\r")
    chat.until("What is your name?", "answer>")
    chat.type("Ada\r")
    chat.until("hello Ada", "asks>")


def test_a_resumed_conversation_shows_what_was_said(site, screen):
    conversation = site.json("ask", "spell", "we met before")["conversation"]
    chat = screen("chat", "--conversation", conversation)
    chat.until("you", "we met before", "spell>")
    chat.type("and again\r")
    chat.until("and again", "spell>")
    chat.type(CTRL_D)
    assert chat.end() == 0
    assert len(site.json("history", conversation)["messages"]) == 4


def test_names_and_commands_complete(screen):
    chat = screen("chat", "echo")
    chat.until("echo>")
    chat.type("@spe")
    chat.until("@spe")
    chat.type("\t")
    chat.until("spell")
    chat.type("a b\r")
    chat.until("\na b \n")


def test_no_color_means_no_colour(screen):
    chat = screen("chat", "echo", NO_COLOR="1")
    chat.until("echo>")
    chat.type("hello\r")
    chat.until("\nhello", "echo>")
    assert re.search(r"\x1b\[[0-9;]*3[0-7][;m]", chat.raw) is None


def test_a_chat_outlives_its_node(cli):
    up = cli.start("--name", "alice")
    chat = Screen(cli.home, "chat", "echo")
    try:
        chat.until("echo>")
        chat.type("before\r")
        chat.until("\nbefore", "echo>")
        up.process.kill()
        up.stop()
        chat.type("meanwhile\r")
        chat.until("! ", "echo>")
        up = cli.start("--name", "alice")
        chat.type("after\r")
        chat.until("\nafter", "echo>")
        chat.type("/history\r")
        chat.until("before", "after", "echo>")
    finally:
        chat.close()
        up.stop()


def test_ask_streams_to_a_terminal_and_ctrl_c_cancels_the_run(site, screen):
    ask = screen("ask", "forever", "x")
    ask.until("begun")
    ask.type(CTRL_C)
    assert ask.end() == 130
    assert "Traceback" not in ask.text
    assert site.json("history", "last")["messages"][0]["status"] == "cancelled"


def test_ask_puts_the_agents_question_to_the_person(screen):
    ask = screen("ask", "asks", "x")
    ask.until("What is your name?")
    ask.type("Ada\r")
    ask.until("hello Ada")
    assert ask.end() == 0


def test_a_table_is_shown_once_in_a_terminal_too(screen):
    for agent in ("frame", "table"):
        shown = screen("ask", agent, "x")
        assert shown.end() == 0
        lines = [line.rstrip() for line in shown.text.splitlines()]
        assert [line[-7:] for line in lines if "city" in line] == ["city  n"]
        assert "columns" not in shown.text
        assert "|" not in shown.text.replace("\r", "")


def test_a_streamed_answer_that_only_begins_like_a_table_is_shown_whole(screen):
    shown = screen("ask", "spell", "| is a bar")
    assert shown.end() == 0
    assert "| is a bar" in shown.text
