"""What a name means: here, elsewhere, and once it was used."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aios_nb.access import ANYONE, Access, Caller, Principal
from aios_nb.envelope import DEADLINE_MAX_S
from aios_nb.errors import NoSuchAgent, Unreachable
from aios_nb.hub import finding
from tests.hub.town import FarCarrier, House, Town

STRANGER = Principal(Caller.NODE, "s" * 32)
FRIEND = Principal(Caller.KNOWN, "f" * 32)
TOKEN = Principal(Caller.TOKEN, "token:tg")


# Without asking anyone -------------------------------------------------------------------


def test_our_own_agent_is_found_by_name_and_by_id(town: Town, here: House, b: House) -> None:
    agent = town.run(here.offer("adder"))
    town.run(b.offer("adder"))
    for ref in ("adder", agent, agent[:14]):
        target = town.run(here.seek(ref))
        assert (target.id, target.is_remote) == (agent, False)
        assert here.finding.local(ref, here.owner) is target
    assert here.asked == []


def test_a_whole_id_of_another_node_is_taken_without_asking(town: Town, here: House) -> None:
    ref = f"adder@{'q' * 32}"
    for caller in (here.owner, TOKEN, FRIEND, STRANGER):
        target = here.finding.resolve(ref, caller)
        assert town.run(here.seek(ref, caller)).id == target.id == ref
    assert here.asked == []
    assert target.is_remote
    assert isinstance(target.carrier, FarCarrier)
    assert target.carrier.node_id == "q" * 32
    # Its own node decides all of this.
    assert target.access is Access.PUBLIC
    assert target.timeout_s == DEADLINE_MAX_S
    assert target.may_call is None
    assert not target.idempotent


def test_what_a_link_asks_for_directly_is_local_only(town: Town, here: House, b: House) -> None:
    far = town.run(b.offer("adder"))
    town.run(here.seek("adder"))
    for ref in ("adder", far):
        with pytest.raises(NoSuchAgent):
            here.finding.local(ref, FRIEND)
    asked = list(here.asked)
    for caller in (FRIEND, STRANGER, ANYONE):
        with pytest.raises(NoSuchAgent):
            town.run(here.card(far, caller))
        with pytest.raises(NoSuchAgent):
            town.run(here.card("adder", caller))
    assert here.asked == asked


def test_a_caller_without_a_key_reaches_no_other_node(town: Town, here: House, b: House) -> None:
    far = town.run(b.offer("adder", access="public"))
    town.run(here.seek("adder"))
    for ref in ("adder", far, "other"):
        for look in (here.finding.resolve, lambda ref, who: town.run(here.seek(ref, who))):
            with pytest.raises(NoSuchAgent) as missing:
                look(ref, ANYONE)
            assert missing.value.data["near"] == []


def test_what_is_meant_for_our_private_agent_never_goes_elsewhere(
    town: Town, here: House, b: House
) -> None:
    town.run(b.offer("diary"))
    town.run(here.seek("diary"))
    town.run(here.offer("diary", access="private"))
    asked = list(here.asked)
    with pytest.raises(NoSuchAgent):
        here.finding.resolve("diary", STRANGER)
    with pytest.raises(NoSuchAgent):
        town.run(here.seek("diary", STRANGER))
    assert here.asked == asked
    assert here.finding.resolve("diary", here.owner).id == f"diary@{here.id}"


def test_before_there_are_links_only_this_node_is_known(town: Town, here: House) -> None:
    alone = finding.Finding(here.directory, here.bindings)
    town.run(here.offer("adder"))
    assert alone.resolve("adder", here.owner).id == f"adder@{here.id}"
    with pytest.raises(NoSuchAgent):
        alone.resolve(f"adder@{'q' * 32}", here.owner)
    with pytest.raises(NoSuchAgent, match="did you mean adder"):
        town.run(alone.seek("addder", here.owner))
    with pytest.raises(Unreachable):
        town.run(alone._ask_card(f"adder@{'q' * 32}", 1))


# The start of an id ----------------------------------------------------------------------


def test_the_start_of_a_joined_nodes_id_needs_twelve_characters(
    town: Town, here: House, b: House
) -> None:
    with pytest.raises(NoSuchAgent, match="12 characters"):
        here.finding.resolve(f"adder@{b.id[:11]}", here.owner)
    assert here.finding.resolve(f"adder@{b.id[:12]}", here.owner).id == f"adder@{b.id}"


def test_of_a_node_that_was_used_four_characters_do(town: Town, here: House, b: House) -> None:
    town.run(b.offer("adder"))
    town.run(here.seek("adder"))
    assert here.finding.resolve(f"other@{b.id[:4]}", here.owner).id == f"other@{b.id}"
    town.run(here.restart())
    assert here.finding.resolve(f"other@{b.id[:4]}", here.owner).id == f"other@{b.id}"
    here.joined_nodes.clear()
    assert here.finding.resolve(f"other@{b.id[:4]}", here.owner).id == f"other@{b.id}"
    with pytest.raises(NoSuchAgent):
        here.finding.resolve(f"other@{b.id[:3]}", here.owner)


def test_a_strangers_use_makes_no_node_used(town: Town, here: House, b: House) -> None:
    here.finding.resolve(f"adder@{b.id}", STRANGER)
    town.run(b.offer("adder"))
    town.run(here.seek("adder", STRANGER))
    with pytest.raises(NoSuchAgent, match="12 characters"):
        here.finding.resolve(f"adder@{b.id[:8]}", here.owner)


def test_a_beginning_that_two_nodes_share_is_an_error_with_both(
    town: Town, here: House, b: House
) -> None:
    town.run(b.offer("adder"))
    used = town.run(here.seek("adder")).id
    twin = b.id[:11] + ("a" * 21 if b.id[11] != "a" else "b" * 21)
    town.linked.append(twin)  # a stranger who made such a key
    with pytest.raises(NoSuchAgent) as unclear:
        here.finding.resolve(f"adder@{b.id[:8]}", here.owner)
    assert sorted(unclear.value.data["near"]) == sorted([used, f"adder@{twin}"])
    assert here.finding.resolve(f"adder@{b.id[:12]}", here.owner).id == used
    with pytest.raises(NoSuchAgent) as told:
        here.finding.resolve(f"adder@{b.id[:8]}", STRANGER)
    assert twin not in str(told.value.to_wire())


def test_an_unknown_beginning_leads_nowhere(here: House) -> None:
    other = "aaaa" if not here.id.startswith("aaaa") else "bbbb"
    with pytest.raises(NoSuchAgent):
        here.finding.resolve(f"adder@{other * 4}", here.owner)


# Bare names ------------------------------------------------------------------------------


def test_a_name_only_one_joined_node_has_is_found_and_stays_bound(
    town: Town, here: House, b: House, c: House
) -> None:
    agent = town.run(b.offer("adder"))
    with pytest.raises(NoSuchAgent):
        here.finding.resolve("adder", here.owner)
    assert town.run(here.seek("adder")).id == agent
    assert here.finding.resolve("adder", here.owner).id == agent
    assert here.finding.resolve("adder", STRANGER).id == agent
    town.run(c.offer("adder"))
    town.run(here.restart())
    assert town.run(here.seek("adder")).id == agent


def test_a_name_that_several_have_is_an_error_with_their_ids(
    town: Town, here: House, b: House, c: House
) -> None:
    ids = {town.run(b.offer("adder")), town.run(c.offer("adder"))}
    with pytest.raises(NoSuchAgent, match="type the id") as unclear:
        town.run(here.seek("adder"))
    assert set(unclear.value.data["near"]) == ids
    assert all(agent in unclear.value.message for agent in ids)
    assert here.bindings.get("adder") is None
    with pytest.raises(NoSuchAgent) as told:
        town.run(here.seek("adder", STRANGER))
    assert not any(agent in str(told.value.to_wire()) for agent in ids)


def test_our_own_agent_takes_its_name_back(town: Town, here: House, b: House) -> None:
    far = town.run(b.offer("adder"))
    assert town.run(here.seek("adder")).id == far
    own = town.run(here.offer("adder"))
    assert town.run(here.seek("adder")).id == own
    town.run(here.directory.withdrawn("adder"))
    assert town.run(here.seek("adder")).id == far


def test_a_name_nobody_has_offers_the_near_ones(town: Town, here: House, b: House) -> None:
    town.run(b.offer("translator"))
    town.run(here.seek("translator"))
    town.run(here.offer("translate"))
    with pytest.raises(NoSuchAgent) as missing:
        town.run(here.seek("translater"))
    assert set(missing.value.data["near"]) == {"translator", "translate"}
    with pytest.raises(NoSuchAgent) as told:
        town.run(here.seek("translater", STRANGER))
    assert told.value.data["near"] == ["translate"]


@pytest.mark.parametrize(("caller", "binds"), [(TOKEN, True), (FRIEND, False), (STRANGER, False)])
def test_only_the_owners_and_tokens_use_binds(
    town: Town, here: House, b: House, caller: Principal, binds: bool
) -> None:
    agent = town.run(b.offer("adder"))
    assert town.run(here.seek("adder", caller)).id == agent
    assert here.bindings.get("adder") == (agent if binds else None)
    assert here.store.read("SELECT name, agent FROM bindings") == (
        [("adder", agent)] if binds else []
    )


def test_nodes_that_fail_or_have_none_are_skipped(
    town: Town, here: House, b: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "ASK_S", 0.05)
    agent = town.run(b.offer("adder"))
    away, silent, cut, empty, liar = (town.house() for _ in range(5))
    here.join(away, silent, cut, empty, liar)
    for other in (away, silent, cut, liar):
        town.run(other.offer("adder"))
    away.away = silent.silent = cut.cut = True
    liar.twist = lambda answer: {**answer, "card": {**answer["card"], "id": agent}}
    assert town.run(here.seek("adder")).id == agent
    assert set(here.asked) == {b.id, away.id, silent.id, cut.id, empty.id, liar.id}


def test_an_agent_that_is_not_for_us_is_not_found(town: Town, here: House, b: House) -> None:
    town.run(b.offer("diary", access="private"))
    with pytest.raises(NoSuchAgent):
        town.run(here.seek("diary"))


def test_two_questions_at_once_bind_a_name_once(
    town: Town, here: House, b: House, c: House
) -> None:
    first, second = town.run(b.offer("adder")), f"adder@{c.id}"

    async def both() -> list[Any]:
        return list(
            await asyncio.gather(
                here.bindings.bind("adder", first), here.bindings.bind("adder", second)
            )
        )

    assert town.run(both()) == [first, first]
    assert here.bindings.get("adder") == first


def test_who_finds_another_agent_than_a_faster_question_is_told_of_both(
    town: Town, here: House, b: House, c: House
) -> None:
    first, second = town.run(b.offer("adder")), town.run(c.offer("adder"))
    c.away = True

    async def race() -> None:
        asking = asyncio.create_task(here.seek("adder"))
        await here.bindings.bind("adder", second)
        await asking

    with pytest.raises(NoSuchAgent) as unclear:
        town.run(race())
    assert sorted(unclear.value.data["near"]) == sorted([first, second])


# A bound name later ----------------------------------------------------------------------


def used_long_ago(town: Town, here: House, name: str) -> None:
    town.run(here.seek(name))
    here.now += finding.CONFIRMED_S + 1
    here.asked.clear()


def test_a_bound_name_stays_with_its_node_while_that_is_away(
    town: Town, here: House, b: House, c: House
) -> None:
    agent = town.run(b.offer("adder"))
    used_long_ago(town, here, "adder")
    town.run(c.offer("adder"))
    b.away = True
    assert town.run(here.seek("adder")).id == agent
    assert here.asked == [b.id]


def test_a_name_whose_agent_is_gone_lists_it_and_the_other(
    town: Town, here: House, b: House, c: House
) -> None:
    old = town.run(b.offer("adder"))
    used_long_ago(town, here, "adder")
    new = town.run(c.offer("adder"))
    town.run(b.directory.withdrawn("adder"))
    with pytest.raises(NoSuchAgent, match="type the whole id") as gone:
        town.run(here.seek("adder"))
    assert gone.value.data["near"] == [old, new]
    assert old in gone.value.message
    assert new in gone.value.message
    assert here.bindings.get("adder") == old
    assert town.run(here.seek(new)).id == new
    with pytest.raises(NoSuchAgent) as told:
        town.run(here.seek("adder", STRANGER))
    assert new not in str(told.value.to_wire())


def test_a_name_whose_agent_is_gone_leads_nowhere_if_nobody_else_has_it(
    town: Town, here: House, b: House, c: House
) -> None:
    town.run(b.offer("adder"))
    used_long_ago(town, here, "adder")
    town.run(b.directory.withdrawn("adder"))
    with pytest.raises(NoSuchAgent):
        town.run(here.seek("adder"))


def test_a_name_used_a_moment_ago_is_not_asked_for_again(town: Town, here: House, b: House) -> None:
    town.run(b.offer("adder"))
    for _ in range(5):
        town.run(here.seek("adder"))
    assert here.asked == [b.id]
    here.now += finding.CONFIRMED_S + 1
    for _ in range(5):
        town.run(here.seek("adder"))
    assert here.asked == [b.id, b.id]


# Checked before it is written into a conversation -------------------------------------------


def test_a_checked_id_must_be_there_unless_its_node_is_away(
    town: Town, here: House, b: House
) -> None:
    agent = town.run(b.offer("adder"))
    check = here.finding.check
    assert town.run(check(agent, here.owner)).id == agent
    assert town.run(check("adder", here.owner)).id == agent
    with pytest.raises(NoSuchAgent):
        town.run(check(f"nobody@{b.id}", here.owner))
    b.away = True
    assert town.run(check(f"nobody@{b.id}", here.owner)).id == f"nobody@{b.id}"
    assert town.run(check(f"nobody@{'q' * 32}", here.owner)).id == f"nobody@{'q' * 32}"
    own = town.run(here.offer("mine"))
    assert town.run(check("mine", here.owner)).id == own
