"""A real node with a few agents, and A2A spoken to it: by hand, and by the official client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
from a2a.client import ClientConfig, create_client
from a2a.client.client import Client
from a2a.types import Message, Part, Role, SendMessageRequest, StreamResponse
from a2a.utils.signing import create_signature_verifier
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from google.protobuf.json_format import MessageToDict

import aios_nb as aios
from aios_nb.agents.definition import describe
from aios_nb.config import Limits
from aios_nb.identity import node_id_of
from aios_nb.wire.a2a import jws
from tests.sites import Gate, TestSite

CEILING_S = 30.0
PATIENT = Limits(open_per_s=1e6, refused_per_s=1e6)
_TLS = ssl.create_default_context()
"""One for all clients: making it costs more than a hundred requests, and none is over TLS."""


class Stage(TestSite):
    """A node whose agents wait where a test wants them to."""

    def __init__(self, home: Path, **settings: Any) -> None:
        self.gates: dict[str, Gate] = {}
        super().__init__(home, self._agents(), **{"limits": PATIENT, **settings})

    def _agents(self) -> list[Any]:
        async def parrot(text, ctx):
            if ctx.data is not None:
                return {"heard": ctx.data}
            if ctx.files:
                content = b"".join([ctx.read(file) for file in ctx.files])
                return aios.File(content.upper(), name="loud.txt")
            return text

        async def poet(text, ctx):
            """Says two lines; between them it waits for the gate of that name."""
            ctx.progress("thinking")
            yield "one, "
            await self.gate(text).pass_through(text)
            yield "two"

        async def asker(text, ctx):
            name = await ctx.ask_user("who are you?")
            age = await ctx.ask_user("how old?") if text == "twice" else ""
            return f"hello {name} {age}".strip()

        async def grump(text):
            raise RuntimeError("not\ntoday\x1b[31m")

        async def hermit(text):
            return "nobody hears this"

        async def friend(text):
            return "for those with a token"

        public = {"access": "public"}
        return [
            describe(parrot, about="Says it again", tags=["test"], examples=["hi"], **public),
            describe(poet, **public),
            describe(asker, **public),
            describe(grump, **public),
            describe(hermit, access="private"),
            describe(friend, access="known"),
        ]

    def gate(self, name: str) -> Gate:
        return self.gates.setdefault(name, Gate())

    def reached(self, name: str) -> None:
        """Wait until the poet stands at this gate."""

        async def arrived() -> None:
            await self.gate(name).arrived(1)

        self.node.run(arrived)

    def open_gate(self, name: str) -> None:
        self.on_loop(lambda: self.gate(name).open())

    @property
    def token(self) -> str:
        return self.node.run_info.token

    def new_token(self, prefix: str) -> str:
        return self.call("tokens.create", scope="chat", prefix=prefix)["token"]

    # By hand -----------------------------------------------------------------------------

    def http(self, token: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.node.url, headers=headers, timeout=CEILING_S, verify=_TLS)

    def rpc(
        self, agent: str, method: str, params: Any, token: str | None = None, **headers: str
    ) -> dict[str, Any]:
        """The response to one request, or the HTTP status where it is not 200."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        with self.http(token) as http:
            headers = {"A2A-Version": "1.0", **headers}
            answer = http.post(f"/agents/{agent}/", json=body, headers=headers)
        return answer.json() if answer.status_code == 200 else {"http": answer.status_code}

    def send(
        self, agent: str, text: str, token: str | None = None, **message: Any
    ) -> dict[str, Any]:
        """The task of a message sent by hand."""
        config = message.pop("configuration", {})
        params = {"message": said(text, **message), "configuration": config}
        answer = self.rpc(agent, "SendMessage", params, token)
        return answer["result"]["task"] if "result" in answer else answer


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}], **more}


def state(task: dict[str, Any]) -> str:
    return task["status"]["state"].removeprefix("TASK_STATE_")


def answer_of(task: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in task["artifacts"][0]["parts"])


# The official client -------------------------------------------------------------------------


def verifier(node_id: str) -> Callable[[Any], None]:
    """The official check of a card, by the key whose hash is that node's id."""

    def key(kid: str | None, _: str | None) -> Ed25519PublicKey:
        public_key = jws.key_of(kid or "")
        assert node_id_of(public_key) == node_id
        return Ed25519PublicKey.from_public_bytes(public_key)

    return create_signature_verifier(key, ["EdDSA"])


@contextlib.asynccontextmanager
async def official(site: Stage, agent: str, token: str | None = None) -> AsyncIterator[Client]:
    """The client of the SDK, which finds the agent by its card and checks the signature."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(timeout=CEILING_S, headers=headers, verify=_TLS) as http:
        yield await create_client(
            f"{site.node.url}/agents/{agent}",
            ClientConfig(httpx_client=http),
            signature_verifier=verifier(site.node.node_id),
        )


def request(text: str, **more: Any) -> SendMessageRequest:
    message = Message(
        role=Role.ROLE_USER, parts=[Part(text=text)], **{"message_id": "sdk-1", **more}
    )
    return SendMessageRequest(message=message)


async def heard(events: AsyncIterator[StreamResponse]) -> list[dict[str, Any]]:
    return [MessageToDict(event) async for event in events]


def artifact_text(events: list[dict[str, Any]]) -> str:
    """What a client has that puts the updates together as the protocol says."""
    text = ""
    for event in events:
        if update := event.get("artifactUpdate"):
            piece = "".join(part.get("text", "") for part in update["artifact"]["parts"])
            text = text + piece if update.get("append") else piece
    return text


def last_state(events: list[dict[str, Any]]) -> str:
    return events[-1]["statusUpdate"]["status"]["state"].removeprefix("TASK_STATE_")


def run(work: Awaitable[Any]) -> Any:
    async def main() -> Any:
        async with asyncio.timeout(CEILING_S):
            return await work

    return asyncio.run(main())


def events_of(text: str) -> list[dict[str, Any]]:
    """The results in a body of server-sent events."""
    lines = (line for line in text.splitlines() if line.startswith("data: "))
    return [json.loads(line[6:])["result"] for line in lines]
