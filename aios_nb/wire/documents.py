"""JSON that seldom changes, as HTTP serves it to those who may have it already."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from email.utils import formatdate, parsedate_to_datetime
from typing import Self

import msgspec
from aiohttp import web

from aios_nb.wire.replies import JSON_HEADERS

MAX_AGE_S = 60
"""An agent is replaced by running its cell again; nobody should miss that for long."""


class Document(msgspec.Struct, frozen=True):
    """A card or a catalog, ready to be sent."""

    body: bytes
    etag: str
    modified: int
    """Unix seconds."""
    public: bool

    @classmethod
    def of(cls, body: bytes, modified: float, *, public: bool) -> Self:
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        return cls(body, etag, int(modified), public)

    def response(self, request: web.BaseRequest) -> web.Response:
        """The document; or that the client has it already."""
        headers = {
            **JSON_HEADERS,
            "Cache-Control": f"{'public' if self.public else 'private'}, max-age={MAX_AGE_S}",
            "ETag": self.etag,
            "Last-Modified": formatdate(self.modified, usegmt=True),
            "Vary": "Authorization",
        }
        if self._is_known(request.headers):
            del headers["Content-Type"]
            return web.Response(status=304, headers=headers)
        if request.method == "HEAD":
            return web.Response(headers={**headers, "Content-Length": str(len(self.body))})
        return web.Response(body=self.body, headers=headers)

    def _is_known(self, headers: Mapping[str, str]) -> bool:
        if (tags := headers.get("If-None-Match")) is not None:
            known = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
            return bool(known & {"*", self.etag})
        try:
            since = parsedate_to_datetime(headers.get("If-Modified-Since", ""))
            return self.modified <= since.timestamp()
        except (ValueError, TypeError, OverflowError):
            return False
