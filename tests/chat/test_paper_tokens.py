"""The paper's envelope from a program that has only a scoped token."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import aios_nb as aios
from aios_nb.client import RemoteClient
from aios_nb.errors import RpcError
from tests.sites import TestSite


@aios.agent(name="repeats", about="Says it again", access="known")
def repeats(text):
    return text


def envelope(**more: Any) -> dict[str, Any]:
    return {
        "sender": {"id": "tg:1:2", "type": "human"},
        "recipient": {"id": "repeats", "type": "agent"},
        "message_type": "request",
        "content": {"task": "hello"},
        **more,
    }


def send(site: TestSite, token: str, **more: Any) -> dict[str, Any]:
    async def sent() -> dict[str, Any]:
        async with await RemoteClient.connect(site.node.run_info, token=token) as client:
            return await client.call("aios.message", envelope=envelope(**more))

    return asyncio.run(sent())


@pytest.fixture
def site(make_site) -> TestSite:
    return make_site(repeats)


@pytest.fixture
def token(site) -> str:
    return site.call("tokens.create", scope="chat", prefix="tg:")["token"]


def test_it_goes_on_in_the_conversation_that_it_was_given(site, token):
    first = send(site, token)
    again = send(site, token, conversation_id=first["conversation_id"])

    assert again["content"]["result"] == "hello"
    assert again["conversation_id"] == first["conversation_id"]
    rows = site.history(first["conversation_id"])
    spoken = {row["sender"]["id"] for row in rows if row["sender"]["type"] == "human"}
    assert {who.partition(":")[0] for who in spoken} == {"token"}  # never who the envelope names


def test_it_cannot_wait_in_a_conversation_that_its_owner_may_name_later(site, token):
    """An owner who says the same id afterwards would speak to whoever sits there."""
    with pytest.raises(RpcError) as refused:
        send(site, token, conversation_id="plans")
    mine = site.call("aios.message", envelope=envelope(conversation_id="plans"))
    with pytest.raises(RpcError) as shut:
        send(site, token, conversation_id="plans")

    assert mine["conversation_id"] == "plans"
    # What is not there and what is not its own look the same.
    assert refused.value.message == shut.value.message
    assert len(site.history("plans")) == 2


def test_it_cannot_say_which_way_a_message_came(site, token):
    with pytest.raises(RpcError, match=r"routing\.path"):
        send(site, token, routing={"path": [site.node.node_id]})
