"""What the reference implementation gets wrong, one named test each (notes of the field, S-nn).

S-02, S-07, S-08 and S-26 are also tested with keys and records (``test_identity.py``,
``test_records.py``).
"""

from __future__ import annotations

import asyncio
import io
import json
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from aios_nb.agents.definition import describe
from aios_nb.bench.ratios import order
from aios_nb.errors import AgentFailed, Busy, DeadlinePassed, NoSuchAgent, RpcError
from aios_nb.loop import LoopThread
from tests.sites import Gate, TestSite, limits

MakeSite = Callable[..., TestSite]


def post(site: TestSite, body: Any, **headers: str) -> tuple[int, Any]:
    """One HTTP request as any other program would send it."""

    async def send() -> tuple[int, Any]:
        run = site.node.run_info
        assert run is not None
        given = {"Authorization": f"Bearer {run.token}", **headers}
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{run.url}/rpc",
                data=io.BytesIO(json.dumps(body).encode()),
                headers={"Content-Type": "application/json", **given},
            ) as answer,
        ):
            text = await answer.text()
            return answer.status, json.loads(text) if text else None

    # Of a request that is refused half the body may never be sent; this loop drops that at its end.
    loop = LoopThread("caller")
    loop.start()
    try:
        return loop.sync(send)
    finally:
        loop.stop()


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def upper(text: str) -> str:
    """Shouts."""
    return text.upper()


def test_s01_one_process_no_key_no_account_and_it_answers(tmp_path: Path) -> None:
    script = (
        "import aios_nb as aios; node = aios.up(); print(node.ask('echo', 'hello')); aios.down()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr


def test_s18_a_real_call_with_streaming_cancel_and_refinement(make_site: MakeSite) -> None:
    gate = Gate()

    async def writer(text: str, ctx: Any) -> AsyncIterator[str]:
        yield f"draft {len(ctx.messages) // 2 + 1} of {text}"
        if text == "stop me":
            await gate.pass_through(text)

    site = make_site(writer)
    status, first = post(site, rpc("chat.send", agent="writer", text="poem"))
    assert status == 200
    conversation = first["result"]["conversation"]
    _, second = post(
        site, rpc("chat.send", agent="writer", text="shorter", conversation=conversation)
    )
    assert second["result"]["text"] == "draft 2 of shorter"
    deltas, result = site.stream(agent="writer", text="again", conversation=conversation)
    assert "".join(delta["text"] for delta in deltas) == result["text"] == "draft 3 of again"
    site.call("chat.send", agent="writer", text="stop me", message_id="m", wait=False)
    site.node.run(lambda: gate.arrived(1))
    _, stopped = post(site, rpc("chat.cancel", message_id="m"))
    assert stopped["result"]["status"] == "cancelled"


def test_s19_hops_are_limited_circles_refused_deadlines_carried_and_the_path_returned(
    make_site: MakeSite,
) -> None:
    left: list[float] = []

    async def last(text: str, ctx: Any) -> str:
        left.append(ctx.deadline)
        return "end"

    async def first(text: str, ctx: Any) -> str:
        return str(await ctx.call("last", text))

    async def circle(text: str, ctx: Any) -> str:
        return str(await ctx.call("circle", text))

    site = make_site(first, last, circle)
    envelope = {
        "sender": {"id": "me", "type": "human"},
        "recipient": {"id": "first", "type": "agent"},
        "message_type": "request",
        "content": {"task": "go"},
        "routing": {"path": [], "max_hops": 2, "deadline_ms": 5000},
    }
    answer = site.call("aios.message", envelope=envelope)
    assert answer["routing"]["path"][-1] == f"first@{site.node.node_id}"
    assert 0 < left[0] <= 5
    with pytest.raises(AgentFailed, match="limit of 1"):
        site.call("aios.message", envelope={**envelope, "routing": {"max_hops": 1}})
    with pytest.raises(AgentFailed, match="already at work"):
        site.call("chat.send", agent="circle", text="x")


def test_s20_s37_every_verb_works_with_no_server_and_no_hub(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialled: list[Any] = []
    connect = socket.socket.connect

    def watched(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            dialled.append(address)
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    site = make_site(upper)
    node = site.node
    node.info()
    node.peers()
    node.agents()
    node.search("shout")
    node.card("upper")
    reply = node.ask("upper", "x")
    node.chats()
    node.history(reply.conversation)
    node.withdraw("upper")
    assert dialled == []


def test_s21_a_task_is_pushed_not_polled_for(make_site: MakeSite) -> None:
    """The agent is at work before the asker's request returns, with no timer in between."""
    gate = Gate()

    async def slow(text: str) -> str:
        await gate.pass_through(text)
        return text

    site = make_site(slow)
    call = site.start("chat.send", agent="slow", text="x")

    async def turns_until_started() -> int:
        turns = 0
        while not gate.entered:
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert site.node.run(turns_until_started) < 1000
    site.on_loop(gate.open)
    assert call.result()["text"] == "x"


def test_s22_a_long_task_blocks_nobody_and_everything_is_bounded(make_site: MakeSite) -> None:
    release = threading.Event()
    working = threading.Semaphore(0)

    def long(text: str) -> str:
        working.release()
        release.wait(60)
        return text

    site = make_site(describe(long, concurrency=2, timeout_s=60), limits=limits(runs=5))
    calls = [site.start("chat.send", agent="long", text=str(n)) for n in range(5)]
    assert working.acquire(timeout=30)
    assert working.acquire(timeout=30)
    assert not working.acquire(blocking=False)  # two at a time, the others wait
    with pytest.raises(Busy):
        site.call("chat.send", agent="echo", text="one too many")
    assert site.call("node.info")["agents"] > 0  # status is never blocked
    release.set()
    assert sorted(call.result()["text"] for call in calls) == list("01234")
    release.clear()
    with pytest.raises(DeadlinePassed):
        site.call("chat.send", agent="long", text="late", deadline_s=0.1)
    release.set()


def test_s23_success_is_said_only_when_an_agent_answered(make_site: MakeSite) -> None:
    async def broken(text: str) -> str:
        raise ValueError("no")

    site = make_site(broken)
    for body in (
        rpc("chat.send", agent="nobody", text="x"),
        rpc("chat.send", agent="broken", text="x"),
        rpc("no.such.method"),
        rpc("chat.send", agent="echo"),
        rpc("chat.send", agent="echo", text="x", type="custom"),
    ):
        status, answer = post(site, body)
        assert status == 200
        assert "error" in answer
        assert "result" not in answer


def test_s24_a_result_is_kept_given_again_and_survives_a_restart(make_site: MakeSite) -> None:
    runs: list[str] = []

    async def once(text: str) -> str:
        runs.append(text)
        return f"result of {text}"

    site = make_site(once)
    first = site.call("chat.send", agent="once", text="x", message_id="task-1")
    assert site.call("chat.send", agent="once", text="x", message_id="task-1") == first
    site.stop()
    site = make_site(once)
    assert site.call("chat.send", agent="once", text="x", message_id="task-1") == first
    assert runs == ["x"]


def test_s25_status_asks_nobody_and_waits_for_nothing(make_site: MakeSite) -> None:
    site = make_site()

    async def turns() -> int:
        turned = 0

        async def count() -> None:
            nonlocal turned
            while True:
                turned += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        await site.node.client.call("node.info")
        counting.cancel()
        return turned

    assert site.node.run(turns) <= 3


def test_s26_identity_and_conversations_survive_a_restart(make_site: MakeSite) -> None:
    site = make_site(upper)
    before = site.node.node_id
    conversation = site.call("chat.send", agent="upper", text="x")["conversation"]
    site.stop()
    site = make_site(upper)
    assert site.node.node_id == before
    assert [row["text"] for row in site.history(conversation)] == ["x", "X"]


@pytest.mark.parametrize("engine", ["inline", "thread"])
def test_s29_a_failing_agent_wakes_its_caller(make_site: MakeSite, engine: str) -> None:
    async def fails_inline(text: str) -> str:
        raise SystemExit("enough")

    def fails_in_thread(text: str) -> str:
        raise SystemExit("enough")

    failing = fails_inline if engine == "inline" else fails_in_thread
    site = make_site(describe(failing, name="failing"))
    with pytest.raises(AgentFailed, match="enough"):
        site.call("chat.send", agent="failing", text="x")
    assert site.call("chat.send", agent="echo", text="alive")["text"] == "alive"


def test_s29_no_call_is_without_a_deadline(make_site: MakeSite) -> None:
    async def forever(text: str) -> str:
        await asyncio.Event().wait()
        return text

    site = make_site(forever)
    for deadline in (0, -1, 86_401, "soon"):
        with pytest.raises(RpcError):
            site.call("chat.send", agent="forever", text="x", deadline_s=deadline)
    with pytest.raises(DeadlinePassed):
        site.call("chat.send", agent="forever", text="x", deadline_s=0.05)


def test_s36_without_the_token_from_another_site_or_too_large_is_refused(
    make_site: MakeSite,
) -> None:
    site = make_site(upper)
    call = rpc("chat.send", agent="upper", text="x")
    assert post(site, call)[0] == 200
    for wrong in ("", "Bearer", "Bearer x", "Basic x"):
        assert post(site, call, Authorization=wrong)[0] == 401
    assert post(site, call, Origin="http://evil.example")[0] == 403
    assert post(site, call, Host="evil.example")[0] == 421
    assert post(site, rpc("chat.send", agent="upper", text="x" * (5 << 20)))[0] == 413
    assert len(site.call("chat.list")["conversations"]) == 1


def test_s38_listings_are_complete(make_site: MakeSite) -> None:
    site = make_site(*(describe(upper, name=f"agent-{n:03}") for n in range(150)))
    listed = {row["name"] for row in site.call("agents.list")["agents"]}
    assert {f"agent-{n:03}" for n in range(150)} <= listed
    with pytest.raises(NoSuchAgent):
        site.call("agents.card", agent="agent-150")


def test_s39_the_benchmark_alternates_its_contestants() -> None:
    """The runs of a comparison see the same weather: order rotates, and turns round."""
    rounds = [order(turn, 3) for turn in range(6)]
    assert all(sorted(one) == [0, 1, 2] for one in rounds)
    assert {one[0] for one in rounds} == {0, 1, 2}
    assert len({tuple(one) for one in rounds}) > 3
