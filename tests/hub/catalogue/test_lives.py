from __future__ import annotations

import pytest

from aios_nb.hub.catalogue import Offered, light_of
from aios_nb.hub.others import Light
from aios_nb.records import HOUR_MS, LIFETIME_MS, WITHDRAWN_LIFETIME_MS, AgentRecord, Scope, Signed
from tests.hub.catalogue.writers import ALICE, BOB, EPOCH, NOW, OWN, Watched, check


@pytest.fixture
def watched() -> Watched:
    return Watched()


def put(watched: Watched, *several: Signed) -> list[Offered]:
    return [watched.catalogue.offer(signed.to_bytes()) for signed in several]


# Epochs


def test_a_restarted_node_has_only_what_it_says_in_its_new_life(watched: Watched):
    put(watched, ALICE.node(), ALICE.agent("one"), ALICE.agent("two"), BOB.agent("one"))
    again = ALICE.node(epoch=EPOCH + 1, seq=NOW + 1)
    assert put(watched, again) == [Offered.NEWER]
    assert watched.keys() == {again.key, BOB.agent("one").key}
    assert put(watched, ALICE.agent("one")) == [Offered.OLDER]
    assert put(watched, ALICE.agent("one", epoch=EPOCH + 1)) == [Offered.NEW]
    check(watched)


def test_the_first_word_of_a_new_life_may_be_any_record(watched: Watched):
    put(watched, ALICE.node(), ALICE.agent("one"), ALICE.agent("two"))
    put(watched, ALICE.agent("three", epoch=EPOCH + 1))
    assert watched.keys() == {ALICE.agent("three").key}
    put(watched, ALICE.ended("three", epoch=EPOCH + 2))
    assert watched.keys() == {ALICE.agent("three").key}
    assert not list(watched.catalogue.agents())
    check(watched)


def test_a_node_seen_in_a_later_life_has_no_ghosts(watched: Watched):
    put(watched, ALICE.agent("one"), BOB.agent("one"))
    watched.catalogue.node_changed(ALICE.id, EPOCH)
    assert len(watched.catalogue) == 2
    watched.catalogue.node_changed(ALICE.id, EPOCH + 1)
    assert watched.keys() == {BOB.agent("one").key}
    watched.catalogue.node_changed(ALICE.id, EPOCH + 1)
    check(watched)


def test_nobody_but_us_ends_our_own_life(watched: Watched):
    mine = OWN.agent()
    watched.catalogue.own(mine)
    watched.catalogue.node_changed(OWN.id, EPOCH + 1)
    assert put(watched, OWN.agent(epoch=EPOCH + 1)) == [Offered.REFUSED]
    assert watched.keys() == {mine.key}
    again = OWN.agent("other", epoch=EPOCH + 1)
    assert watched.catalogue.own(again) is Offered.NEW
    assert watched.keys() == {again.key}
    assert watched.catalogue.own(mine) is Offered.OLDER
    check(watched)


@pytest.mark.parametrize(
    ("state", "epoch", "light"),
    [
        ("alive", EPOCH, Light.LIVE),
        ("suspect", EPOCH, Light.SUSPECT),
        ("dead", EPOCH, Light.GONE),
        ("left", EPOCH, Light.GONE),
        (None, None, Light.GONE),
        ("alive", EPOCH + 1, Light.GONE),
        ("alive", EPOCH - 1, Light.GONE),
        ("suspect", EPOCH + 1, Light.GONE),
        ("alive", None, Light.GONE),
    ],
)
def test_an_agent_is_live_only_if_its_node_is_alive_in_that_epoch(
    state: str | None, epoch: int | None, light: Light
):
    record, ended = ALICE.agent().record, ALICE.ended().record
    assert isinstance(record, AgentRecord)
    assert isinstance(ended, AgentRecord)
    assert light_of(record, state, epoch) is light
    assert light_of(ended, state, epoch) is Light.GONE


# Withdrawals


def test_a_withdrawal_ends_an_agent_for_as_long_as_its_record_could_be_believed(watched: Watched):
    offered, ended = ALICE.agent(), ALICE.ended()
    assert put(watched, offered, ended, offered) == [Offered.NEW, Offered.NEWER, Offered.OLDER]
    assert not list(watched.catalogue.agents())
    watched.time.now = offered.record.exp + HOUR_MS  # the last moment of what it ends
    watched.catalogue.expire()
    assert put(watched, offered) == [Offered.OLDER]
    watched.time.now += 1
    watched.catalogue.expire()
    assert watched.keys() == {ended.key}
    assert put(watched, offered) == [Offered.REFUSED]  # by its time
    watched.time.now = ended.record.exp + HOUR_MS + 1
    watched.catalogue.expire()
    assert not watched.keys()
    assert WITHDRAWN_LIFETIME_MS > LIFETIME_MS + HOUR_MS


def test_a_withdrawal_that_comes_first_keeps_what_it_ends_out(watched: Watched):
    assert put(watched, ALICE.ended(), ALICE.agent()) == [Offered.NEW, Offered.OLDER]
    assert not list(watched.catalogue.agents())


def test_an_agent_may_be_offered_again(watched: Watched):
    again = ALICE.agent(seq=NOW + 2)
    put(watched, ALICE.agent(), ALICE.ended(), again)
    assert list(watched.catalogue.agents()) == [again]
    check(watched)


def test_our_own_withdrawal_is_passed_on(watched: Watched):
    ended = OWN.ended()
    watched.catalogue.own(OWN.agent())
    watched.catalogue.own(ended)
    handle = watched.catalogue.handle(ended.key)
    assert watched.catalogue.content(handle) == ended.to_bytes()
    assert not list(watched.catalogue.agents())


# Scopes


def test_an_agent_is_told_where_its_node_can_be_reached():
    places: dict[str, Scope] = {ALICE.id: Scope.PRIVATE, BOB.id: Scope.GLOBAL}
    watched = Watched(scope_of_node=places.get)
    hers, his, own = ALICE.agent(), BOB.agent(), OWN.agent()
    put(watched, hers, his)
    watched.catalogue.own(own)
    seen = {
        scope: {handle for handle, _ in watched.catalogue.listing(range(128), scope)}
        for scope in Scope
    }
    handles = [watched.catalogue.handle(signed.key) for signed in (hers, his, own)]
    assert seen[Scope.LOOPBACK] == set(handles)
    assert seen[Scope.PRIVATE] == set(handles[:2])
    assert seen[Scope.GLOBAL] == {handles[1]}
    assert watched.catalogue.scope(handles[0]) is Scope.PRIVATE
    check(watched)


def test_an_agent_of_an_unknown_node_goes_no_further_than_its_node_says():
    watched = Watched(scope_of_node=lambda _: None)
    agent = ALICE.agent()
    put(watched, agent)
    handle = watched.catalogue.handle(agent.key)
    assert watched.catalogue.scope(handle) is Scope.LOOPBACK
    put(watched, ALICE.node(scope=Scope.PRIVATE))
    assert watched.catalogue.scope(handle) is Scope.PRIVATE
    put(watched, ALICE.node(scope=Scope.GLOBAL), ALICE.node(scope=Scope.LOOPBACK))
    assert watched.catalogue.scope(handle) is Scope.GLOBAL
    check(watched)


def test_a_node_that_moves_takes_its_agents_along():
    places: dict[str, Scope] = {}
    watched = Watched(scope_of_node=places.get)
    agent, node = ALICE.agent(), ALICE.node(scope=Scope.LOOPBACK)
    put(watched, agent, node)
    agent_handle, node_handle = (watched.catalogue.handle(one.key) for one in (agent, node))
    for scope in (Scope.GLOBAL, Scope.PRIVATE, Scope.LOOPBACK):
        places[ALICE.id] = scope
        watched.catalogue.node_changed(ALICE.id)
        assert watched.catalogue.scope(agent_handle) is scope
        assert watched.catalogue.scope(node_handle) is Scope.LOOPBACK  # it has an address inside
        check(watched)
