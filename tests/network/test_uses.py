"""What a row tells beside an agent's own words: its node, how often it was used, what changed."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.network.conftest import Make, found, meet, say, the, until, works
from tests.network.madeup import MadeUp
from tests.sites import TestSite


def row(site: TestSite, agent: str) -> dict[str, Any]:
    return found(site, f"name:{agent.partition('@')[0]}").get(agent, {})


def over_a_link(site: TestSite, other: TestSite, **params: Any) -> Any:
    """What another node is told when it searches here."""

    async def ask() -> Any:
        link = await other.rooms.links.reach(site.node.node_id)
        return await link.call("agents.search", params)

    return other.node.run(ask)


def test_a_row_tells_the_name_of_its_node_and_the_agents_version(node: Make) -> None:
    bob = node("bob", works("adder", version="7"))
    alice = node("alice", works("own", version="2"), join=bob)
    until(lambda: row(alice, the(bob, "adder")).get("node_name") == "bob")

    assert row(alice, the(bob, "adder"))["version"] == "7"
    assert found(alice, "node:bob").keys() == {the(bob, "adder")}
    mine = row(alice, the(alice, "own"))
    assert (mine["node_name"], mine["version"], mine["talks"]) == ("alice", "2", 0)


def test_an_agent_is_marked_from_a_change_of_its_card_until_it_is_used_again(node: Make) -> None:
    def adder(about: str) -> Any:
        return works("adder", about, tags=["math"], version="1")

    bob = node("bob", adder("Adds numbers."))
    alice = node("alice", join=bob)
    meet(alice, bob)
    theirs = the(bob, "adder")
    until(lambda: row(alice, theirs))
    assert (row(alice, theirs)["talks"], row(alice, theirs)["changed"]) == (0, False)

    say(alice, theirs)
    say(alice, "adder")
    assert (row(alice, theirs)["talks"], row(alice, theirs)["changed"]) == (2, False)
    bob.node.host(adder("Adds and subtracts."))
    until(lambda: row(alice, theirs)["changed"])
    until(lambda: alice.call("agents.card", agent=theirs)["used"] is not None)
    used = alice.call("agents.card", agent=theirs)["used"]
    assert (used["talks"], used["changed"]) == (2, True)
    assert used["said"]["about"] == "Adds numbers."

    bob.node.host(adder("Adds numbers."))  # the same words are the same card
    until(lambda: not row(alice, theirs)["changed"])
    bob.node.host(adder("Subtracts."))
    until(lambda: row(alice, theirs)["changed"])
    say(alice, theirs)
    assert (row(alice, theirs)["talks"], row(alice, theirs)["changed"]) == (3, False)


def test_a_version_that_is_only_counted_is_no_change_and_one_that_is_named_is(node: Make) -> None:
    bob = node("bob", works("adder", "Adds."))
    alice = node("alice", join=bob)
    meet(alice, bob)
    theirs = the(bob, "adder")
    until(lambda: row(alice, theirs))
    say(alice, theirs)
    assert (row(alice, theirs)["version"], row(alice, theirs)["talks"]) == ("1", 1)

    def seen_as(version: str) -> tuple[bool, bool]:
        """Whether it counts as changed: on its row, and where its card is."""
        until(lambda: row(alice, theirs)["version"] == version)
        told = alice.call("agents.card", agent=theirs)
        assert (told["card"]["version"], told["verified"]) == (version, True)
        return row(alice, theirs)["changed"], told["used"]["changed"]

    bob.node.host(works("adder", "Adds."))  # its cell was run again
    assert seen_as("2") == (False, False)
    bob.node.host(works("adder", "Adds.", examples=["2 and 2"]))
    assert seen_as("3") == (True, True)
    bob.node.host(works("adder", "Adds."))
    assert seen_as("4") == (False, False)
    bob.node.host(works("adder", "Adds.", version="5"))
    assert seen_as("5") == (True, True)


def test_what_does_not_answer_was_not_used(node: Make) -> None:
    bob = node("bob", works("adder"))
    alice = node("alice", join=bob)
    meet(alice, bob)
    until(lambda: row(alice, the(bob, "adder")))
    bob.node.host(_broken())
    until(lambda: row(alice, the(bob, "broken")))
    refused = alice.start("chat.send", agent=the(bob, "broken"), text="hello")
    assert refused.exception(40) is not None

    assert row(alice, the(bob, "broken"))["talks"] == 0


def _broken() -> Any:
    from aios_nb.agents.definition import describe

    async def answer(text: str) -> str:
        raise RuntimeError(text)

    return describe(answer, name="broken", about="Fails.")


def test_uses_outlive_a_restart_and_are_told_to_who_watches(node: Make) -> None:
    bob = node("bob", works("adder", "Adds."))
    alice = node("alice", join=bob)
    meet(alice, bob)
    adder = the(bob, "adder")
    until(lambda: row(alice, adder))
    flow = alice.flow("agents.watch")

    async def told() -> dict[str, Any]:
        await flow.result()
        asked = alice.node.client.call("chat.send", agent=adder, text="hello")
        await asked
        async for change in flow:
            if change["agent"]["talks"]:
                return change
        raise AssertionError

    change = alice.node.run(told)
    assert (change["event"], change["agent"]["id"]) == ("replaced", adder)
    flow.close()
    alice.stop()
    bob.node.host(works("adder", "Multiplies."))
    again = node("alice", join=bob)
    until(lambda: row(again, adder).get("changed"))

    assert row(again, adder)["talks"] == 1


def test_whom_the_owner_uses_is_not_told_to_other_nodes(node: Make) -> None:
    bob = node("bob", works("adder"))
    alice = node("alice", join=bob)
    meet(alice, bob)
    until(lambda: row(alice, the(bob, "adder")))
    say(alice, the(bob, "adder"))
    assert row(alice, the(bob, "adder"))["talks"] == 1

    rows = over_a_link(alice, bob, query="name:adder")["agents"]
    assert [(each["id"], each["talks"]) for each in rows] == [(the(bob, "adder"), 0)]


def test_an_empty_query_lists_all_page_by_page_but_not_to_other_nodes(node: Make) -> None:
    bob = node("bob", *(works(f"agent{nr:02}") for nr in range(20)))
    alice = node("alice", join=bob)
    until(lambda: alice.call("agents.search", query="")["total"] == 20 + 5)
    everyone = alice.call("agents.search", query="", limit=200)["agents"]
    pages = [alice.call("agents.search", query="", limit=10, offset=nr) for nr in (0, 10, 20, 30)]

    assert [page["total"] for page in pages] == [25] * 4
    assert [each for page in pages for each in page["agents"]] == everyone
    assert len({each["id"] for each in everyone}) == 25
    found_by_words = alice.call("agents.search", query="agent03", limit=5, offset=1)
    assert the(bob, "agent03") not in {each["id"] for each in found_by_words["agents"]}
    meet(alice, bob)
    assert over_a_link(alice, bob, query="") == {"agents": [], "total": 0}


def test_a_node_whose_name_comes_late_is_named_on_its_rows(node: Make) -> None:
    alice, ghost = node("alice"), MadeUp()
    network = alice.rooms.network

    def meet_ghost() -> None:
        spreading = network._started()
        spreading.gossip.introduce(asyncio.get_running_loop().time(), ghost.presence())
        network.catalogue.offer(ghost.agent("haunter").to_bytes())

    alice.on_loop(meet_ghost)
    haunter = f"haunter@{ghost.id}"
    assert row(alice, haunter)["node_name"] == ""
    alice.on_loop(lambda: network.catalogue.offer(ghost.node(("http", "::1", 9)).to_bytes()))

    assert row(alice, haunter)["node_name"] == "made-up"
