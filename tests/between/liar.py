"""A node that proves its key and then says whatever a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Self

from aios_nb.access import Caller, owner_of
from aios_nb.config import Limits
from aios_nb.errors import RpcError
from aios_nb.identity import Identity, answer_hello
from aios_nb.loop import LoopThread
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.guard import Guard
from aios_nb.wire.peer.frames import SUBPROTOCOL
from aios_nb.wire.peer.link import PeerLink
from aios_nb.wire.peer.links import PeerLinks
from aios_nb.wire.server import Server
from tests.sites import TestSite

Answer = Callable[[Any], Any]
"""Params to what is answered; an exception is raised."""


class Pieces:
    """Deltas, then a result. Is a ``ports.Notices``."""

    notification = "chat.delta"
    result_first = False

    def __init__(self, deltas: Sequence[Any], result: Any) -> None:
        self._deltas = deltas
        self._result = result

    async def __aiter__(self) -> AsyncIterator[Any]:
        for delta in self._deltas:
            yield delta

    async def result(self) -> Any:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def close(self) -> None:
        """Nothing to let go of."""


class _Room:
    """The methods of one room, answered by the liar."""

    def __init__(self, liar: Liar, name: str) -> None:
        self._liar = liar
        self._name = name

    def __getattr__(self, verb: str) -> Any:
        if verb.startswith("_"):
            raise AttributeError(verb)

        async def answer(_: object, params: Any) -> Any:
            return self._liar.answer(f"{self._name}.{verb}", params)

        return answer


class Liar:
    """A host or a home. ``says["aios.message"] = lambda params: …``; ``heard`` is what it got."""

    def __init__(self, epoch: int = 1) -> None:
        self.identity = Identity.generate()
        self.node_id = self.identity.node_id
        self.epoch = epoch
        self.says: dict[str, Answer] = {}
        self.heard: list[tuple[str, Any]] = []
        self.port = 0
        self._loop = LoopThread("liar")
        self._links: PeerLinks | None = None
        self._server: Server | None = None
        self._places: dict[str, list[str]] = {}

    def answer(self, method: str, params: Any) -> Any:
        self.heard.append((method, params))
        said = self.says.get(method, lambda _: RpcError("I do not say"))(params)
        if isinstance(said, Exception):
            raise said
        return said

    def methods(self) -> list[str]:
        return [method for method, _ in self.heard]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}#{self.node_id}"

    def agent(self, name: str = "liar") -> str:
        return f"{name}@{self.node_id}"

    def __enter__(self) -> Self:
        self._loop.start()
        self._loop.sync(self._open)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.sync(self._close)
        self._loop.stop()

    def call(self, site: TestSite, method: str, **params: Any) -> Any:
        """Ask a node something, as a node."""

        async def ask() -> Any:
            return await (await self._link(site)).call(method, params)

        return self._loop.sync(ask)

    def calls(self, site: TestSite, method: str, many: Sequence[dict[str, Any]]) -> list[Any]:
        """Ask many things at once: results, or the errors they were answered with."""

        async def ask() -> list[Any]:
            link = await self._link(site)
            asked = (link.call(method, params) for params in many)
            return await asyncio.gather(*asked, return_exceptions=True)

        return self._loop.sync(ask)

    def hang_up(self) -> None:
        """Break every link."""

        async def cut() -> None:
            assert self._links is not None
            for link in tuple(self._links._all):
                link.abort("broke")

        self._loop.sync(cut)

    def restarted(self) -> None:
        """Break every link, and say from now on that this is another life."""

        async def begin() -> None:
            assert self._links is not None
            self._links._epoch += 1

        self._loop.sync(begin)
        self.hang_up()

    def drain(self) -> None:
        """Ask for every link to be given up when what it carries has ended."""

        async def begin() -> None:
            assert self._links is not None
            for link in tuple(self._links._all):
                link.drain("replaced")

        self._loop.sync(begin)

    def request(self, site: TestSite, agent: str, text: str, **fields: Any) -> dict[str, Any]:
        """An envelope for an agent of that node; fields of ``content`` and ``routing`` too."""
        content = {"task": text}
        routing = {"path": [self.node_id]}
        whole = {
            "sender": {"id": f"owner@{self.node_id}", "type": "human"},
            "recipient": {"id": f"{agent}@{site.node.node_id}", "type": "agent"},
            "message_type": "request",
        }
        for key, value in fields.items():
            place = (
                routing
                if key in {"path", "max_hops", "deadline_ms"}
                else whole
                if key in {"message_id", "conversation_id"}
                else content
            )
            place[key] = value
        return {**whole, "content": content, "routing": routing}

    async def _link(self, site: TestSite) -> PeerLink:
        self._places[site.node.node_id] = [site.node.url]
        assert self._links is not None
        return await self._links.reach(site.node.node_id)

    async def _open(self) -> None:
        limits = Limits(refused_per_s=1e6, stranger_handshakes_per_s=1e6)
        links = self._links = PeerLinks(
            self.identity,
            "main",
            name="liar",
            limits=limits,
            epoch=self.epoch,
            standing=lambda _: Caller.KNOWN,
            lookup=lambda node: self._places.get(node, []),
        )
        rooms = ("node", "nodes", "tokens", "agents", "hub", "chat", "aios", "blobs", "gossip")
        dispatcher = Dispatcher({name: _Room(self, name) for name in rooms}, limits=limits)
        links.open(dispatcher)
        self._server = Server(
            dispatcher,
            None,  # type: ignore[arg-type] - no files of its own
            Guard("token", owner_of(self.node_id), limits=limits),
            lambda nonce: answer_hello(self.identity, nonce, self.port),
            dict,
            limits=limits,
            links={SUBPROTOCOL: links.serve},
        )
        _, self.port = await self._server.start("127.0.0.1", self.port)

    async def _close(self) -> None:
        assert self._links is not None
        assert self._server is not None
        await self._links.close()
        await self._server.stop()


def response(status: Any = "success", result: Any = "", **content: Any) -> dict[str, Any]:
    """An envelope that answers."""
    return {
        "sender": {"id": "liar", "type": "agent"},
        "recipient": {"id": "owner", "type": "human"},
        "message_type": "response",
        "content": {"status": status, "result": result, **content},
    }


def delta(text: Any, offset: Any = 0, **more: Any) -> dict[str, Any]:
    return {"message_id": "m", "reply_id": "r", "offset": offset, "text": text, **more}
