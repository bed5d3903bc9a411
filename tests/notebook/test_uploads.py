"""Files on their way from a page to the node."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aios_nb.errors import TooLarge
from aios_nb.notebook.widgets import uploads
from aios_nb.notebook.widgets.uploads import Uploads

MB = bytes(1 << 20)


class Node:
    """Takes what it is given."""

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        return {}


def piece(upload: str, *, last: bool = False) -> dict[str, Any]:
    return {"id": upload, "name": f"{upload}.bin", "mime": "", "last": last}


def test_what_pages_left_behind_makes_room_and_is_refused_if_it_comes_back(monkeypatch):
    monkeypatch.setattr(uploads, "HELD_BYTES", 3 * len(MB) + 100)

    async def scenario() -> None:
        files = Uploads(Node(), {})
        for one in ("left", "slow", "slow"):
            await files.take(piece(one), [MB])
        await files.take(piece("new"), [MB])  # in place of the one that waits longest
        for one in ("slow", "new"):
            await files.take(piece(one, last=True), [b"end"])
            assert (await files.done(one))["size"] > len(MB)
        with pytest.raises(TooLarge, match="too many files at once"):
            await files.take(piece("left", last=True), [b"end"])
        with pytest.raises(TooLarge):
            await files.done("left")
        assert set(files.there) == {"slow", "new"}

    asyncio.run(scenario())
