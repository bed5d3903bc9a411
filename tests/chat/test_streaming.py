"""A reply as it is written, from any point, by any number of listeners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from aios_nb.errors import AgentFailed, InvalidParams
from tests.sites import Gate, TestSite

MakeSite = Callable[..., TestSite]


async def words(text: str) -> AsyncIterator[str]:
    """Says it word by word."""
    for word in text.split():
        yield word + " "
        await asyncio.sleep(0)


def joined(deltas: list[dict[str, Any]], start: int = 0) -> str:
    """The text, after checking that the pieces fit without gap or overlap."""
    text = ""
    for delta in deltas:
        assert delta["offset"] == start + len(text)
        text += delta["text"]
    return text


def test_deltas_fit_together_and_end_with_done(make_site: MakeSite) -> None:
    site = make_site(words)
    deltas, result = site.stream(agent="words", text="a é 日本 🙂 b")
    assert joined(deltas) == result["text"] == "a é 日本 🙂 b "
    assert deltas[-1]["done"] is True
    assert not any(delta["done"] for delta in deltas[:-1])


def test_an_agent_that_does_not_stream_comes_in_one_piece(make_site: MakeSite) -> None:
    site = make_site()
    deltas, result = site.stream(agent="echo", text="whole")
    assert joined(deltas) == result["text"] == "whole"


def test_offsets_count_code_points(make_site: MakeSite) -> None:
    site = make_site(words)
    _, result = site.stream(agent="words", text="🙂🙂 日本語", message_id="m")
    deltas, again = site.stream(message_id="m", offset=3)
    assert joined(deltas, 3) == result["text"][3:]
    assert again == result


def test_a_listener_may_come_late_and_from_anywhere(make_site: MakeSite) -> None:
    gate = Gate()

    async def halting(text: str) -> AsyncIterator[str]:
        for n in range(100):
            yield f"{n} "
        await gate.pass_through("half")
        for n in range(100, 200):
            yield f"{n} "

    site = make_site(halting)
    whole = "".join(f"{n} " for n in range(200))
    site.call("chat.send", agent="halting", text="x", message_id="m", wait=False)
    site.node.run(lambda: gate.arrived(1))

    async def listen(offset: int) -> str:
        flow = site.node.client.notices("chat.stream", message_id="m", offset=offset)
        return joined([delta async for delta in flow], offset)

    listeners = [site.node.loop.submit(listen(offset)) for offset in (0, 1, 50, 289, 290)]
    site.on_loop(gate.open)
    for listener, offset in zip(listeners, (0, 1, 50, 289, 290), strict=True):
        assert listener.result() == whole[offset:]


def test_what_was_said_before_a_failure_stays_in_the_conversation(make_site: MakeSite) -> None:
    async def breaks(text: str) -> AsyncIterator[str]:
        yield "so far "
        raise RuntimeError("no further")

    site = make_site(breaks)
    with pytest.raises(AgentFailed, match="no further") as failed:
        site.stream(agent="breaks", text="x")
    rows = site.history(failed.value.data["conversation"])
    assert [(row["kind"], row["text"]) for row in rows][1] == ("message", "so far ")
    assert rows[0]["status"] == "failed"


def test_going_on_with_what_failed_gives_the_failure_again(make_site: MakeSite) -> None:
    async def breaks(text: str) -> str:
        raise RuntimeError("no")

    site = make_site(breaks)
    with pytest.raises(AgentFailed):
        site.call("chat.send", agent="breaks", text="x", message_id="m")
    with pytest.raises(AgentFailed, match="no"):
        site.stream(message_id="m")


def test_a_stream_needs_an_agent_or_an_id(make_site: MakeSite) -> None:
    site = make_site()
    for params in ({}, {"agent": "echo"}, {"text": "x"}, {"message_id": "m", "text": "x"}):
        with pytest.raises(InvalidParams):
            site.stream(**params)


def test_a_run_goes_on_when_its_listener_leaves(make_site: MakeSite) -> None:
    gate = Gate()

    async def patient(text: str) -> AsyncIterator[str]:
        yield "first "
        await gate.pass_through(text)
        yield "last"

    site = make_site(patient)

    async def listen_briefly() -> None:
        flow = site.node.client.notices("chat.stream", agent="patient", text="x", message_id="m")
        async for _ in flow:
            flow.close()
            return

    site.node.run(listen_briefly)
    site.on_loop(gate.open)
    assert site.stream(message_id="m")[1]["text"] == "first last"


def test_output_is_limited(make_site: MakeSite) -> None:
    async def endless(text: str) -> AsyncIterator[str]:
        while True:
            yield "x" * 10_000
            await asyncio.sleep(0)

    site = make_site(endless)
    with pytest.raises(Exception, match="1 MB"):
        site.stream(agent="endless", text="x")
