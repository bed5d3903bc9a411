"""The paper's envelope, through the very same exchange."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from aios_nb.errors import AgentFailed, InvalidParams, NoSuchAgent
from tests.sites import TestSite

MakeSite = Callable[..., TestSite]


async def upper(text: str) -> str:
    """Shouts."""
    return text.upper()


async def params(text: str, ctx: Any) -> dict[str, Any]:
    """Gives its parameters back."""
    return {"got": ctx.data}


def envelope(**changed: Any) -> dict[str, Any]:
    """A request as the paper's own builder makes it."""
    return {
        "protocol_version": "1.0",
        "message_id": str(uuid.uuid4()),
        "conversation_id": str(uuid.uuid4()),
        "timestamp": "2025-04-21T10:00:00.123456",
        "sender": {"id": "alice", "type": "human"},
        "recipient": {"id": "upper", "type": "agent"},
        "message_type": "request",
        "content": {"task": "hello"},
        **changed,
    }


def send(site: TestSite, sent: dict[str, Any]) -> Any:
    return site.call("aios.message", envelope=sent)


def test_a_request_of_the_paper_gets_a_response_of_the_paper(make_site: MakeSite) -> None:
    site = make_site(upper)
    sent = envelope()
    got = send(site, sent)
    assert got["message_type"] == "response"
    assert got["content"]["result"] == "HELLO"
    assert got["content"]["status"] == "success"
    assert got["recipient"] == sent["sender"]
    assert got["sender"]["id"] == f"upper@{site.node.node_id}"
    assert got["conversation_id"] == sent["conversation_id"]
    assert got["protocol_version"] == "1.0"
    assert got["timestamp"].endswith("Z")
    assert got["routing"]["path"] == [site.node.node_id, f"upper@{site.node.node_id}"]


def test_their_conversation_goes_on_under_their_id(make_site: MakeSite) -> None:
    site = make_site(upper)
    first = envelope()
    send(site, first)
    send(site, envelope(conversation_id=first["conversation_id"], content={"task": "more"}))
    texts = [row["text"] for row in site.history(first["conversation_id"])]
    assert texts == ["hello", "HELLO", "more", "MORE"]


def test_parameters_reach_the_agent_as_data(make_site: MakeSite) -> None:
    site = make_site(params)
    sent = envelope(
        recipient={"id": "params", "type": "agent"},
        content={"task": "x", "parameters": {"n": 3}},
    )
    assert send(site, sent)["content"]["data"] == {"got": {"n": 3}}


def test_the_same_message_again_gets_the_same_response(make_site: MakeSite) -> None:
    site = make_site(upper)
    sent = envelope()
    first, again = send(site, sent), send(site, sent)
    assert {**first, "timestamp": ""} == {**again, "timestamp": ""}
    assert len(site.history(sent["conversation_id"])) == 2


def test_a_circle_and_too_many_hops_are_refused(make_site: MakeSite) -> None:
    site = make_site(upper)
    me = f"upper@{site.node.node_id}"
    other = f"x@{'a' * 32}"
    with pytest.raises(InvalidParams, match="already at work"):
        send(site, envelope(routing={"path": ["a" * 32, me], "max_hops": 3}))
    with pytest.raises(InvalidParams, match="limit of 1"):
        send(site, envelope(routing={"path": ["a" * 32, other], "max_hops": 1}))


def test_hops_are_counted_down_the_chain(make_site: MakeSite) -> None:
    async def asks(text: str, ctx: Any) -> str:
        return str(await ctx.call("upper", text))

    site = make_site(upper, asks)
    sent = envelope(recipient={"id": "asks", "type": "agent"}, routing={"path": [], "max_hops": 1})
    with pytest.raises(AgentFailed, match="limit of 1"):
        send(site, sent)


def test_failures_are_errors_not_successes(make_site: MakeSite) -> None:
    async def broken(text: str) -> str:
        raise ValueError("no")

    site = make_site(broken)
    with pytest.raises(AgentFailed):
        send(site, envelope(recipient={"id": "broken", "type": "agent"}))
    with pytest.raises(NoSuchAgent):
        send(site, envelope(recipient={"id": "nobody", "type": "agent"}))


@pytest.mark.parametrize(
    "changed",
    [
        {"message_type": "response"},
        {"content": {}},
        {"recipient": {"id": "x", "type": "human"}},
        {"message_id": "not an id"},
        {"conversation_id": "a/b"},
        {"routing": {"path": [], "max_hops": 3, "deadline_ms": 0}},
    ],
)
def test_what_is_not_a_request_is_refused(make_site: MakeSite, changed: dict[str, Any]) -> None:
    site = make_site(upper)
    with pytest.raises(InvalidParams):
        send(site, envelope(**changed))
    assert site.call("chat.list")["conversations"] == []
