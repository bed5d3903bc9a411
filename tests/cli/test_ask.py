from __future__ import annotations

import json
import subprocess

import pytest


def test_an_answer_is_printed_and_nothing_else(site):
    done = site("ask", "echo", "hello", "world")
    assert (done.stdout, done.stderr, done.returncode) == ("hello world\n", "", 0)


def test_a_question_can_come_through_a_pipe(site):
    assert site("ask", "echo", stdin="from a pipe\n").stdout == "from a pipe\n"
    assert site("ask", "echo", "-", stdin="two\nlines\n").stdout == "two\nlines\n"


def test_a_question_survives_a_locale_without_unicode(site):
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert site.json("ask", "echo", "東京")["text"] == "東京"
    done = site("ask", "--json", "echo", "東京", **plain)
    assert json.loads(done.stdout)["text"] == "東京"
    assert site("ask", "echo", "東京", PYTHONIOENCODING="ascii").stdout == "??\n"


def test_an_empty_pipe_asks_nothing(site):
    done = site("ask", "echo", stdin="\n")
    assert done.returncode == 2
    assert "empty" in done.stderr


def test_the_result_object_has_the_fields_of_the_contract(site):
    result = site.json("ask", "spell", "a b")
    assert result.keys() >= {
        "conversation", "message_id", "reply_id", "status", "text", "data", "files",
    }  # fmt: skip
    assert (result["status"], result["text"]) == ("done", "a b ")


def test_text_that_begins_with_a_dash_goes_after_two(site):
    assert site("ask", "echo", "--", "-x", "--json").stdout == "-x --json\n"


def test_an_agent_may_be_named_as_in_a_chat(site):
    assert site("ask", "@echo", "@calc").stdout == "@calc\n"


def test_a_conversation_goes_on(site):
    first = site.json("ask", "echo", "one")
    second = site.json("ask", "--conversation", first["conversation"], "echo", "two")
    assert second["conversation"] == first["conversation"]
    third = site.json("ask", "--conversation", "last", "echo", "three")
    assert third["conversation"] == first["conversation"]
    shown = site("history", first["conversation"]).stdout
    assert [word for word in ("one", "two", "three") if word in shown] == ["one", "two", "three"]


def test_an_agent_that_fails_is_one_line_and_exit_code_1(site):
    done = site("ask", "breaks", "x")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("aios-nb: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_a_mistyped_agent_brings_the_near_name(site):
    done = site("ask", "ehco", "x")
    assert done.returncode == 1
    assert "echo" in done.stderr


def test_a_deadline_that_passes_is_said(site):
    done = site("ask", "--deadline", "0.2", "forever", "x")
    assert done.returncode == 1
    assert "deadline" in done.stderr


def test_an_agent_that_asks_back_without_a_terminal_is_told_of(site):
    done = site("ask", "asks", "x")
    assert done.returncode == 2
    assert "What is your name?" in done.stderr
    history = site.json("history", "last")
    assert history["messages"][0]["status"] == "cancelled"


def test_hostile_text_leaves_the_terminal_alone(site):
    done = site("ask", "hostile", "x")
    assert done.stdout == "red abc\n"
    raw = site("ask", "--json", "hostile", "x").stdout
    assert "\x1b" not in raw
    assert "\u202e" not in raw
    assert json.loads(raw)["text"] == "\x1b]0;owned\x07\x1b[31mred\x1b[0m \u202eabc"


def test_a_table_is_shown_as_a_table(site):
    lines = site("ask", "table", "x").stdout.splitlines()
    assert lines == ["city  n", "Rome  1", "東京  2"]


def test_a_number_is_said_once(site):
    assert site("ask", "calc", "2 * 21").stdout == "42\n"


def test_files_come_and_go(site, tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.bin"
    one.write_bytes(b"x" * 10)
    two.write_bytes(bytes(1_300_000))
    done = site("ask", "--file", str(one), "--file", str(two), "weigh", "them")
    assert done.stdout == "one.txt:10 two.bin:1300000\n"
    folder = tmp_path / "new" / "folder"
    for _ in range(2):
        assert site("ask", "--save", str(folder), "file", "content").returncode == 0
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "note.txt": "content",
        "note-2.txt": "content",
    }
    assert "--save" in site("ask", "file", "content").stderr
    done = site("ask", "--file", str(tmp_path / "none"), "weigh", "x")
    assert done.returncode == 2
    assert "none" in done.stderr


def test_a_closed_pipe_is_quiet(site):
    import os
    import sys

    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "aios_nb", "ask", "echo", "x"],
        env={**os.environ, "AIOS_HOME": str(site.home)},
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.parametrize("rows", [2, 12])
def test_a_dataframe_is_shown_once_as_a_table(site, rows):
    table = ["city  n", *(f"Rome  {n}" for n in range(rows))]
    asked = site("ask", "frame", str(rows)).stdout.splitlines()
    talked = site("chat", "frame", stdin=f"{rows}\n/history\n").stdout.splitlines()
    history = [line.strip() for line in site("history", "last").stdout.splitlines()]
    assert asked == table
    assert talked[: len(table)] == table
    for lines in (history, [line.strip() for line in talked[len(table) :]]):
        assert lines.count("city  n") == 1
        assert f"Rome  {rows - 1}" in lines
        assert not any(line.startswith("|") for line in lines)


def test_a_dataframe_without_rows_still_says_something(site):
    assert "city" in site("ask", "frame", "0").stdout


def test_json_says_what_went_wrong_where_a_program_looks(site):
    done = site("ask", "--json", "ehco", "x")
    told = json.loads(done.stdout)["error"]
    assert done.returncode == 1
    assert told["code"] == -32001
    assert "ehco" in told["message"]
    assert "echo" in told["hint"]
    assert done.stderr.startswith("aios-nb: ")
    done = site("search", "--json", "-n", "0", "x")
    assert done.returncode == 2
    assert set(json.loads(done.stdout)["error"]) == {"message", "hint"}
    assert site("ask", "ehco", "--", "--json").stdout == ""
