"""Scoped tokens: for a bridge or another program that should not be the owner.

A token is shown once, when it is made. Only its SHA-256 is kept, so that who reads the database
cannot use it. It is good for one scope, for senders with one prefix, until it is revoked.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Sequence

import msgspec

from aios_nb.access import Caller, Principal
from aios_nb.errors import InvalidParams
from aios_nb.store import Store, Tx

CHAT = "chat"
"""The one scope: talk to agents."""
SECRET_BYTES = 32
_SECRET_START = "aios_"  # noqa: S105 - how a token begins, so that it is known for one when it leaks
_ID_BYTES = 8
_ID_START = "token:"
"""Of the caller id of a token. No person's sender id starts with it."""
_PREFIX = re.compile(r"([a-z]{1,16}):[A-Za-z0-9._:-]{0,100}")
_RESERVED = frozenset({"token", "owner", "agent", "node", "human", "anyone"})
"""First words that could pass for somebody who is not behind a bridge."""


class Token(msgspec.Struct, frozen=True):
    """What is known of a token; not the token itself."""

    id: str
    scope: str
    prefix: str
    as_owner: bool
    created: int
    """Unix ms."""

    @property
    def principal(self) -> Principal:
        return Principal(Caller.TOKEN, f"{_ID_START}{self.id}", self.prefix, self.as_owner)


class Tokens:
    """The scoped tokens of one node, in memory and in its database."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._by_hash: dict[bytes, tuple[Token, Principal]] = {}
        for digest, token_id, scope, prefix, as_owner, created in store.read(
            "SELECT hash, id, scope, prefix, as_owner, created FROM tokens"
        ):
            self._take(digest, Token(token_id, scope, prefix, bool(as_owner), created))
        self.on_revoked: Callable[[str], None] = lambda _: None
        """Told the caller id of a token that is good for nothing any more."""

    def _take(self, digest: bytes, token: Token) -> None:
        self._by_hash[digest] = token, token.principal

    async def create(self, scope: str, prefix: str, *, as_owner: bool = False) -> tuple[Token, str]:
        """A new token and its secret, which nobody can ever ask for again."""
        check_prefix(prefix)
        if scope != CHAT:
            raise InvalidParams(f"no such scope: {scope[:40]!r}", hint=f"use {CHAT}")
        secret = _SECRET_START + secrets.token_urlsafe(SECRET_BYTES)
        digest = hashlib.sha256(secret.encode()).digest()
        # No two in one millisecond: their order is the same after a restart.
        newest = max((token.created for token, _ in self._by_hash.values()), default=0)
        created = max(newest + 1, int(time.time() * 1000))
        made = Token(secrets.token_hex(_ID_BYTES), scope, prefix, as_owner, created)

        def apply(tx: Tx) -> None:
            tx.execute(
                "INSERT INTO tokens (hash, id, scope, prefix, as_owner, created)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (digest, made.id, scope, prefix, int(as_owner), made.created),
            )

        await self._store.write_through(apply, lambda _: self._take(digest, made))
        return made, secret

    def list(self) -> Sequence[Token]:
        """All that are good, the oldest first."""
        tokens = (token for token, _ in self._by_hash.values())
        return sorted(tokens, key=lambda token: token.created)

    async def revoke(self, token_id: str) -> None:
        """From this moment it is nobody's token; who is connected by it is put out."""
        wanted = token_id.removeprefix(_ID_START)
        found = [digest for digest, (token, _) in self._by_hash.items() if token.id == wanted]
        if not found:
            raise InvalidParams(
                f"no such token: {token_id[:80]}", hint="`aios-nb token list` has their ids"
            )

        def apply(tx: Tx) -> None:
            tx.execute("DELETE FROM tokens WHERE id = ?", (wanted,))

        def committed(_: None) -> None:
            gone = self._by_hash.pop(found[0], None)
            if gone is not None:
                self.on_revoked(gone[1].id)

        await self._store.write_through(apply, committed)

    def lookup(self, digest: bytes) -> Principal | None:
        """Whose token has this SHA-256; for the guard."""
        found = self._by_hash.get(digest)
        return found[1] if found is not None and found[0].scope == CHAT else None

    def caller(self, caller_id: str) -> Principal | None:
        """The caller of that id, ``token:ID``, if its token is still good."""
        return next((who for _, who in self._by_hash.values() if who.id == caller_id), None)


def check_prefix(prefix: str) -> str:
    """The same, if senders may have ids that start so."""
    found = _PREFIX.fullmatch(prefix)
    if found is None:
        raise InvalidParams(
            f"not a prefix of sender ids: {prefix[:80]!r}", hint="a word and a colon, such as tg:"
        )
    if found[1] in _RESERVED:
        raise InvalidParams(
            f"{found[1]}: could be taken for somebody else", hint="choose another word, as in tg:"
        )
    return prefix
