"""One session with an MCP server: its handshake, its calls, the server's questions, its end.

The protocol library wants a session to be entered and left by one task; so each has a task of its
own, and whoever calls a tool only waits for the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context, ContextVar
from typing import Any

import mcp_types
from mcp import MCPError
from mcp.client import Client, ClientRequestContext, ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from aios_nb._version import __version__
from aios_nb.errors import AgentFailed, RpcError, Unreachable
from aios_nb.wire.outside.forms import Ask, answered
from aios_nb.wire.outside.problems import explained
from aios_nb.wire.outside.ways import Way

log = logging.getLogger("aios_nb.outside")
for _name in ("mcp", "client", "httpx2", "httpcore2"):
    # A handler that does nothing keeps Python from printing by itself: a node never prints.
    logging.getLogger(_name).addHandler(logging.NullHandler())

OPEN_S = 30.0
"""For the handshake; an old program may let ten seconds pass until it is asked the old way."""
CLOSE_S = 6.0
"""To part as the protocol says; then it is cut."""
HEARD_S = 2.0
QUESTIONS_MAX = 20
"""To a person, in one call."""
ROUNDS_MAX = 200
_PAUSE_MAX_S = 2.0

_current: ContextVar[_Call | None] = ContextVar("mcp_call", default=None)


class Session:
    """One session, from its handshake to its end."""

    def __init__(self, way: Way, who: str) -> None:
        self._way = way
        self._who = who
        self._client: Client | None = None
        self._failure: BaseException | None = None
        self._opened = asyncio.Event()
        self._leaving = asyncio.Event()
        self._calls: set[_Call] = set()
        # An empty context: what a call puts into its own must not be found in the session's.
        self._task = asyncio.create_task(self._live(), name="mcp session", context=Context())
        self._given_up = False
        self.spent = False
        """Not to be used for another call."""

    async def opened(self) -> None:
        """Return when it can be used. Raises what hinders it, in one line."""
        try:
            async with asyncio.timeout(OPEN_S):
                await self._opened.wait()
        except TimeoutError:
            raise Unreachable(
                "the server did not answer in time", hint="try again later", reason="no answer"
            ) from None
        if self._failure is not None:
            raise explained(self._failure, self._way, ran="no")

    @property
    def is_open(self) -> bool:
        return not self.spent and self._client is not None and not self._leaving.is_set()

    @property
    def is_over(self) -> bool:
        return self._task.done()

    @property
    def client(self) -> Client:
        if self._client is None:
            raise Unreachable("the session with the server is over", reason="no answer")
        return self._client

    async def _live(self) -> None:
        try:
            client = Client(
                self._way.streams(),
                cache=None,
                client_info=mcp_types.Implementation(name="aios_nb", version=__version__),
                elicitation_callback=self._elicited,
            )
            async with client:
                self._client = client
                self._opened.set()
                await self._leaving.wait()
                if self._given_up:
                    await _heard(client.session)
        except Exception as problem:  # noqa: BLE001 - whatever it is, whoever waits gets one line
            self._failure = problem
        finally:
            self._client = None
            self._opened.set()

    async def close(self) -> None:
        """Part from the server; after this there is no task, process or socket of it."""
        self._leaving.set()
        if not self._opened.is_set():
            self._task.cancel()  # in the middle of the handshake: nobody to part from
        _, late = await asyncio.wait([self._task], timeout=CLOSE_S)
        if late:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def ask(self, question: Callable[[ClientSession], Awaitable[Any]], *, ran: str) -> Any:
        """What the server answers to one request. Raises an error of ours, in one line.

        ``ran``: what is to be said of it if the answer never comes.
        """
        try:
            return await question(self.client.session)
        except RpcError:
            raise
        except asyncio.CancelledError:
            # The stream of a call that was given up may stay open for as long as the session.
            self._given_up = self.spent = self.spent or (self._way.holds_on and ran != "no")
            raise
        except Exception as problem:  # noqa: BLE001 - whatever it is, the caller gets one line
            if isinstance(problem, MCPError) and problem.code == mcp_types.CONNECTION_CLOSED:
                self.spent = True
                if self._failure is None and self._way.trouble is None:
                    # The session knows why in a moment, if it is its end.
                    await asyncio.wait([self._task], timeout=1.0)
            raise explained(self._failure or problem, self._way, ran=ran) from None

    async def call(
        self, tool: str, arguments: dict[str, Any], ask: Ask, progress: ProgressFnT
    ) -> mcp_types.CallToolResult:
        """The tool's answer; what the server asks on the way is asked of the person."""
        call = _Call(ask, self._who)
        self._calls.add(call)
        token = _current.set(call)
        responses: dict[str, Any] | None = None
        state: str | None = None
        try:
            for turn in range(ROUNDS_MAX):
                request = mcp_types.CallToolRequest(
                    params=mcp_types.CallToolRequestParams(
                        name=tool,
                        arguments=arguments,
                        input_responses=responses,
                        request_state=state,
                    )
                )
                # Not the library's call_tool: that runs the server's schemas over its answer.
                send = functools.partial(_send, request, progress)
                result = await self.ask(send, ran="unknown")
                if isinstance(result, mcp_types.CallToolResult):
                    return result
                state = result.request_state
                responses = await call.answers(result.input_requests or {})
                if not responses:
                    await asyncio.sleep(min(_PAUSE_MAX_S, 0.05 * 2 ** min(turn, 10)))
            raise AgentFailed("the server asks and asks, and never answers", ran="unknown")
        finally:
            _current.reset(token)
            self._calls.discard(call)
            call.over()

    async def _elicited(
        self, context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        """A question of the old era. It does not say which call it belongs to.

        Over HTTP it comes on the stream of its call; a program's is known if there is only one.
        """
        del context
        call = _current.get()
        if call is None and len(self._calls) == 1:
            (call,) = self._calls
        if call is None:
            return mcp_types.ErrorData(
                code=mcp_types.INVALID_REQUEST, message="there is nobody to ask for this"
            )
        return await call.elicited(params)


class _Call:
    """One call of a tool, and what the server wants to know meanwhile."""

    def __init__(self, ask: Ask, who: str) -> None:
        self._ask = ask
        self._who = who
        self._asked = 0
        self._asking: set[asyncio.Task[Any]] = set()

    async def elicited(
        self, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        asking = asyncio.create_task(answered(self._one, self._who, params))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        try:
            return await asking
        except asyncio.CancelledError:
            if not asking.cancelled():
                asking.cancel()
                raise
            return mcp_types.ElicitResult(action="cancel")  # the call is over
        except RpcError:
            return mcp_types.ElicitResult(action="cancel")

    async def _one(self, question: str) -> str:
        self._asked += 1
        if self._asked > QUESTIONS_MAX:
            raise AgentFailed("the server asks too many questions", ran="unknown")
        return await self._ask(question)

    async def answers(self, requests: dict[str, mcp_types.InputRequest]) -> dict[str, Any]:
        """What the new era wants: all answers, by the server's own keys."""
        found: dict[str, Any] = {}
        for key, request in requests.items():
            if not isinstance(request, mcp_types.ElicitRequest):
                raise AgentFailed(
                    "the server wants a model or folders of this node, which it does not get",
                    ran="unknown",
                )
            found[key] = await answered(self._one, self._who, request.params)
        return found

    def over(self) -> None:
        for asking in self._asking:
            asking.cancel()


async def _heard(session: ClientSession) -> None:
    """Return when the server has read what was said last, such as that a call is given up."""
    if session.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:  # the new era hangs up, that is all
        with contextlib.suppress(Exception):
            async with asyncio.timeout(HEARD_S):
                await session.send_ping()


async def _send(
    request: mcp_types.CallToolRequest, progress: ProgressFnT, session: ClientSession
) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
    return await session.send_request(request, _ANSWERS, progress_callback=progress)


_ANSWERS: TypeAdapter[mcp_types.CallToolResult | mcp_types.InputRequiredResult] = TypeAdapter(
    mcp_types.CallToolResult | mcp_types.InputRequiredResult
)
