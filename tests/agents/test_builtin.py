"""The agents every node comes with."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from aios_nb.access import Access
from aios_nb.agents import builtin_agents
from aios_nb.agents.builtin import BUILTIN_NAMES, clock
from aios_nb.envelope import AgentRow
from aios_nb.errors import AgentFailed

NODE = "a" * 32


def row(name, about="", why=""):
    return AgentRow(id=f"{name}@{NODE}", name=name, node_id=NODE, about=about, why=why)


@pytest.fixture
def with_builtins(play):
    def run(scene, rows=()):
        async def furnished(house):
            for definition in builtin_agents("alice", lambda: rows):
                house.host.host(definition, builtin=True)
            await scene(house)

        return play(furnished)

    return run


def test_they_are_private_built_in_and_safe_to_run_again(with_builtins):
    async def scene(house):
        hosted = house.host.listing()
        assert [h.name for h in hosted] == ["calc", "clock", "concierge", "echo", "librarian"]
        assert all(h.builtin and h.access is Access.PRIVATE and h.idempotent for h in hosted)

    with_builtins(scene)


def test_echo_and_calc_answer(with_builtins):
    async def scene(house):
        assert (await house.ask("echo", " as it is\n")).text == " as it is\n"
        outcome = await house.ask("calc", "what is 6*7?")
        assert (outcome.text, outcome.data) == ("42", 42)
        with pytest.raises(AgentFailed, match="division by zero"):
            await house.ask("calc", "1/0")
        assert (await house.ask("clock", "utc")).data["zone"] == "UTC"

    with_builtins(scene)


@pytest.mark.parametrize(
    ("asked", "zone", "offset"),
    [
        ("UTC", "UTC", "+00:00"),
        ("+2", "UTC+02:00", "+02:00"),
        ("UTC+5:30", "UTC+05:30", "+05:30"),
        ("what time is it in utc-3?", "UTC-03:00", "-03:00"),
        ("Asia/Tokyo", "Asia/Tokyo", "+09:00"),
        ("tokyo", "Asia/Tokyo", "+09:00"),
        ("What time is it in Tokyo?", "Asia/Tokyo", "+09:00"),
        ("the time in sao paulo please", "America/Sao_Paulo", "-03:00"),
    ],
)
def test_clock_knows_zones_cities_and_offsets(asked, zone, offset):
    text, data = clock(asked)
    assert (data["zone"], data["iso"][-6:]) == (zone, offset)
    assert f"UTC{offset}" in text


@pytest.mark.parametrize("asked", ["", "now", "What time is it?", "the current date, please"])
def test_clock_without_a_zone_tells_the_nodes_own_time(asked):
    before = datetime.now(UTC).timestamp() - 1
    _, data = clock(asked)
    assert before <= data["unix"] <= datetime.now(UTC).timestamp() + 1
    assert (
        datetime.fromisoformat(data["iso"]).utcoffset() == datetime.now().astimezone().utcoffset()
    )


def test_clock_offers_near_names_for_an_unknown_zone():
    with pytest.raises(AgentFailed, match="no time zone 'Berlinn'") as told:
        clock("time in Berlinn")
    assert "Europe/Berlin" in told.value.hint
    with pytest.raises(AgentFailed, match="an offset goes"):
        clock("UTC+25")


@pytest.mark.parametrize("asked", ["", "help", "What is this?", "hello!", "which agents are here?"])
def test_concierge_describes_the_site(with_builtins, asked):
    async def scene(house):
        outcome = await house.ask("concierge", asked)
        assert "**alice**" in outcome.text
        assert f"`adder@{NODE}`: Adds" in outcome.text
        assert outcome.data["agents"][0]["id"] == f"adder@{NODE}"

    with_builtins(scene, [row("adder", "Adds")])


def test_concierge_of_an_empty_site_says_how_to_begin(with_builtins):
    async def scene(house):
        assert "@aios.agent" in (await house.ask("concierge", "help")).text
        outcome = await house.ask("concierge", "sum up numbers")
        assert "no agent for that" in outcome.text
        assert outcome.data == {"agents": []}

    with_builtins(scene)


def test_concierge_recommends_with_id_reason_and_how_to_ask_but_never_itself(with_builtins):
    async def scene(house):
        run = house.run()
        run.rows = [row("concierge"), row("adder", "Adds\n# numbers\x1b", "says numbers"), row("b")]
        outcome = await house.ask("concierge", "sum up numbers", run)
        assert f"- `adder@{NODE}`: Adds # numbers (says numbers)" in outcome.text
        assert "In a chat write `@adder …`" in outcome.text
        assert "concierge" not in outcome.text
        assert [a["id"] for a in outcome.data["agents"]] == [f"adder@{NODE}", f"b@{NODE}"]

    with_builtins(scene)


def test_the_names_of_the_built_in_agents_are_known():
    assert {one.name for one in builtin_agents("x", list)} == BUILTIN_NAMES
