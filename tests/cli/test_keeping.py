"""Looking and keeping: status, agents, card, search, conversations, rights."""

from __future__ import annotations

import json
import re


def test_status_tells_who_runs(site):
    state = site.json("status")
    assert state["name"] == "alice"
    assert state.keys() >= {"node_id", "url", "uptime_s", "version", "agents", "pid"}
    assert state["node_id"] in site("status").stdout


def test_agents_are_listed_without_their_colours(site):
    names = {row["name"] for row in site.json("agents")["agents"]}
    assert {"echo", "spell", "hostile"} <= names
    shown = site("agents").stdout
    assert "Tries to repaint your screen" in shown
    assert "\x1b" not in shown


def test_a_card_is_shown_with_its_signature(site):
    assert site.json("card", "spell")["card"]["name"] == "spell"
    assert "signature" in site("card", "spell").stdout
    assert site("card", "nobody").returncode == 1


def test_search_finds_by_words(site):
    rows = site.json("search", "every", "word")["agents"]
    assert rows[0]["name"] == "spell"
    lines = site("search", "every word").stdout.splitlines()
    assert lines[1].startswith("spell@")
    assert lines[2] == f"  {rows[0]['why']}"


def test_search_takes_filters(site):
    assert [row["name"] for row in site.json("search", "tag:slow")["agents"]] == ["spell"]
    assert "tag slow" in site("search", "tag:slow").stdout
    assert site("search", "every word", "node:aaaa").returncode == 1


def test_a_search_without_a_hit_is_exit_code_1(site):
    done = site("search", "zzzzqqqq")
    assert (done.returncode, done.stdout) == (1, "")


def test_a_conversation_is_listed_named_exported_and_deleted(site, tmp_path):
    conversation = site.json("ask", "echo", "remember this")["conversation"]
    assert conversation in site("chats").stdout
    assert site("rename", conversation, "My", "talk").returncode == 0
    assert site.json("history", "my talk")["conversation"] == conversation
    assert "no title now" in site("rename", conversation, "").stdout
    assert "remember this" in site("chats").stdout
    assert site.json("history", conversation[:-2])["conversation"] == conversation
    for form in ("md", "json", "ipynb"):
        path = tmp_path / f"talk.{form}"
        assert site("export", conversation, str(path)).returncode == 0
        assert "remember this" in path.read_text()
    assert site("export", conversation, str(tmp_path / "talk.md")).returncode == 2
    assert site("export", "--force", conversation, str(tmp_path / "talk.md")).returncode == 0
    assert site("export", conversation, str(tmp_path / "talk.docx")).returncode == 2
    assert "remember this" in site("export", conversation, "-").stdout
    refused = site("delete", conversation)
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert site("delete", "--yes", conversation).returncode == 0
    assert site("history", conversation).returncode == 1


def test_hostile_text_is_tame_in_history_and_on_export_to_the_terminal(site):
    site("ask", "hostile", "x")
    for args in (["history", "last"], ["export", "last", "-"], ["chats"]):
        shown = site(*args).stdout
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_history_shows_who_said_what_and_what_failed(site):
    site("ask", "breaks", "please")
    shown = site("history", "last").stdout
    assert "you" in shown
    assert "please" in shown
    assert "breaks failed" in shown


def test_an_agent_is_withdrawn(site):
    assert site("withdraw", "loud").returncode == 0
    assert site("ask", "loud", "x").returncode == 1
    assert site("withdraw", "loud").returncode == 1


def test_nodes_are_blocked_and_allowed_by_their_whole_id(site):
    stranger = "a" * 32
    assert site("block", stranger).returncode == 0
    assert site("allow", stranger).returncode == 0
    done = site("block", "abc")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_callers_are_counted(site):
    site("ask", "echo", "x")
    rows = site.json("callers")["callers"]
    assert any(row["id"].startswith("owner@") and row["calls"] > 0 for row in rows)
    assert "you" in site("callers").stdout


def test_the_token_is_shown_only_when_asked_for(site):
    token = site("token", "show").stdout.strip()
    run = json.loads((site.home / "run" / "alice.json").read_text())
    assert token == run["token"]
    for args in (["token"], ["token", "--json"], ["status", "--json"], ["doctor"]):
        assert token not in site(*args).stdout


def test_the_id_that_search_prints_is_taken_by_ask_and_card(site):
    shown = site("search", "every word").stdout.splitlines()[1].split()[0]
    assert re.fullmatch(r"spell@[a-z2-7]{12}", shown)
    assert site("ask", shown, "a b").stdout == "a b \n"
    assert site("card", shown).returncode == 0
    assert site("chat", "echo", stdin=f"@{shown} c d\n").stdout == "c d \n"


def test_an_agent_without_a_description_is_listed_by_its_name_alone(site):
    lines = site("agents").stdout.splitlines()
    assert next(line.split() for line in lines if line.startswith("silent")) == [
        "silent",
        "network",
    ]
