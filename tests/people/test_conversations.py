"""Conversations as people read them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aios_nb.chat import reading
from aios_nb.notebook.widgets.following import Following
from aios_nb.people import conversations
from aios_nb.site import Site
from tests.sites import TestSite

QUESTIONS = [f"question {number}" for number in range(3)]


async def as_read(site: Site, conversation: str) -> list[str]:
    whole = await conversations.read(site.client, conversation)
    return [row["text"] for row in whole["messages"]]


async def as_history(site: Site, conversation: str) -> list[str]:
    return [event.text for event in (await site._history(conversation, 0)).messages]


async def as_followed(site: Site, conversation: str) -> list[str]:
    following = Following(site.client, f"owner@{site.client.node_id}", str, lambda: None)
    try:
        await following.enter(conversation)
        return [row["text"] for row in following.transcript.rows]
    finally:
        await following.close()


@pytest.mark.parametrize("seen", [as_read, as_history, as_followed])
def test_a_conversation_with_long_texts_is_seen_whole(
    make_site: Callable[..., TestSite],
    monkeypatch: pytest.MonkeyPatch,
    seen: Callable[[Site, str], Awaitable[list[Any]]],
) -> None:
    def repeat(text: str) -> str:
        return text

    site = make_site(repeat)
    conversation = None
    for question in QUESTIONS:
        conversation = site.node.ask("repeat", question, conversation=conversation).conversation
    monkeypatch.setattr(reading, "PAGE_BYTES", 1)  # every text is long
    found = site.node.run(lambda: seen(site.node, conversation))
    assert [text for text in found if text] == [text for text in QUESTIONS for _ in "qa"]


@pytest.mark.parametrize("nothing", ["", "  "])
def test_an_empty_name_is_no_conversation(make_site: Callable[..., TestSite], nothing: str) -> None:
    site = make_site()
    site.node.ask("echo", "the only one")
    with pytest.raises(conversations.UsageError, match="no conversation is named"):
        site.node.run(lambda: conversations.find(site.node.client, nothing))
