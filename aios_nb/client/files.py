"""Files to and from a node, in chunks, over the same connection as everything else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from aios_nb.client.interface import SiteClient
from aios_nb.errors import InternalError

CHUNK_BYTES = 512 << 10


async def put_file(client: SiteClient, content: bytes, name: str, mime: str) -> dict[str, Any]:
    """Uploads a file to the node; what comes back goes into ``files`` of a message."""
    sha256 = hashlib.sha256(content).hexdigest()
    for offset in range(0, len(content) or 1, CHUNK_BYTES):
        chunk = content[offset : offset + CHUNK_BYTES]
        await client.call(
            "blobs.put",
            sha256=sha256,
            offset=offset,
            chunk=base64.b64encode(chunk).decode(),
            last=offset + CHUNK_BYTES >= len(content),
        )
    return {"name": name, "mime": mime, "size": len(content), "sha256": sha256}


async def get_file(client: SiteClient, file: Mapping[str, Any]) -> bytes:
    """The bytes of a file that a message refers to, checked against its hash."""
    parts: list[bytes] = []
    offset, size = 0, int(file["size"])
    while offset < size:
        answer = await client.call("blobs.get", sha256=file["sha256"], offset=offset)
        part = base64.b64decode(answer["chunk"])
        if not part:
            break
        parts.append(part)
        offset += len(part)
    content = b"".join(parts)
    if hashlib.sha256(content).hexdigest() != file["sha256"]:
        raise InternalError("the file did not arrive as it was sent", hint="ask for it again")
    return content
