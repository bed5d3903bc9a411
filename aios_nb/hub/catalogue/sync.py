"""What a node sends to one that fell behind: the buckets that differ, in pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from aios_nb.errors import UsageError
from aios_nb.hub.catalogue.digest import BUCKETS, bucket_of
from aios_nb.hub.presence import Presence
from aios_nb.records import Scope, may_be_told

PAGE_BYTES = 256 << 10
"""As JSON, in which bytes are base64."""
_FRAME_BYTES = 256
"""Of a page, around what it carries."""
_PRESENCE, _RECORD = "p", "r"
_CURSOR = re.compile(r"p[a-z2-7]{32}|r[0-9a-f]{16}")


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the answer; ask again with ``after`` until it is None."""

    presences: tuple[bytes, ...] = ()
    records: tuple[bytes, ...] = ()
    after: str | None = None


class Records(Protocol):
    """The part of the catalogue that is sent."""

    def differing_buckets(self, digest: bytes, scope: Scope) -> list[int]: ...
    def listing(self, buckets: Iterable[int], scope: Scope) -> list[tuple[bytes, bytes]]: ...
    def content(self, handle: bytes) -> bytes | None: ...


def page(
    catalogue: Records,
    scope: Scope,
    *,
    digest: bytes | None = None,
    presences: Iterable[Presence] = (),
    after: str | None = None,
    limit_bytes: int = PAGE_BYTES,
) -> Page:
    """The next part for a peer of this scope: presences, then what its digest lacks (None: all).

    Whatever is there from the first page to the last is in exactly one of them, though other
    records come and go meanwhile.
    """
    items = _items(catalogue, scope, digest, presences, _cursor(after))
    found: dict[str, list[bytes]] = {_PRESENCE: [], _RECORD: []}
    used, last = _FRAME_BYTES, None
    for kind, place, content in items:
        used += _as_json(content)
        if used > limit_bytes and last is not None:
            break
        found[kind].append(content)
        last = kind + place
    else:
        last = None
    return Page(presences=tuple(found[_PRESENCE]), records=tuple(found[_RECORD]), after=last)


def _items(
    catalogue: Records,
    scope: Scope,
    digest: bytes | None,
    presences: Iterable[Presence],
    after: tuple[str, str],
) -> Iterator[tuple[str, str, bytes]]:
    """What there is to send after that place: kind, place and bytes."""
    kind, place = after
    if kind == _PRESENCE:
        told = (one for one in presences if may_be_told(one.said.scope, scope))
        for presence in sorted(told, key=lambda one: one.node_id):
            if presence.node_id > place:
                yield _PRESENCE, presence.node_id, presence.to_bytes()
    start = bytes.fromhex(place) if kind == _RECORD else b""
    first = bucket_of(start) if start else 0
    buckets = range(BUCKETS) if digest is None else catalogue.differing_buckets(digest, scope)
    for bucket in buckets:
        if bucket < first:
            continue
        for handle, _ in sorted(catalogue.listing([bucket], scope)):
            content = catalogue.content(handle)
            if handle > start and content is not None:
                yield _RECORD, handle.hex(), content


def _cursor(after: str | None) -> tuple[str, str]:
    if after is None:
        return _PRESENCE, ""
    if not _CURSOR.fullmatch(after):
        raise UsageError("after is not of a page", hint="send back what the last page said")
    return after[0], after[1:]


def _as_json(content: bytes) -> int:
    """Quotes, a comma, and four characters for three bytes."""
    return 3 + (len(content) + 2) // 3 * 4
