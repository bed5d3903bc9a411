"""A node over ``/ws``: its key is checked before it gets the token."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, Self
from urllib.parse import urlsplit

import msgspec

from aios_nb.client.flows import WATCHES, Stream
from aios_nb.client.interface import Flow, prepared, require_pieces, require_whole
from aios_nb.client.link import Call, Link
from aios_nb.errors import Busy, ConnectionLost, Impostor, NotAllowed, NotRunning, UsageError
from aios_nb.richtext import one_line

if TYPE_CHECKING:
    import aiohttp

PROTOCOL = "aios-rpc-1"
CLOSE_WRONG_TOKEN = 4401
HELLO_WAIT_S = 10.0
CLOSE_WAIT_S = 1.0
"""What is no node may never say goodbye; nor may that wait hide why we leave."""
PING_EVERY_S = 30.0
FRAME_MAX_BYTES = 64 << 20
_HINT = "see `aios-nb doctor`"


class Address(Protocol):
    """Where a node is, who it must prove to be, and the token that makes us its owner."""

    @property
    def url(self) -> str: ...
    @property
    def node_id(self) -> str: ...
    @property
    def token(self) -> str: ...
    @property
    def name(self) -> str: ...


class _Typed(msgspec.Struct, frozen=True):
    url: str
    node_id: str
    token: str
    name: str = ""

    def __repr__(self) -> str:
        return f"{self.name} at {self.url}"  # never the token


class RemoteClient:
    """A node over ``/ws``. Made by ``connect``."""

    def __init__(
        self,
        run: Address,
        locate: Callable[[], Address | None] | None = None,
        token: str = "",
    ) -> None:
        self._run = run
        self._locate = locate
        self._token = token
        self._session: aiohttp.ClientSession | None = None
        self._link: Link | None = None
        self._linking = asyncio.Lock()
        self._dialled = False
        self._farewells: set[asyncio.Task[None]] = set()
        self._closed = False

    @classmethod
    async def connect(
        cls,
        run: Address | str,
        node_id: str = "",
        token: str = "",
        *,
        locate: Callable[[], Address | None] | None = None,
    ) -> Self:
        """A client whose node has proven its key: by its run file, or by url, id and token.

        With a run file and a ``token`` the client is who that token makes it, not the owner.
        ``locate`` finds a node again that has restarted, with another port and, unless one was
        given here, another token.
        """
        if isinstance(run, str):
            run = _Typed(url=run, node_id=node_id, token=token, name=node_id[:12])
        client = cls(run, locate, token)
        try:
            await client.link()
        except BaseException:
            await client.close()
            raise
        return client

    @property
    def node_id(self) -> str:
        return self._run.node_id

    @property
    def name(self) -> str:
        return self._run.name

    async def call(self, method: str, /, **params: Any) -> Any:
        require_whole(method)
        link = await self.link()
        call = Call(method, prepared(method, params))
        try:
            await link.send(call)
            return await call.answer
        finally:
            link.forget(call)

    def notices(self, method: str, /, **params: Any) -> Flow:
        require_pieces(method)
        return WATCHES.get(method, Stream)(self, method, prepared(method, params))

    async def close(self) -> None:
        """Ends the connection; calls that wait fail, and no task is left."""
        self._closed = True
        if self._farewells:
            await asyncio.wait(self._farewells, timeout=1)
        for task in tuple(self._farewells):
            task.cancel()
        if self._link is not None:
            await self._link.close()
        if self._session is not None:
            await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def link(self) -> Link:
        """The connection; made anew, with hello and token, when the last one broke."""
        async with self._linking:
            if self._closed:
                raise UsageError("this client is closed", hint="connect again")
            if self._link is not None and self._link.alive:
                return self._link
            if self._link is not None:
                old, self._link = self._link, None
                await old.close()
            if self._dialled:
                self._run = self._found_again()
            self._dialled = True
            self._link = await self._dial()
            return self._link

    def say_later(self, link: Link, method: str, params: dict[str, Any]) -> None:
        """Send something whose answer nobody needs, from where one cannot await."""

        async def say() -> None:
            with suppress(ConnectionLost, Busy):
                await link.send(Call(method, params))

        if link.alive and not self._closed:
            task = asyncio.get_running_loop().create_task(say(), name="aios-client-farewell")
            self._farewells.add(task)
            task.add_done_callback(self._farewells.discard)

    def _found_again(self) -> Address:
        found = self._locate() if self._locate is not None else None
        if found is None or found.node_id != self._run.node_id:
            return self._run
        return found

    async def _dial(self) -> Link:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        where = f"{self.name} at {self._run.url}"
        try:
            async with asyncio.timeout(HELLO_WAIT_S):
                socket = await self._session.ws_connect(
                    self._run.url.rstrip("/") + "/ws",
                    protocols=(PROTOCOL,),
                    max_msg_size=FRAME_MAX_BYTES,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_WAIT_S),
                    heartbeat=PING_EVERY_S,
                )
                try:
                    await self._introduce(socket)
                except BaseException:
                    await socket.close()
                    raise
        except TimeoutError as error:
            raise NotRunning(f"{where} does not answer", hint=_HINT) from error
        except aiohttp.WSServerHandshakeError as error:
            raise NotRunning(
                f"{where} refused the connection: {error.status}", hint=_HINT
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise NotRunning(f"{where} cannot be reached", hint=_HINT) from error
        return Link(socket, self.name)

    async def _introduce(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """First the node proves its key on this port; only then does it get the token."""
        from aios_nb.identity import NONCE_BYTES, check_hello, to_base64url

        nonce = secrets.token_bytes(NONCE_BYTES)
        await socket.send_json({"nonce": to_base64url(nonce)})
        hello = await _one_object(socket)
        if socket.protocol != PROTOCOL:
            raise Impostor(f"what answers at {self._run.url} is not a node")
        check_hello(hello, nonce=nonce, node_id=self._run.node_id, port=_port_of(self._run.url))
        await socket.send_json({"token": self._token or self._run.token})
        welcome = await _one_object(socket)
        if welcome.get("ok") is not True:
            raise NotAllowed("the node did not take the token", hint=_HINT)


async def _one_object(socket: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    from aiohttp import WSMsgType

    frame = await socket.receive()
    if frame.type is WSMsgType.CLOSE and frame.data == CLOSE_WRONG_TOKEN:
        raise NotAllowed("the node did not take the token", hint=_HINT)
    if frame.type is not WSMsgType.TEXT:
        if frame.type is WSMsgType.CLOSE and frame.extra:
            raise NotRunning(f"the node closed the connection: {one_line(frame.extra)}", hint=_HINT)
        raise NotRunning("the node closed the connection during the hello", hint=_HINT)
    try:
        found = msgspec.json.decode(frame.data)
    except (msgspec.DecodeError, UnicodeError):
        found = None
    if not isinstance(found, dict):
        raise Impostor("what answers there does not speak the node's protocol")
    return found


def _port_of(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme in {"https", "wss"} else 80)
