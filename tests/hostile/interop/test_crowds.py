"""What strangers can make a node keep, or think about, through the doors for other protocols."""

from __future__ import annotations

import contextlib
import signal
import tracemalloc
from collections.abc import Iterator

import pytest

from aios_nb.config import KB, MB
from aios_nb.wire import ard
from aios_nb.wire.mcp import words
from aios_nb.wire.outside.toolcalls import Tool, Unclear, read_call
from tests.hostile.interop.knocks import JSON, initialize, modern, rpc, tool

CEILING_S = 20


@contextlib.contextmanager
def ceiling() -> Iterator[None]:
    """Ends what would go on for minutes."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it takes for ever"))
    signal.alarm(CEILING_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def test_what_a_client_says_of_itself_is_kept_and_so_it_is_short(site):
    with site.http() as http:
        assert http.request(**initialize(name="x" * (40 * KB), version="1")).status_code == 413
        assert http.request(**initialize(name="x", version="1")).status_code == 200


def test_only_what_there_can_be_is_watched(site):
    with site.http() as http:
        opened = http.request(**initialize(name="x", version="1"))
        session = {
            **JSON,
            "MCP-Protocol-Version": "2025-11-25",
            "Mcp-Session-Id": opened.headers["Mcp-Session-Id"],
        }
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert http.post("/mcp", json=note, headers=session).status_code == 202
        for uri, taken in ((f"agent://bell@{site.node.node_id}/card", True), ("x:" * MB, False)):
            asked = rpc("resources/subscribe", {"uri": uri})
            answer = http.post("/mcp", json=asked, headers=session)
            assert ('"error"' not in answer.text) is taken
            assert len(answer.text) < 1000


def test_open_requests_of_strangers_hold_a_little_together_and_never_the_owners(site):
    watch = {"resourceSubscriptions": ["agent://x/card" + "z" * 3 * MB]}
    listen = modern("subscriptions/listen", {"notifications": watch})
    with contextlib.ExitStack() as held:
        seen = []
        for _ in range(6):
            http = held.enter_context(site.http())
            seen.append(held.enter_context(http.stream(**listen)).status_code)
        assert seen[0] == 200
        assert seen[-1] == 503
        owner = held.enter_context(site.http(site.token))
        told = owner.request(**tool("agent_send", agent="bell", text="z" * 100)).json()
        assert told["result"]["structuredContent"]["status"] == "done"


def test_long_words_are_not_remembered():
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(16):
            words.line(f"{number}" + "x" * MB)
        assert tracemalloc.get_traced_memory()[0] - before < MB
    finally:
        tracemalloc.stop()


def test_empty_space_is_passed_over_at_once():
    with ceiling():
        with pytest.raises(ard.UsageError):
            ard.read_filter(" " * 200_000 + "x")
        assert ard.read_filter("a = '1' AND  a = '2'  AND b='x AND y'".replace("x AND y", "x")) == {
            "a": ["1", "2"], "b": ["x"],
        }  # fmt: skip


@pytest.mark.parametrize("pair", ["a=1 ", 'a="x" ', "a='x' "])
def test_an_argument_said_again_and_again_is_refused_at_once(pair):
    text = {"type": "string"}
    add = Tool("add", "", {"type": "object", "properties": {"a": text, "b": text}})
    with ceiling(), pytest.raises(Unclear, match="too many"):
        read_call([add], "add " + pair * 20_000, None)
    with ceiling(), pytest.raises(Unclear, match="too many"):
        read_call([Tool("free")], "free " + " ".join(f"k{n}=1" for n in range(50_000)), None)
    with ceiling():
        call = read_call([add], "add a=" + " " * 200_000 + "x b=2", None)
    assert call.arguments == {"a": "x", "b": "2"}
