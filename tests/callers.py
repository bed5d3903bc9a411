"""Every kind of caller of one real node, and the way each of them calls it."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from aios_nb.access import Caller
from aios_nb.agents.definition import describe
from aios_nb.errors import RpcError, from_wire
from aios_nb.wire.methods import METHODS, Answers
from tests.sites import TestSite, limits

FORBIDDEN = -32006
"""Also for a refusal by HTTP status: 401 and 403 say the same."""
FRIEND, STRANGER = "k" * 32, "m" * 32
WAIT_S = 60
_NOTICES = {row.name for row in METHODS if row.kind is Answers.NOTICES}
_REFUSALS = {401, 403}
_EVENT = b"data: "

Way = Callable[[str, Mapping[str, Any]], Any]
"""Calls a method with params; gives the result, or raises the ``RpcError``."""


async def friendly(text: str) -> str:
    """Answers whom the owner knows."""
    return f"friendly: {text}"


async def common(text: str) -> str:
    """Answers any node."""
    return f"common: {text}"


async def diary(text: str) -> str:
    """Answers the owner."""
    return f"diary: {text}"


async def asks(text: str, ctx: Any) -> str:
    """Asks back."""
    return await ctx.ask_user("sure?")


class World:
    """A node with agents for everyone, and ways to call it as each kind of caller."""

    def __init__(self, home: Path) -> None:
        self.site = TestSite(
            home,
            [
                describe(friendly, access="known"),
                describe(common, access="network"),
                describe(diary, access="private"),
                describe(asks, access="known"),
            ],
            limits=limits(refused_per_s=1e6),
        )
        address = f"{self.info.url}#{self.info.node_id}"
        self.friend, self.stranger = (
            TestSite(home.with_name(name), name=name, join=(address,))
            for name in ("friend", "stranger")  # in homes of their own
        )
        self.site.call("nodes.allow", node=self.friend.node.node_id)
        self.bridge = self.token("tg:")
        self.trusted = self.token("ow:", **{"as": "owner"})

    def stop(self) -> None:
        for site in (self.friend, self.stranger, self.site):
            site.stop()

    def token(self, prefix: str, **more: str) -> dict[str, Any]:
        made: dict[str, Any] = self.site.call("tokens.create", scope="chat", prefix=prefix, **more)
        return made

    @property
    def owner(self) -> str:
        return self.info.token

    @property
    def info(self) -> Any:
        assert self.site.node.run_info is not None
        return self.site.node.run_info

    # One function for each way to call ---------------------------------------------------

    def over_rpc(self, token: str | None) -> Way:
        return lambda method, params: over_rpc(self.info.url, token, method, params)

    def over_ws(self, token: str) -> Way:
        return lambda method, params: asyncio.run(over_ws(self.info.url, token, method, params))

    def from_node(self, other: TestSite) -> Way:
        """Over the encrypted link of another node."""

        async def call(method: str, params: Mapping[str, Any]) -> Any:
            link = await other.rooms.links.reach(self.info.node_id)
            if method in _NOTICES:
                return await link.stream(method, params).result()
            return await link.call(method, params)

        return lambda method, params: other.node.run(lambda: call(method, params))

    def ways(self) -> Iterator[tuple[str, Caller, Way]]:
        """Every caller by each way it has, and its column in the table."""
        tokens = {
            "owner": (Caller.OWNER, self.owner),
            "scoped token": (Caller.TOKEN, self.bridge["token"]),
            "scoped token as owner": (Caller.TOKEN, self.trusted["token"]),
        }
        for name, (kind, token) in tokens.items():
            yield f"{name} over /rpc", kind, self.over_rpc(token)
            yield f"{name} over /ws", kind, self.over_ws(token)
        yield "known node", Caller.KNOWN, self.from_node(self.friend)
        yield "any node", Caller.NODE, self.from_node(self.stranger)
        yield "anyone", Caller.ANYONE, self.over_rpc(None)


NAMES = (
    "owner over /rpc",
    "owner over /ws",
    "scoped token over /rpc",
    "scoped token over /ws",
    "scoped token as owner over /rpc",
    "scoped token as owner over /ws",
    "known node",
    "any node",
    "anyone",
)


def code_of(way: Way, method: str, params: Mapping[str, Any]) -> int:
    """0 for a result, else the code of the error."""
    try:
        way(method, params)
    except RpcError as error:
        return int(error.data.get("code", error.code))
    return 0


def over_rpc(url: str, token: str | None, method: str, params: Mapping[str, Any]) -> Any:
    """``POST /rpc`` on a connection of its own."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    if method in _NOTICES:
        headers["Accept"] = "text/event-stream"
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=WAIT_S)) as connection:
        connection.request("POST", "/rpc", _request(method, params), headers)
        answer = connection.getresponse()
        if answer.status in _REFUSALS:
            raise from_wire({"code": FORBIDDEN, "message": str(answer.status)})
        assert answer.status == 200, answer.read()
        if answer.getheader("Content-Type") != "text/event-stream":
            return _result(json.loads(answer.read()))
        while line := answer.readline():
            said = json.loads(line[len(_EVENT) :]) if line.startswith(_EVENT) else {}
            if said.get("id") == 1:
                return _result(said)
    raise AssertionError(f"no response to {method}")


async def over_ws(url: str, token: str, method: str, params: Mapping[str, Any]) -> Any:
    """``GET /ws``, the hello, and one call."""
    async with aiohttp.ClientSession() as session, opened(session, url) as socket:
        await introduce(socket, token)
        if method == "chat.unwatch":
            await socket.send_str(_request("chat.watch", {}))
            params = {"watch": _result(await socket.receive_json())["watch"]}
        await socket.send_str(_request(method, params))
        while (said := await socket.receive_json()).get("id") != 1:
            pass
        return _result(said)


def opened(session: aiohttp.ClientSession, url: str) -> Any:
    return session.ws_connect(f"{url}/ws", protocols=("aios-rpc-1",))


async def introduce(socket: aiohttp.ClientWebSocketResponse, token: str) -> Any:
    """The hello and the token; what the node calls us."""
    await socket.send_json({"nonce": "A" * 43})
    await socket.receive_json()
    await socket.send_json({"token": token})
    return (await socket.receive_json())["principal"]


def _request(method: str, params: Mapping[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params)})


def _result(said: dict[str, Any]) -> Any:
    if "error" in said:
        raise from_wire(said["error"])
    return said["result"]
