from __future__ import annotations

import msgspec
import pytest

from aios_nb.errors import UsageError
from aios_nb.hub.catalogue import Page, page
from aios_nb.hub.catalogue.sync import PAGE_BYTES
from aios_nb.hub.presence import declare
from aios_nb.records import Scope, Signed
from tests.hub.catalogue.writers import ALICE, BOB, EPOCH, Watched, writer

LOOPBACK, PRIVATE, GLOBAL = Scope


def filled(*several: Signed) -> Watched:
    watched = Watched(scope_of_node=lambda node: GLOBAL if node == BOB.id else LOOPBACK)
    for signed in several:
        watched.catalogue.offer(signed.to_bytes())
    return watched


def presence(number: int, scope: Scope = LOOPBACK):
    return declare(
        writer(number).identity, "main", epoch=EPOCH, incarnation=0, scope=scope, address=None
    )


def pages(watched: Watched, scope: Scope = LOOPBACK, **more) -> list[Page]:
    found = [page(watched.catalogue, scope, **more)]
    while found[-1].after is not None:
        assert len(found) <= len(AGENTS) + len(MEMBERS)  # it comes to an end
        found.append(page(watched.catalogue, scope, after=found[-1].after, **more))
    return found


AGENTS = [writer(number).agent(f"a{n}") for number in range(10, 20) for n in range(20)]
MEMBERS = [presence(number) for number in range(10, 40)]


@pytest.mark.parametrize("limit", [1, 1000, 5000, 20_000, PAGE_BYTES])
def test_pages_hold_everything_once_and_are_no_larger_than_said(limit: int):
    watched = filled(*AGENTS)
    found = pages(watched, presences=MEMBERS, limit_bytes=limit)
    sent = [content for one in found for content in one.records]
    assert sorted(sent) == sorted(signed.to_bytes() for signed in AGENTS)
    told = [content for one in found for content in one.presences]
    assert sorted(told) == sorted(one.to_bytes() for one in MEMBERS)
    for one in found:
        alone = len(one.records) + len(one.presences) == 1
        assert len(msgspec.json.encode(one)) <= limit or alone
    assert (len(found) > 1) is (limit < PAGE_BYTES)


def test_a_page_survives_the_wire():
    one = pages(filled(*AGENTS), presences=MEMBERS, limit_bytes=9000)[0]
    assert msgspec.json.decode(msgspec.json.encode(one), type=Page) == one


def test_one_who_knows_everything_gets_nothing():
    watched = filled(*AGENTS)
    digest = watched.catalogue.digest(LOOPBACK)
    assert pages(watched, digest=digest) == [Page()]


def test_one_who_lacks_little_gets_little():
    watched, other = filled(*AGENTS), filled(*AGENTS[1:])
    found = pages(watched, digest=other.catalogue.digest(LOOPBACK))
    sent = [content for one in found for content in one.records]
    assert AGENTS[0].to_bytes() in sent
    assert len(sent) < 20  # one bucket of 128
    for content in sent:
        other.catalogue.offer(content)
    assert other.catalogue.digest(LOOPBACK) == watched.catalogue.digest(LOOPBACK)


def test_pages_of_two_who_each_lack_something_bring_both_to_the_same():
    left, right = filled(*AGENTS[:150]), filled(*AGENTS[50:])
    digests = [one.catalogue.digest(LOOPBACK) for one in (left, right)]
    for one, other, digest in ((left, right, digests[0]), (right, left, digests[1])):
        for part in pages(other, digest=digest, limit_bytes=4000):
            for content in part.records:
                one.catalogue.offer(content)
    assert left.mirror == right.mirror
    assert len(left.mirror) == len(AGENTS)


def test_what_stays_while_pages_are_sent_is_sent_once_though_others_come_and_go():
    watched = filled(*AGENTS[:100])
    seen: list[bytes] = []
    after, new = None, iter(AGENTS[100:])
    while True:
        part = page(watched.catalogue, LOOPBACK, after=after, limit_bytes=3000)
        seen += part.records
        after = part.after
        if after is None:
            break
        for signed, _ in zip(new, range(5), strict=False):
            watched.catalogue.offer(signed.to_bytes())
    assert len(set(seen)) == len(seen)
    assert {signed.to_bytes() for signed in AGENTS[:100]} <= set(seen)


def test_only_what_the_peer_may_hear_is_sent():
    watched = filled(ALICE.agent(), BOB.agent(), ALICE.node(), ALICE.node(scope=PRIVATE))
    members = [presence(number, scope) for number, scope in enumerate(Scope, 10)]
    [wide] = pages(watched, GLOBAL, presences=members)
    assert wide.records == (BOB.agent().to_bytes(),)
    assert wide.presences == (members[2].to_bytes(),)
    [middle] = pages(watched, PRIVATE, presences=members)
    assert len(middle.records) == len(middle.presences) == 2
    [near] = pages(watched, LOOPBACK, presences=members)
    assert (len(near.records), len(near.presences)) == (4, 3)


@pytest.mark.parametrize("after", ["", "x", "r", "rzz", "p", "r" + "0" * 15, "q" + "0" * 16])
def test_a_cursor_that_is_not_ours_is_refused(after: str):
    with pytest.raises(UsageError, match="after"):
        page(Watched().catalogue, LOOPBACK, after=after)
