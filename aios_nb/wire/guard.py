"""Decides who is calling, before anything is routed or read. No I/O, no framework.

The default is *anyone*: a request becomes the owner's only by showing the token, on a connection
that may carry it. Every refusal is one line, and never says how near a guess was.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from enum import Enum
from urllib.parse import urlsplit

import msgspec

from aios_nb.access import ANYONE, Caller, Principal
from aios_nb.config import Limits
from aios_nb.errors import UsageError

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
BURST_S = 2.0
"""A bucket holds what this many seconds let in."""
HELLOS_PER_REFUSAL = 10
"""Websockets open without a token, as our own clients do; they have their own, larger bucket."""
PARTS_PER_VISIT = 1000
_FORWARDED = ("X-Forwarded-For", "Forwarded", "Via", "X-Real-IP")
_DEFAULT_PORTS = {"http": 80, "https": 443}

Scoped = Callable[[bytes], Principal | None]
"""Looks up the principal of a scoped token by the SHA-256 of the token."""


class Need(Enum):
    """What a route asks of its caller."""

    NOTHING = "nothing"
    TOKEN = "token"  # noqa: S105 - the word, not a secret
    OPEN = "open"
    """Anyone may come, within tight limits; who shows a token may do more."""
    HELLO = "hello"
    """A websocket: it may open unproven, and proves itself on the connection."""


class Peer(msgspec.Struct, frozen=True, gc=False):
    """What is known of the other end of a connection, from its accept on."""

    loopback: bool = False
    foreign: bool = False
    """Another user of this machine, or one that could not be told, where that counts."""


NOBODY = Peer()
"""The other end, where nothing is known of it."""
_NO_HEADERS: Mapping[str, str] = {}


class Refusal(msgspec.Struct, frozen=True):
    """An HTTP status and one line, instead of an answer."""

    status: int
    error: str
    hint: str | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def body(self) -> bytes:
        said = {"error": self.error, "hint": self.hint} if self.hint else {"error": self.error}
        return msgspec.json.encode(said)


_CHALLENGE = ("WWW-Authenticate", 'Bearer realm="aios-nb"')
_TOKEN_HINT = "send Authorization: Bearer with the token from the node's run file"  # noqa: S105
_WRONG_HOST = Refusal(
    421, "this node does not answer under that name", "start it with --allow-host NAME to allow it"
)
_WRONG_ORIGIN = Refusal(403, "pages of another origin may not call this node")
_NO_TOKEN = Refusal(401, "this needs the node's token", _TOKEN_HINT, (_CHALLENGE,))
_WRONG_TOKEN = Refusal(401, "that is not a token of this node", _TOKEN_HINT, (_CHALLENGE,))
_FOREIGN = Refusal(403, "this node answers only programs of the user who runs it")
_PLAIN_HTTP = Refusal(
    403,
    "a token is not taken over plain HTTP from another machine",
    "use an https public URL",
)
_TOO_MANY = Refusal(
    429, "too many requests without a valid token", "try again later", (("Retry-After", "1"),)
)


class Bucket:
    """Lets ``per_s`` through, with a burst; takes its clock from outside."""

    def __init__(self, per_s: float, clock: Callable[[], float]) -> None:
        self._per_s = per_s
        self._most = max(1.0, per_s * BURST_S)
        self._left = self._most
        self._clock = clock
        self._at = clock()

    @property
    def is_empty(self) -> bool:
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._at) * self._per_s)
        self._at = now
        return self._left < 1.0

    def take(self, cost: float = 1.0) -> bool:
        if self.is_empty or self._left < cost:
            return False
        self._left -= cost
        return True


class Guard:
    """The door of one node."""

    def __init__(
        self,
        token: str,
        owner: Principal,
        *,
        limits: Limits | None = None,
        public_url: str | None = None,
        allow_hosts: tuple[str, ...] = (),
        scoped: Scoped | None = None,
        conformance: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises ``UsageError`` for a token, URL or host name that cannot be meant."""
        if not token:
            raise UsageError("a node cannot run without a token")
        limits = limits or Limits()
        self._digest = _digest(token)
        self._owner = owner
        self._scoped = scoped
        self._public = _public(public_url) if public_url else None
        self._allow_hosts = tuple(name.lower() for name in allow_hosts)
        self.is_wide = bool(public_url or allow_hosts)
        """Reached from other machines: loopback addresses and uids prove nothing then."""
        self.conformance = conformance
        if conformance and self.is_wide:
            raise UsageError("--conformance is for loopback only", hint="leave out the other names")
        self._strangers = Bucket(limits.refused_per_s, clock)
        self._visitors = Bucket(limits.open_per_s, clock)
        hellos_per_s = limits.refused_per_s * HELLOS_PER_REFUSAL
        self._near_hellos = Bucket(hellos_per_s, clock)
        self._far_hellos = Bucket(hellos_per_s, clock)
        """Apart, so that a crowd outside cannot keep this machine's own clients from the door."""
        self._hosts: frozenset[str] = frozenset()
        self._origins: frozenset[str] = frozenset()

    def bound(self, port: int) -> None:
        """Learn the port; until then no Host is right."""
        hosts = {f"{name}:{port}" for name in LOOPBACK_NAMES}
        bare = set(LOOPBACK_NAMES)
        for name in self._allow_hosts:
            hosts |= {name, f"{name}:{port}"}
        origins = {f"http://{host}" for host in hosts}
        origins |= {f"https://{name}" for name in self._allow_hosts}
        if port == _DEFAULT_PORTS["http"]:
            hosts |= bare
            origins |= {f"http://{name}" for name in bare}
        if self._public:
            scheme, name, public_port = self._public
            hosts |= {f"{name}:{public_port}"}
            origins |= {f"{scheme}://{name}:{public_port}"}
            if public_port == _DEFAULT_PORTS[scheme]:
                hosts |= {name}
                origins |= {f"{scheme}://{name}"}
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins)

    def answers_to(self, host: str | None) -> bool:
        """Whether a Host is one of ours."""
        return host in self._hosts or (host or "").lower() in self._hosts

    def screen(self, headers: Mapping[str, str], peer: Peer = NOBODY) -> Refusal | None:
        """The refusal of a request under a wrong name or from a foreign page."""
        if not self.answers_to(headers.get("Host")):
            return self.refuse(_WRONG_HOST, headers, peer)
        origin = headers.get("Origin")
        if origin is not None and origin not in self._origins:
            return self.refuse(_WRONG_ORIGIN, headers, peer)
        return None

    def identify(self, headers: Mapping[str, str], peer: Peer, need: Need) -> Principal | Refusal:
        """Who is calling, as far as shown; or why this route is not for them."""
        shown = headers.get("Authorization")
        if shown is not None and need is not Need.NOTHING:
            return self._by_header(shown, headers, peer)
        if need is Need.NOTHING:
            known = self._shows_token(headers, peer)
            return ANYONE if known or self._strangers.take() else _TOO_MANY
        if need is Need.OPEN:
            return ANYONE if self.conformance or self._visitors.take() else _TOO_MANY
        if need is Need.TOKEN:
            # The fixtures of the suites are for anyone, and the suites send no token.
            return ANYONE if self.conformance else self.refuse(_NO_TOKEN)
        if peer.foreign:
            return self.refuse(_FOREIGN)
        near = peer.loopback and not _is_forwarded(headers)
        return ANYONE if (self._near_hellos if near else self._far_hellos).take() else _TOO_MANY

    def _by_header(self, shown: str, headers: Mapping[str, str], peer: Peer) -> Principal | Refusal:
        if peer.foreign:
            return self.refuse(_FOREIGN)
        if not self.may_carry_token(headers, peer):
            return self.refuse(_PLAIN_HTTP)
        return self._by_bearer(shown) or self.refuse(_WRONG_TOKEN)

    def _by_bearer(self, shown: str) -> Principal | None:
        scheme, _, token = shown.partition(" ")
        return self.by_token(token.strip()) if scheme.lower() == "bearer" else None

    def by_token(self, token: str) -> Principal | None:
        """Whose token this is. Takes the same time whatever is sent, also for its length."""
        digest = _digest(token)
        if hmac.compare_digest(digest, self._digest):
            return self._owner
        return self._scoped(digest) if self._scoped and token else None

    def may_carry_token(self, headers: Mapping[str, str], peer: Peer) -> bool:
        """False where others on the way could read it: plain HTTP that left the machine."""
        if not self.is_wide or (self._public and self._public[0] == "https"):
            return True
        return peer.loopback and not _is_forwarded(headers)

    def may_read(self, parts: int) -> bool:
        """Whether a body from anyone may be read that has so many lists and objects.

        A million of them keep the node busy for seconds; each thousand counts as a visit.
        """
        visits = parts // PARTS_PER_VISIT
        return not visits or self.conformance or self._visitors.take(visits)

    def may_change(self, principal: Principal) -> bool:
        """Whether this caller may use routes beside JSON-RPC that need a token."""
        return principal.kind in (Caller.OWNER, Caller.TOKEN)

    def refuse(
        self, refusal: Refusal, headers: Mapping[str, str] = _NO_HEADERS, peer: Peer = NOBODY
    ) -> Refusal:
        """The refusal; or, when too many were given lately, a cheaper one.

        Who shows a valid token in ``headers`` is not counted, and always told what is wrong.
        """
        return refusal if self._shows_token(headers, peer) or self._strangers.take() else _TOO_MANY

    def _shows_token(self, headers: Mapping[str, str], peer: Peer) -> bool:
        shown = headers.get("Authorization")
        if shown is None or peer.foreign or not self.may_carry_token(headers, peer):
            return False
        return self._by_bearer(shown) is not None


NEEDS_TOKEN = _NO_TOKEN
WRONG_TOKEN = _WRONG_TOKEN
TOO_MANY = _TOO_MANY


def _is_forwarded(headers: Mapping[str, str]) -> bool:
    """Came through a proxy: the other end of the connection is not who asks."""
    return any(name in headers for name in _FORWARDED)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()


def _public(url: str) -> tuple[str, str, int]:
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        raise UsageError(f"{url!r} is not an http or https URL") from None
    if not parts.hostname:
        raise UsageError(f"{url!r} names no host", hint="as in https://node.example.org")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return parts.scheme, name, port
