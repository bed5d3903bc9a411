"""Callers that cancel, repeat and come by the thousand: one run at a time, and no reply lost."""

from __future__ import annotations

import asyncio
import threading

import pytest

from aios_nb.chat.conversation import LIVE_CONVERSATIONS
from aios_nb.errors import Cancelled, InvalidParams
from tests.sites import TestSite

WAIT_S = 60


class Watched:
    """An agent that knows how many of its runs there are at once, and waits to be let go."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.entered = threading.Semaphore(0)
        self.leave = threading.Semaphore(0)

    def define(self):
        async def watched(text: str) -> str:
            self.now += 1
            self.most = max(self.most, self.now)
            self.entered.release()
            await asyncio.to_thread(self.leave.acquire)
            self.now -= 1
            return f"did {text}"

        return watched


@pytest.fixture
def agent():
    return Watched()


@pytest.fixture
def site(aios_home, agent):
    site = TestSite(aios_home, [agent.define()])
    yield site
    for _ in range(10):
        agent.leave.release()
    site.stop()


def in_line(site, conversation: str, count: int):
    """So many messages for one agent in one conversation; the first one runs."""
    return [
        site.start(
            "chat.send", agent="watched", text=str(n), conversation=conversation, message_id=f"m{n}"
        )
        for n in range(count)
    ]


def test_cancelling_one_that_waits_lets_no_other_jump_the_line(site, agent):
    conversation = site.call("chat.open", agents=["watched"])["conversation"]
    first, second, third = in_line(site, conversation, 3)
    assert agent.entered.acquire(timeout=WAIT_S)
    site.call("chat.cancel", message_id="m1")
    with pytest.raises(Cancelled):
        second.result(WAIT_S)
    site.call("chat.send", agent="echo", text="a turn of the loop")
    agent.leave.release()
    assert first.result(WAIT_S)["text"] == "did 0"
    agent.leave.release()
    assert third.result(WAIT_S)["text"] == "did 2"
    assert agent.most == 1


def test_a_refused_repeat_lets_no_other_jump_the_line(site, agent):
    site.call("chat.send", agent="echo", text="elsewhere", message_id="used")
    conversation = site.call("chat.open", agents=["watched"])["conversation"]
    first, second = in_line(site, conversation, 2)
    assert agent.entered.acquire(timeout=WAIT_S)
    with pytest.raises(InvalidParams):
        site.call(
            "chat.send", agent="watched", text="x", conversation=conversation, message_id="used"
        )
    site.call("chat.send", agent="echo", text="a turn of the loop")
    agent.leave.release()
    assert first.result(WAIT_S)["text"] == "did 0"
    agent.leave.release()
    assert second.result(WAIT_S)["text"] == "did 1"
    assert agent.most == 1


def test_a_reply_is_kept_however_many_conversations_were_opened_meanwhile(site, agent):
    conversation = site.call("chat.open", agents=["watched"])["conversation"]
    [slow] = in_line(site, conversation, 1)
    assert agent.entered.acquire(timeout=WAIT_S)

    async def crowd() -> None:
        for _ in range(0, LIVE_CONVERSATIONS + 500, 500):
            await asyncio.gather(
                *(site.node.client.call("chat.send", agent="echo", text="x") for _ in range(500))
            )

    site.node.run(crowd)
    site.call("chat.send", agent="echo", text="beside it", conversation=conversation)
    again = site.start(
        "chat.send", agent="watched", text="0", conversation=conversation, message_id="m0"
    )
    site.call("chat.send", agent="echo", text="a turn of the loop")
    agent.leave.release()
    assert slow.result(WAIT_S)["text"] == "did 0"
    assert again.result(WAIT_S)["text"] == "did 0"
    rows = site.history(conversation)
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert [row["text"] for row in rows if row["ref"] == "m0"] == ["did 0"]
