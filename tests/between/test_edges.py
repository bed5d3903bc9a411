"""The odd moments between nodes: a file in the air, a question nobody waits for, two restarts."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from typing import Any

import pytest

import aios_nb as aios
from aios_nb.errors import Busy, DeadlinePassed, RpcError
from tests.between.conftest import Make, the, until
from tests.between.relay import Relay
from tests.sites import Gate, TestSite, limits


def echo_back(text: str) -> str:
    return text


def upload(site: TestSite, content: bytes) -> dict[str, Any]:
    sha256 = hashlib.sha256(content).hexdigest()
    for start in range(0, len(content), 500_000):
        chunk = content[start : start + 500_000]
        last = start + len(chunk) == len(content)
        site.call("blobs.put", sha256=sha256, offset=start, chunk=chunk, last=last)
    return {"name": "f", "mime": "x/y", "size": len(content), "sha256": sha256}


def port_of(site: TestSite) -> int:
    return int(site.node.url.rpartition(":")[2])


def link_to(site: TestSite, other: TestSite) -> Any:
    return site.on_loop(lambda: site.rooms.links.link(other.node.node_id))


def only_as_joined(site: TestSite, other: TestSite) -> None:
    """Forget where that node says it is, so that the way through a relay is the only one."""
    book = site.rooms.links._book
    site.on_loop(lambda: setattr(book.note(other.node.node_id), "urls", ()))


# Files --------------------------------------------------------------------------------------


def test_an_agent_sends_a_file_of_its_own_on_behalf_of_another_node(node: Make) -> None:
    def reads(text: str, ctx: Any) -> str:
        return str(ctx.read(ctx.files[0]).decode())

    c = node("c", reads)

    async def makes(text: str, ctx: Any) -> str:
        here = await ctx.call("reads_here", text, files=[aios.File(b"here", name="f")])
        there = await ctx.call(the(c, "reads"), text, files=[aios.File(b"there", name="f")])
        return f"{here} {there}"

    def reads_here(text: str, ctx: Any) -> str:
        return reads(text, ctx)

    b = node("b", makes, reads_here, join=c)
    a = node("a", join=b)
    assert a.call("chat.send", agent="makes", text="go")["text"] == "here there"


@pytest.mark.parametrize("way", ["there", "back"])
def test_a_file_survives_a_link_that_is_away_for_a_while(node: Make, way: str) -> None:
    content = bytes(range(256)) * 8000

    def files(text: str, ctx: Any) -> Any:
        if text == "there":
            return hashlib.sha256(ctx.read(ctx.files[0])).hexdigest()
        return aios.File(content, name="f")

    b = node("b", files)
    with Relay(b.node.url) as relay:
        a = node("a", join=f"{relay.url}#{b.node.node_id}")
        b.call("nodes.allow", node=a.node.node_id)
        until(lambda: link_to(a, b) and link_to(b, a))
        only_as_joined(a, b)
        only_as_joined(b, a)
        half = threading.Event()
        passed = 0

        def counts(data: bytes, direction: str) -> bytes:
            nonlocal passed
            passed += len(data) if direction == way else 0
            if passed > len(content) // 2 and not half.is_set():
                relay.away = True
                half.set()
                raise ConnectionResetError
            return data

        sent = [upload(a, content)] if way == "there" else []
        relay.change = counts
        asked = a.start("chat.send", agent=the(b, "files"), text=way, files=sent, deadline_s=60)
        assert half.wait(20)
        tried = relay.connections + 3
        until(lambda: relay.connections >= tried)
        relay.away = False
        reply = asked.result(60)
    found = reply["text"] if way == "there" else reply["files"][0]["sha256"]
    assert found == hashlib.sha256(content).hexdigest()


def test_a_conversation_full_of_files_still_reaches_another_node(node: Make) -> None:
    b = node("b", echo_back)
    a = node("a", join=b)
    b.call("nodes.allow", node=a.node.node_id)
    file = upload(a, b"x")
    files = [{**file, "name": "n" * 190 + str(number)} for number in range(16)]
    talk = a.call("chat.open", agents=[the(b, "echo_back")])["conversation"]
    for number in range(32):
        reply = a.call(
            "chat.send", agent=the(b, "echo_back"), conversation=talk, text=f"{number}", files=files
        )
        assert reply["text"] == f"{number}"


# Text ---------------------------------------------------------------------------------------


def test_a_text_that_is_too_long_on_the_wire_breaks_no_link(node: Make) -> None:
    text = "\x01" * 1_000_000

    async def odd(_: str) -> Any:
        yield text
        await asyncio.sleep(0.1)  # so that it goes out as it is written

    b = node("b", odd)
    a = node("a", join=b)
    a.call("agents.card", agent=the(b, "odd"))
    before = link_to(a, b)
    with pytest.raises(RpcError, match="longer than that node takes"):
        a.stream(agent="odd", text="x", deadline_s=20)
    assert link_to(a, b) is before  # and no link is lost over it


# Dialling -----------------------------------------------------------------------------------


def test_a_cut_in_the_middle_of_a_handshake_is_no_refusal(node: Make) -> None:
    b = node("b", echo_back)
    with Relay(b.node.url) as relay:
        a = node("a", join=f"{relay.url}#{b.node.node_id}")
        b.call("nodes.allow", node=a.node.node_id)
        for point in range(1, 900, 25):
            only_as_joined(a, b)
            relay.cut_after(point)
            relay.cut()
            reply = a.call("chat.send", agent=the(b, "echo_back"), text=f"{point}")
            assert reply["text"] == f"{point}"


# Waiting and restarting ---------------------------------------------------------------------


def test_what_waits_behind_another_is_not_lost_when_its_node_stops_twice(node: Make) -> None:
    heard: list[str] = []

    def hears(text: str) -> str:
        heard.append(text)
        return text

    b = node("b", hears)
    port, agent = port_of(b), the(b, "hears")
    a = node("a", join=b)
    talk = a.call("chat.open", agents=[agent])["conversation"]
    b.stop()
    for number in range(5):
        a.call("chat.post", conversation=talk, text=f"n{number}", deadline_s=600)
    for _ in range(2):
        a.stop()
        a = node("a")
    a.stop()
    b = node("b", hears, port=port)
    a = node("a", join=b)
    until(lambda: len(a.history(talk)) == 10)
    assert heard == [f"n{number}" for number in range(5)]
    assert {row["status"] for row in a.history(talk)} == {"done"}


def test_a_message_that_never_had_its_turn_is_late_and_not_unreachable(node: Make) -> None:
    gates: list[Gate] = []

    async def slow(text: str) -> str:
        gates.append(gate := Gate())
        await gate.pass_through(text)
        return text

    b = node("b", slow)
    a = node("a", join=b)
    talk = a.call("chat.open", agents=[the(b, "slow")])["conversation"]
    first = a.call("chat.post", conversation=talk, text="first", deadline_s=600)
    until(lambda: gates)
    with pytest.raises(DeadlinePassed) as caught:
        a.call("chat.send", agent="slow", conversation=talk, text="second", deadline_s=0.2)
    assert caught.value.data["ran"] == "no"
    b.on_loop(gates[0].open)
    assert a.stream(message_id=first["message_id"])[1]["text"] == "first"
    assert len(gates) == 1


def test_a_sender_back_after_the_deadline_does_not_claim_that_nothing_ran(node: Make) -> None:
    gates: list[Gate] = []

    async def slow(text: str) -> str:
        gates.append(gate := Gate())
        await gate.pass_through(text)
        return text

    b = node("b", slow, echo_back)
    a = node("a", join=b)
    a.call("chat.send", agent=the(b, "echo_back"), text="warm")
    began = time.monotonic()
    taken = a.call("chat.send", agent=the(b, "slow"), text="x", wait=False, deadline_s=3)
    until(lambda: gates)
    a.stop()
    until(lambda: time.monotonic() > began + 3)
    a = node("a", join=b)
    with pytest.raises(RpcError) as caught:
        a.stream(message_id=taken["message_id"])
    assert caught.value.data["ran"] == "unknown"


def test_a_person_may_think_beyond_the_deadline_though_the_node_is_restarted(node: Make) -> None:
    async def curious(text: str, ctx: Any) -> str:
        return f"{text}, {await ctx.ask_user('your name?')}"

    b = node("b", curious, echo_back)
    a = node("a", join=b)
    a.call("chat.send", agent=the(b, "echo_back"), text="warm")
    began = time.monotonic()
    reply = a.call("chat.send", agent=the(b, "curious"), text="hello", deadline_s=3)
    assert reply["status"] == "input_required"
    a.stop()
    until(lambda: time.monotonic() > began + 3)
    a = node("a", join=b)
    until(lambda: a.history(reply["conversation"])[0]["status"] == "input_required")
    done = a.call("chat.answer", message_id=reply["message_id"], text="Ada")
    assert done["text"] == "hello, Ada"


@pytest.mark.parametrize("turns", range(6))
def test_a_first_message_that_is_called_off_at_once_is_stopped(node: Make, turns: int) -> None:
    """The word to stop may overtake what it is about."""

    async def endless(text: str) -> None:
        await asyncio.sleep(1000)

    b = node("b", endless)
    a = node("a", join=b)
    until(lambda: link_to(a, b))

    async def send_and_stop() -> Any:
        call = a.node.client.call
        taken = await call(
            "chat.send", agent=the(b, "endless"), text="x", wait=False, deadline_s=600
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        return await call("chat.cancel", message_id=taken["message_id"])

    assert a.node.run(send_and_stop)["status"] == "cancelled"

    def sides() -> Any:
        return [row["conversation"] for row in b.call("chat.list")["conversations"]]

    def quiet() -> bool:
        return all(b.history(side)[0]["status"] == "cancelled" for side in sides())

    until(lambda: not a.rooms.carrying._stopping)
    until(quiet)


# Questions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_question_nobody_waits_for_any_more_holds_up_nobody(node: Make, where: str) -> None:
    """Neither the agent in between, nor its caller."""

    async def hasty(text: str, ctx: Any) -> str:
        try:
            async with asyncio.timeout(0.2):
                return str(await ctx.ask_user("your name?"))
        except TimeoutError:
            return "never mind"

    c = node("c", hasty)

    async def between(text: str, ctx: Any) -> str:
        return "b: " + await ctx.call("hasty" if where == "here" else the(c, "hasty"), text)

    b = node("b", between, hasty, join=c)
    a = node("a", join=b)
    taken = a.call("chat.send", agent=the(b, "between"), text="x", wait=False, deadline_s=600)
    until(lambda: a.history(taken["conversation"])[-1]["text"] == "b: never mind")
    assert a.history(taken["conversation"])[0]["status"] == "done"


# Many ---------------------------------------------------------------------------------------


def test_a_full_outbox_arrives_in_order_and_once(node: Make) -> None:
    heard: list[str] = []

    async def hears(text: str) -> str:
        heard.append(text)
        return text

    b = node("b", hears)
    port, agent = port_of(b), the(b, "hears")
    a = node("a", join=b)
    b.call("nodes.allow", node=a.node.node_id)
    b.stop()
    talks = [a.call("chat.open", agents=[agent])["conversation"] for _ in range(40)]
    for number in range(6):  # one that is tried, and five that wait for it
        for talk in talks:
            a.call("chat.post", conversation=talk, text=f"{talk} {number}", deadline_s=600)
    with pytest.raises(Busy):
        a.call("chat.post", conversation=talks[0], text="one too many")
    b = node("b", hears, port=port)
    for talk in talks:
        until(lambda talk=talk: len(a.history(talk)) == 12)  # type: ignore[misc]
        assert [text for text in heard if text.startswith(talk)] == [
            f"{talk} {number}" for number in range(6)
        ]
        assert [row["seq"] for row in a.history(talk)] == list(range(1, 13))


def test_a_host_with_too_many_streams_does_not_say_that_it_took_nothing(node: Make) -> None:
    gates: list[Gate] = []

    async def slow(text: str) -> str:
        gates.append(gate := Gate())
        await gate.pass_through(text)
        return text

    b = node("b", slow, limits=limits(open_streams=2))
    a = node("a", join=b)
    b.call("nodes.allow", node=a.node.node_id)
    asked = [a.start("chat.send", agent=the(b, "slow"), text=f"{n}") for n in range(5)]
    until(lambda: len(gates) == 5)
    for gate in gates:
        b.on_loop(gate.open)
    assert [future.result(30)["text"] for future in asked] == [f"{n}" for n in range(5)]
    assert len(gates) == 5
