"""The two ways to an MCP server: over HTTP, or to a program behind a command.

One of these is made for each session; afterwards it can say what went wrong on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client

from aios_nb.errors import RpcError, Unreachable
from aios_nb.wire.outside.pinned import ANSWER_LIMIT_BYTES, Pinned, client
from aios_nb.wire.outside.stdio import Program


class Way(Protocol):
    """How one session reaches its server."""

    holds_on: bool
    """A call that was given up may still hold a stream open, until the session is closed."""

    def streams(self) -> Transport:
        """What the protocol library talks over, while it is entered."""

    @property
    def trouble(self) -> RpcError | None:
        """What is known of why it does not work."""


class Web:
    """Streamable HTTP, both eras."""

    holds_on = True

    def __init__(self, url: str, *, local: bool, headers: Mapping[str, str]) -> None:
        self._url = url
        self._door = Pinned(url, local=local, secrets=headers)

    def streams(self) -> Transport:
        return self._streams()  # type: ignore[return-value]  # it has __aenter__ and __aexit__

    @contextlib.asynccontextmanager
    async def _streams(self) -> AsyncIterator[object]:
        async with (
            client(self._door) as http,
            streamable_http_client(
                self._url, http_client=http, max_sse_event_size=ANSWER_LIMIT_BYTES
            ) as streams,
        ):
            yield streams

    @property
    def trouble(self) -> RpcError | None:
        if self._door.trouble is not None:
            return self._door.trouble
        if self._door.wants_token:
            return Unreachable(
                f"the server wants a token (HTTP {self._door.status})",
                hint="give it in an environment variable: aios-nb hub add URL --token-env NAME",
                reason="refused",
                status=self._door.status,
            )
        if self._door.status >= 400:  # noqa: PLR2004 - where HTTP's errors begin
            return Unreachable(
                f"the server answered with HTTP {self._door.status}", reason="no answer"
            )
        return None


class Command:
    """Lines to a program and from it."""

    holds_on = False

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._program = Program(command, env)

    def streams(self) -> Transport:
        return self._program.streams()

    @property
    def trouble(self) -> RpcError | None:
        return self._program.trouble
