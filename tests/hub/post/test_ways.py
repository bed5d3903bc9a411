"""To which addresses there is a way, and to which there must be none."""

from __future__ import annotations

import pytest

from aios_nb.hub.post import Kind
from aios_nb.identity import Identity
from aios_nb.records import Scope
from tests.hub.post.offices import office, run, town, until, word


@pytest.mark.parametrize(
    ("host", "scope"), [("10.0.0.1", Scope.PRIVATE), ("198.51.0.1", Scope.GLOBAL)]
)
def test_a_node_on_this_machine_sends_nothing_beyond_it(host, scope):
    async def scene():
        async with town() as stack:
            a = await office(stack)
            far = Identity.generate()
            a.post.know(word(far, (host, 4000), scope=scope))
            assert not a.post.send(far.node_id, Kind.GOSSIP, b"hello out there")
            assert a.post.sent_bytes == 0
            assert a.post.counts == {"scope": 1}

    run(scene)


def test_a_public_node_sends_nothing_to_addresses_inside():
    async def scene():
        async with town() as stack:
            a, victim = await office(stack), await office(stack)
            for host, scope in [("198.51.0.1", Scope.GLOBAL), ("10.0.0.1", Scope.PRIVATE)]:
                a.said = word(a.identity, (host, a.port), scope=scope)
                a.post.know(victim.said)
                assert not a.write(victim, b"knock")
            assert a.post.sent_bytes == 0

    run(scene)


def test_a_node_without_an_address_has_no_way_and_is_no_way():
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack)
            a.post.know(word(b.identity, None))
            assert not a.write(b, b"where")
            a.said = word(a.identity, None)
            a.post.know(word(b.identity, b.address, epoch=2))
            assert not a.write(b, b"where")

    run(scene)


def test_another_network_is_not_talked_to():
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack, net="lab")
            a.post.know(b.said)
            assert not a.write(b, b"hello")
            a.post.know(word(b.identity, b.address))  # it says so; its post does not listen
            assert a.write(b, b"hello")
            await until(lambda: b.post.counts["network"])
            assert (b.letters, b.post.sent_bytes) == ([], 0)

    run(scene)


@pytest.mark.parametrize("hosts", [("::1", "::1"), ("::", "127.0.0.1"), ("127.0.0.1", "::")])
def test_both_kinds_of_address(hosts):
    async def scene():
        async with town() as stack:
            made = [
                await office(stack, host, named="127.0.0.1" if host == "::" else "")
                for host in hosts
            ]
            a, b = made
            a.post.know(b.said)
            await a.reaches(b)
            await b.reaches(a)
            assert a.met == [b.said]

    run(scene)


def test_an_older_socket_has_no_way_to_newer_addresses():
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack, "::1")
            a.post.know(b.said)
            b.post.know(a.said)
            assert not a.write(b, b"hello")
            assert not b.write(a, b"hello")

    run(scene)
