"""``aios-nb token``: scoped tokens made, listed and revoked from the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.callers import FORBIDDEN, code_of, over_rpc


def url_of(cli: Any) -> str:
    return str(cli.json("token")["url"])


def test_a_scoped_token_is_printed_alone_works_and_ends(site: Any):
    done = site("token", "create", "--scope", "chat", "--prefix", "tg:")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
    assert "only this once" in done.stderr
    token, url = done.stdout.strip(), url_of(site)
    assert token not in done.stderr

    def way(method: str, params: Any) -> Any:
        return over_rpc(url, token, method, params)

    assert code_of(way, "node.info", {}) == 0
    assert code_of(way, "tokens.list", {}) == FORBIDDEN
    token_id = done.stderr.split()[1].rstrip(":")
    table = site("token", "list").stdout
    assert token_id in table
    assert token not in table
    revoked = site("token", "revoke", token_id)
    assert (revoked.returncode, revoked.stderr) == (0, "")
    assert code_of(way, "node.info", {}) == FORBIDDEN


def test_programs_get_json(site: Any):
    made = site.json("token", "create", "--prefix", "sl:", "--as", "owner")
    assert set(made) == {"id", "scope", "prefix", "as", "created_at", "token"}
    assert (made["scope"], made["prefix"], made["as"]) == ("chat", "sl:", "owner")
    listed = site.json("token", "list")["tokens"]
    assert {key: made[key] for key in made if key != "token"} in listed

    def way(method: str, params: Any) -> Any:
        return over_rpc(url_of(site), made["token"], method, params)

    assert way("chat.send", {"agent": "echo", "text": "as owner"})["status"] == "done"
    assert site.json("token", "revoke", made["id"]) == {"id": made["id"], "revoked": True}
    assert made["id"] not in json.dumps(site.json("token", "list"))


@pytest.mark.parametrize(
    ("args", "code", "complaint"),
    [
        (["create"], 2, "--prefix"),
        (["create", "--prefix", "tg"], 1, "prefix"),
        (["create", "--prefix", "owner:"], 1, "owner:"),
        (["create", "--prefix", "tg:", "--scope", "all"], 2, "scope"),
        (["create", "--prefix", "tg:", "--as", "me"], 2, "--as"),
        (["revoke"], 2, "ID"),
        (["revoke", "nonsense"], 1, "no such token"),
        (["forget"], 2, "forget"),
    ],
)
def test_a_mistake_is_one_line(site: Any, args: list[str], code: int, complaint: str):
    done = site("token", *args)

    assert (done.returncode, done.stdout) == (code, "")
    assert len(done.stderr.splitlines()) == 1
    assert complaint in done.stderr
