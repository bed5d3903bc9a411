"""Which conversations are one's own, on a node whose agents others ask too."""

from __future__ import annotations

from typing import Any

import pytest

from aios_nb.people import conversations
from tests.between.conftest import Make, the
from tests.sites import TestSite


def loud(text: str) -> str:
    return text.upper()


async def boss(text: str, ctx: Any) -> str:
    return str(await ctx.call("loud", text))


def listed(site: TestSite) -> list[str]:
    return [row["conversation"] for row in site.call("chat.list")["conversations"]]


@pytest.mark.parametrize("at_once", [200, 1])
def test_last_is_what_you_asked_whoever_asks_your_agents(
    node: Make, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(conversations, "_AT_ONCE", at_once)
    here = node("here", loud, boss)
    there = node("there", join=here)
    passed_on = here.node.ask("boss", "through another").conversation
    asked = here.node.ask("loud", "mine").conversation
    there.node.ask(the(here, "loud"), "a stranger's")
    assert listed(here)[0] not in {asked, passed_on}  # theirs is the last of all
    assert len(listed(here)) == 4

    client = here.node.client
    assert here.node.run(lambda: conversations.find(client, "last")) == asked
    yours = here.node.run(lambda: conversations.recent(client, 10))
    assert [row["conversation"] for row in yours] == [asked, passed_on]


def test_a_node_that_only_others_asked_has_no_last_conversation(node: Make) -> None:
    here = node("here", loud)
    there = node("there", join=here)
    there.node.ask(the(here, "loud"), "a stranger's")
    with pytest.raises(conversations.AiosError, match="no conversation yet"):
        here.node.run(lambda: conversations.find(here.node.client, "last"))
