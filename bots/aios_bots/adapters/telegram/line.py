"""The line to a Bot API server: python-telegram-bot's bot, on aiohttp.

The library lets programs bring their own HTTP. With aiohttp a call takes a third of the time, no
address is logged, and it is known for each failure whether the call can have arrived.
"""

from __future__ import annotations

import contextlib
import io
import os
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import telegram
from telegram.error import TelegramError
from telegram.request import BaseRequest, RequestData

from aios_bots.adapters.telegram.answers import Lost, Refused, result_of
from aios_bots.adapters.telegram.webhook import is_loopback
from aios_bots.core.secret import Secret, described

CONNECT_S = 10.0
"""To get a connection, from the pool or a new one."""
READ_S = 30.0
FILE_S = 120.0
"""For the bytes of a file to go up or come down."""
CONNECTIONS = 64
"""More than chats are served at once."""
ANSWER_MAX_BYTES = 64 << 20


class _Failed(TelegramError):
    """Carries a failure through the library, which lets only its own errors pass."""

    def __init__(self, failure: Lost | Refused) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _Http(BaseRequest):
    """Connections that are kept, for the calls of one bot."""

    def __init__(self, connections: int, proxy: str | None) -> None:
        self._connections, self._proxy = connections, proxy
        self._session: aiohttp.ClientSession | None = None

    @property
    def read_timeout(self) -> float | None:
        return READ_S

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise Lost("closed", sent=False)
        return self._session

    async def initialize(self) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self.USER_AGENT},
                proxy=self._proxy,
            )

    async def shutdown(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = BaseRequest.DEFAULT_NONE,
        write_timeout: Any = BaseRequest.DEFAULT_NONE,
        connect_timeout: Any = BaseRequest.DEFAULT_NONE,
        pool_timeout: Any = BaseRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        """The ``result`` of the answer; ``parse_json_payload`` knows that."""
        del write_timeout, connect_timeout, pool_timeout
        read_s = read_timeout if isinstance(read_timeout, (int, float)) else READ_S
        try:
            with _lost():
                async with self.session.request(
                    method,
                    url,
                    data=_form(request_data),
                    timeout=_timeout(
                        read_s, files=bool(request_data and request_data.contains_files)
                    ),
                    allow_redirects=False,
                ) as response:
                    body = await read_up_to(response, ANSWER_MAX_BYTES)
                    wait = response.headers.get("Retry-After", "")
            return 200, result_of(response.status, body, wait)
        except (Lost, Refused) as failure:
            raise _Failed(failure) from None

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        return {"result": payload}


class Line(telegram.Bot):
    """One bot. Getting updates has connections of its own: it waits while others call."""

    def __init__(self, token: Secret, api_url: str, file_url: str) -> None:
        proxy = proxy_for(api_url)
        self._polls, self._calls = _Http(2, proxy), _Http(CONNECTIONS, proxy)
        super().__init__(
            token.reveal(),
            base_url=api_url,
            base_file_url=file_url,
            request=self._calls,
            get_updates_request=self._polls,
        )
        self._shown = repr(token)

    def __repr__(self) -> str:
        return self._shown

    async def open(self) -> None:
        """Without a call: which ones a server knows is found out later."""
        await self._polls.initialize()
        await self._calls.initialize()

    async def shut(self) -> None:
        await self._polls.shutdown()
        await self._calls.shutdown()

    async def ask(
        self, method: str, params: dict[str, Any] | None = None, *, read_s: float = READ_S
    ) -> bytes:
        """The result of a call as JSON. Raises ``Refused`` or ``Lost``, without the token."""
        try:
            result: bytes = await self._post(method, params, read_timeout=read_s)
        except _Failed as failed:
            failure: Exception = failed.failure
        except TelegramError as error:
            failure = Lost(described(error), sent=True)
        else:
            return result
        raise failure from None

    @staticmethod
    def file(data: bytes, name: str) -> telegram.InputFile:
        # A quote would have to be escaped, and servers do not agree how.
        return telegram.InputFile(data, filename=name.replace('"', "'"))

    async def download(self, path: str, most: int) -> bytes:
        """A file by its path, which is already safe in an address; no more bytes than that."""
        with _lost():
            async with self._calls.session.get(
                f"{self.base_file_url}/{path}",
                timeout=_timeout(READ_S, files=True),
                allow_redirects=False,
            ) as response:
                if response.status != 200:  # noqa: PLR2004 - HTTP's own
                    raise Refused(response.status, spoken=False)
                return await read_up_to(response, most)


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for that address.

    Looked up once. aiohttp would do it at each call, and look for passwords on the disk too, in
    another thread: a fifth of all that the bridge does for a message.
    """
    address = urlsplit(url)
    if is_loopback(address.hostname or ""):
        return None  # a proxy's loopback is another one, and it would be told the token
    named = urllib.request.getproxies().get(address.scheme, "")
    passed_by = urllib.request.proxy_bypass(address.hostname or "")
    return named if named.startswith("http://") and not passed_by else None


async def read_up_to(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body; ``Refused`` as soon as it is larger than that."""
    if (response.content_length or 0) <= most:
        found = bytearray()
        async for chunk in response.content.iter_any():
            found += chunk
            if len(found) > most:
                break
        else:
            return bytes(found)
    response.close()
    raise Refused(413, f"more than {most} bytes")


def _timeout(read_s: float, *, files: bool) -> aiohttp.ClientTimeout:
    total = CONNECT_S + read_s + (FILE_S if files else 0.0)
    return aiohttp.ClientTimeout(total, connect=CONNECT_S, sock_read=read_s)


def _form(data: RequestData | None) -> aiohttp.FormData | dict[str, str] | None:
    """As the library sends it: fields, and if there are files, in several parts."""
    if data is None or not data.contains_files:
        return data.json_parameters if data else None
    form = aiohttp.FormData(data.json_parameters, quote_fields=False)  # names are UTF-8 as they are
    for field, (name, content, mime) in data.multipart_data.items():
        # As a file it is read piece by piece; as bytes it would hold up the loop.
        opened = io.BytesIO(content) if isinstance(content, bytes) else content
        form.add_field(field, opened, filename=name, content_type=mime)
    return form


@contextlib.contextmanager
def _lost() -> Any:
    """Failures of the line as ``Lost``; aiohttp's own quote the address, token and all."""
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        failure = Lost(_why(error), sent=False)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        failure = Lost(_why(error), sent=True)
    else:
        return
    raise failure from None


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    cause = getattr(error, "os_error", error)
    if isinstance(cause, OSError) and (cause.errno or 0) > 0:
        return os.strerror(cause.errno or 0).lower()
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()  # a name that nobody knows
    return type(error).__name__
