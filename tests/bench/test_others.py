from __future__ import annotations

import json
from typing import Any

import pytest

from aios_nb.bench import contestants, others
from aios_nb.bench.calls import call_for
from aios_nb.bench.generator import Generator
from aios_nb.bench.scenarios import interop
from aios_nb.bench.spec import Load, Missing, Target


def replies(target: Target) -> int:
    with Generator() as generator, generator.open(target) as session:
        return session.drive(Load(count=12)).replies


@pytest.mark.parametrize("kind", ["a2a", "a2a-message"])
def test_the_a2a_sdk_gives_back_what_it_was_sent(kind) -> None:
    with contestants.other(kind) as server:
        assert replies(interop.a2a_call(server)) == 12


def test_our_node_does_the_same_at_the_same_path() -> None:
    with contestants.node() as node:
        assert replies(interop.a2a_call(node)) == 12


def test_what_is_not_installed_is_named_with_what_to_do(monkeypatch) -> None:
    monkeypatch.setitem(others.NEEDS, "fastmcp", ("json", "no_such_module_here"))
    with pytest.raises(Missing, match=r"^no_such_module_here is not installed: .*bench"):
        contestants.other("fastmcp")


# What an A2A client looks at --------------------------------------------------------------


def sent(asked: bytes, **changes: Any) -> bytes:
    """The answer of an agent that echoes, right but for the changes."""
    request = json.loads(asked)
    parts = request["params"]["message"]["parts"]
    task = {"status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [{"parts": parts}]}
    result = {"task": {**task, **changes}}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()


def test_a_task_that_is_not_done_or_says_something_else_is_noticed() -> None:
    call = call_for(Target(url="http://there", work="a2a-send", concurrency=1))
    first, asked = call.request(0), call.request(0)
    assert call.reply(0, sent(asked)) is None
    assert "another call" in (call.reply(0, sent(first)) or "")
    for artifacts in ([], [{"parts": [{"text": "something"}]}]):
        assert "another text" in (call.reply(0, sent(asked, artifacts=artifacts)) or "")
    working = {"state": "TASK_STATE_WORKING"}
    assert "TASK_STATE_WORKING" in (call.reply(0, sent(asked, status=working)) or "")
    assert "no result" in (call.reply(0, b'{"jsonrpc":"2.0","id":1,"error":{}}') or "")
    assert "not an answer" in (call.reply(0, b"<html>") or "")
