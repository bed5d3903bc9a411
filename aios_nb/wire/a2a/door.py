"""The door for A2A clients: ``/agents/NAME/`` is an agent's endpoint, below it is its card."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from aios_nb.access import ANYONE, Caller, Principal
from aios_nb.config import Limits
from aios_nb.errors import Busy, InvalidRequest, NoSuchAgent, ParseError, RpcError
from aios_nb.identity import Identity
from aios_nb.ports import Blobs
from aios_nb.wire import jsonrpc
from aios_nb.wire.a2a import methods, refusals
from aios_nb.wire.a2a.cards import CONCIERGE, WELL_KNOWN, Cards
from aios_nb.wire.a2a.parts import Parts
from aios_nb.wire.a2a.streams import Flow, TaskEvents, explained, failure
from aios_nb.wire.a2a.work import AgentWork, Work
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.documents import Document
from aios_nb.wire.doors import STRANGERS_PART, Facts
from aios_nb.wire.guard import NEEDS_TOKEN, WRONG_TOKEN, Refusal
from aios_nb.wire.jsonrpc import Call
from aios_nb.wire.replies import HEADERS, json_reply, refused

_PATH = re.compile(
    r"/agents/([a-z0-9][a-z0-9_-]{0,47})(?:@([a-z2-7]{32}))?(/?|/\.well-known/agent-card\.json)"
)
_NO_AGENT = Refusal(404, "no such agent on this node")
_POST_ONLY = Refusal(
    405, "agents are called by POST; the card is below", None, (("Allow", "POST"),)
)
_JSON = frozenset({"application/json", "application/a2a+json"})
_VERSION = re.compile(r"1(\.\d{1,4}){0,2}")


class A2aDoor:
    """Answers A2A for all agents of a node. Is a ``doors.Door``."""

    def __init__(
        self,
        calls: Dispatcher,
        identity: Identity,
        facts: Facts,
        blobs: Blobs,
        limits: Limits,
        *,
        conformance: bool = False,
    ) -> None:
        self._calls = calls
        self._facts = facts
        self._most = limits.open_streams
        self._cards = Cards(identity, facts)
        self._work: Work = AgentWork(calls, Parts(blobs, limits.file_bytes), facts.url)
        self._streams: dict[TaskEvents, str] = {}
        """Open streams, and whose they are."""
        self._shut_out: set[str] = set()
        self._tck = _fixture() if conformance else None

    async def answer(
        self, request: web.BaseRequest, who: Principal, body: bytes
    ) -> web.StreamResponse:
        path = request.path
        if path == WELL_KNOWN:
            return self._root().response(request)
        found = _PATH.fullmatch(path)
        if found is None:
            return refused(_NO_AGENT)
        name, node, below = found.groups()
        agent = f"{name}@{node or self._facts.node_id}"
        if below == WELL_KNOWN:
            return await self._card(request, who, agent, f"{name}@{node}" if node else name)
        if request.method != "POST":
            return refused(_POST_ONLY)
        return await self._post(request, who, body, agent)

    def shut_out(self, caller: str) -> None:
        self._shut_out.add(caller)
        for events, whose in tuple(self._streams.items()):
            if whose == caller:
                events.end()

    async def close(self) -> None:
        for events in tuple(self._streams):
            events.end()
        if self._tck is not None:
            await self._tck.close()

    # Cards -----------------------------------------------------------------------------------

    def _root(self) -> Document:
        if self._tck is not None:
            card = self._tck.card(self._facts.url())
            return self._cards.signed(self._tck.name, card, public=True)
        return self._cards.root()

    async def _card(
        self, request: web.BaseRequest, who: Principal, agent: str, shown: str
    ) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            return refused(Refusal(405, "a card is read by GET", None, (("Allow", "GET, HEAD"),)))
        if self._is_fixture(agent):
            return self._root().response(request)
        try:
            said = await self._said(who, agent)
        except RpcError:
            return self._nobody(who, agent)
        return self._cards.of(shown, said).response(request)

    async def _said(self, who: Principal, agent: str) -> Mapping[str, Any]:
        """What an agent says of itself, for a caller who may call it. Raises ``RpcError``."""
        told = await self._calls.call(who, "agents.card", {"agent": agent})
        card: Mapping[str, Any] = told["card"]
        return card

    def _nobody(self, who: Principal, agent: str) -> web.Response:
        """For an agent that is not there, or not for this caller: the same.

        But for the concierge: the node's own card says openly that it is there.
        """
        if who.kind is Caller.ANYONE and agent == f"{CONCIERGE}@{self._facts.node_id}":
            return refused(NEEDS_TOKEN)
        return refused(_NO_AGENT)

    def _is_fixture(self, agent: str) -> bool:
        return self._tck is not None and agent == f"{self._tck.name}@{self._facts.node_id}"

    # Calls -----------------------------------------------------------------------------------

    async def _post(
        self, request: web.BaseRequest, who: Principal, body: bytes, agent: str
    ) -> web.StreamResponse:
        sent_as = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if sent_as not in _JSON:
            return web.Response(status=415, headers=HEADERS)
        call = _read(body)
        try:
            if not isinstance(call, Call):
                await self._exists(who, agent)
                return json_reply(request, call)
            if call.method not in methods.ASKS:
                await self._exists(who, agent)
            _check_version(request)
            if call.method in methods.STREAMS:
                self._check_room(who)
            work = self._tck.work if self._tck and self._is_fixture(agent) else self._work
            result = await methods.call(work, who, agent, call.method, call.params)
            if call.method in methods.STREAMS:
                return await self._stream(request, who, call, result)
            answer = jsonrpc.result(call.id, result)
        except NoSuchAgent:
            return self._nobody(who, agent)
        except Exception as problem:  # noqa: BLE001 - every failure is answered
            asked = call if isinstance(call, Call) else None
            answer = failure(asked, explained(self._calls, asked or _NOTHING, problem))
        if who.id in self._shut_out:  # since it asked
            return refused(WRONG_TOKEN)
        return json_reply(request, answer)

    async def _exists(self, who: Principal, agent: str) -> None:
        """Raises ``NoSuchAgent`` for an agent of ours that this caller may not call.

        Those of other nodes are not asked for; what was asked of them is in our log.
        """
        ours = agent.endswith(f"@{self._facts.node_id}")
        if self._is_fixture(agent):
            return
        if ours:
            await self._said(who, agent)
        elif who.kind is Caller.ANYONE:
            raise NoSuchAgent("no such agent")

    def _check_room(self, who: Principal) -> None:
        """Raises ``Busy`` where one more stream is too many."""
        strangers = sum(whose == ANYONE.id for whose in self._streams.values())
        if len(self._streams) >= self._most or (
            who is ANYONE and strangers >= self._most // STRANGERS_PART
        ):
            raise Busy("too many open streams on this node", hint="ask without streaming")

    async def _stream(
        self, request: web.BaseRequest, who: Principal, call: Call, told: Any
    ) -> web.StreamResponse:
        events = TaskEvents(request)
        self._streams[events] = who.id
        try:
            return await events.send(self._calls, call, Flow(told))
        finally:
            del self._streams[events]
            await told.aclose()


_NOTHING = Call("2.0", "", jsonrpc.ABSENT, jsonrpc.NULL_ID)


def _read(body: bytes) -> Call | bytes:
    """The call in a body, or the refusal to send. A2A knows neither batches nor notifications."""
    got = jsonrpc.read(body, 1)
    if isinstance(got, Call):
        if not got.is_notification:
            return got
        return failure(None, InvalidRequest("a request needs an id"))
    if isinstance(got, bytes):
        said = msgspec.json.decode(got)
        error = said["error"]
        kind = ParseError if error["code"] == ParseError.code else InvalidRequest
        id_ = msgspec.Raw(jsonrpc.encode(said["id"]))
        return failure(Call("2.0", "", jsonrpc.ABSENT, id_), kind(error["message"]))
    return failure(None, InvalidRequest("batches are not part of A2A"))


def _check_version(request: web.BaseRequest) -> None:
    """Raises ``Refused`` for another version than ours; none at all is taken for ours.

    By the letter none would mean 0.3. But its methods have other names: who calls these ones and
    left the header out, by hand or by mistake, means 1.0.
    """
    asked = request.headers.get("A2A-Version") or request.query.get("A2A-Version") or ""
    if asked.strip() and not _VERSION.fullmatch(asked.strip()):
        raise refusals.version("this agent speaks A2A 1.0")


def _fixture() -> Any:
    """The agent that the public test kit talks to."""
    from aios_nb.wire.fixtures.tck import Tck

    return Tck()
