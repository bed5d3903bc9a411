"""The post: datagrams between nodes that have proven who and where they are."""

from __future__ import annotations

from aios_nb.hub.post.datagram import BODY_LIMIT_BYTES, Kind
from aios_nb.hub.post.post import Post

__all__ = ["BODY_LIMIT_BYTES", "Kind", "Post"]
