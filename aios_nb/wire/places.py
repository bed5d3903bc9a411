"""Where a URL leads, and whether it may be called from here."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Self

import msgspec
import yarl

from aios_nb.addresses import scope_of
from aios_nb.errors import Unreachable, UsageError
from aios_nb.records import Scope
from aios_nb.richtext import one_line

URL_LIMIT_CHARS = 2000
LOOKUP_S = 10.0
_SHOWN_CHARS = 200
_USER = re.compile(r"//[^/]*@")
_ODD = re.compile(r"[\\\s]")
_HINT = "like https://example.org/agent"
_LOCAL_HINT = "a program of this machine is used with --local"

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name, as texts. Raises ``OSError``."""


class Place(msgspec.Struct, frozen=True):
    """A URL, read: in one spelling, without a fragment."""

    url: str
    scheme: str
    host: str
    """Without brackets, in lower case."""
    port: int
    origin: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """The place that a URL names. Raises ``UsageError``."""
        said = shown(text)
        try:
            # By the very reader that the connection is made by: two would see two hosts.
            url = yarl.URL(text.strip()).with_fragment(None)
            host, port, origin = url.raw_host, url.port, str(url.origin()).lower()
        except (ValueError, TypeError):
            host = port = None
            url, origin = yarl.URL(), ""
        odd = len(text) > URL_LIMIT_CHARS or not text.isprintable() or _ODD.search(text.strip())
        if url.user is not None or url.password is not None:
            # Not repeated in the message: it may be a password.
            raise UsageError("a URL with a user or a password in it is not fetched", hint=_HINT)
        if odd or not host or not port or url.scheme not in {"http", "https"}:
            raise UsageError(f"{said!r} is not a URL that can be fetched", hint=_HINT)
        if "%" in host or _is_odd_number(host):
            raise UsageError(f"{said!r} has an address in a form that hides it", hint=_HINT)
        return cls(str(url), url.scheme, host.lower(), port, origin)

    def beside(self, reference: str) -> Place:
        """Where a reference on that page leads. Raises ``UsageError``."""
        try:
            joined = yarl.URL(self.url).join(yarl.URL(reference))
        except (ValueError, TypeError):
            raise UsageError(f"{shown(reference)!r} is not a URL") from None
        return Place.parse(str(joined))


def _is_odd_number(host: str) -> bool:
    """127.1, 0x7f.1, 2130706433: systems read these as addresses, each in its own way."""
    last = host.rstrip(".").rpartition(".")[2]
    if ":" in host or not (last.isdigit() or last[:2].lower() == "0x"):
        return False
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return True
    return False


async def looked_up(host: str, port: int) -> list[str]:
    """What the system says are the addresses of that name."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


async def checked(host: str, port: int, *, local: bool, resolve: Resolve = looked_up) -> list[str]:
    """The addresses to connect to, all of them safe; connect to these, not to the name.

    ``local``: loopback is meant. Raises ``UsageError`` for what must not be called from here,
    ``Unreachable`` for a name that is not known.
    """
    return (await looked_at(host, port, local=local, resolve=resolve))[0]


async def looked_at(
    host: str, port: int, *, local: bool, resolve: Resolve
) -> tuple[list[str], Scope]:
    """The same, and whether they are of this machine."""
    said = shown(host)
    try:
        found: Sequence[str] = [str(ipaddress.ip_address(host))]
    except ValueError:
        try:
            async with asyncio.timeout(LOOKUP_S):
                found = await resolve(host, port)
        except (OSError, UnicodeError, TimeoutError):
            found = ()
    if not found:
        raise Unreachable(
            f"nobody knows the name {said}", hint="check the spelling", reason="no address"
        )
    scopes = {scope_of(address) for address in found}
    allowed = {Scope.GLOBAL, Scope.LOOPBACK} if local else {Scope.GLOBAL}
    if not scopes <= allowed:
        raise UsageError(
            f"{said} is {_kind(scopes)}: it is not called from here",
            hint=_LOCAL_HINT if scopes <= {Scope.GLOBAL, Scope.LOOPBACK} else None,
        )
    return list(found), Scope.LOOPBACK if Scope.LOOPBACK in scopes else Scope.GLOBAL


def _kind(scopes: set[Scope | None]) -> str:
    if None in scopes:
        return "an address that no public server has"
    return "this machine" if Scope.PRIVATE not in scopes else "in a private network"


def shown(text: str) -> str:
    """A URL or a name for a message; what may be secret in it stays out."""
    place = text.partition("?")[0].partition("#")[0]
    return one_line(_USER.sub("//", place), _SHOWN_CHARS)
