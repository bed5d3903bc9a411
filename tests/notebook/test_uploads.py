"""Files on their way from a page to the node."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aios_nb.errors import TooLarge, UsageError
from aios_nb.notebook.widgets import uploads
from aios_nb.notebook.widgets.uploads import Uploads

MB = bytes(1 << 20)


class Node:
    """Takes what it is given."""

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        return {}


def piece(upload: str, offset: int = 0, *, last: bool = False) -> dict[str, Any]:
    return {"id": upload, "name": f"{upload}.bin", "mime": "", "offset": offset, "last": last}


def test_what_pages_left_behind_makes_room_and_is_refused_if_it_comes_back(monkeypatch):
    monkeypatch.setattr(uploads, "HELD_BYTES", 3 * len(MB) + 100)

    async def scenario() -> None:
        files = Uploads(Node(), {})
        await files.take(piece("left"), [MB])
        await files.take(piece("slow"), [MB])
        await files.take(piece("slow", len(MB)), [MB])
        await files.take(piece("new"), [MB])  # in place of the one that waits longest
        for one, held in (("slow", 2 * len(MB)), ("new", len(MB))):
            await files.take(piece(one, held, last=True), [b"end"])
            assert (await files.done(one))["size"] > len(MB)
        with pytest.raises(TooLarge, match="too many files at once"):
            await files.take(piece("left", len(MB), last=True), [b"end"])
        with pytest.raises(TooLarge):
            await files.done("left")
        assert set(files.there) == {"slow", "new"}

    asyncio.run(scenario())


def test_a_piece_that_is_said_again_is_taken_once():
    async def scenario() -> None:
        puts = asyncio.Semaphore(0)

        class Slow(Node):
            async def call(self, method: str, **params: Any) -> dict[str, Any]:
                await puts.acquire()
                return await super().call(method, **params)

        files = Uploads(Slow(), {})
        first, last = piece("one"), piece("one", len(b"begin "), last=True)
        await files.take(first, [b"begin "])
        await files.take(first, [b"begin "])
        putting = asyncio.create_task(files.take(last, [b"end"]))
        await asyncio.sleep(0)
        await files.take(last, [b"end"])  # while the file is on its way to the node
        puts.release()
        await putting
        await files.take(last, [b"end"])  # and when it is there
        assert (await files.done("one"))["size"] == len(b"begin end")

    asyncio.run(scenario())


def test_the_rest_of_a_file_whose_beginning_is_gone_is_not_taken_for_all_of_it():
    async def scenario() -> None:
        files = Uploads(Node(), {})  # of a node that was started again meanwhile
        with pytest.raises(UsageError, match="did not arrive whole"):
            await files.take(piece("one", len(MB), last=True), [b"end"])
        with pytest.raises(UsageError, match="did not arrive whole"):
            await files.done("one")

        await files.take(piece("two"), [b"all "])
        await files.take(piece("two", len(b"all "), last=True), [b"of it"])
        again = Uploads(Node(), files.there)
        await again.take(piece("two", len(b"all "), last=True), [b"of it"])
        assert (await again.done("two"))["size"] == len(b"all of it")

    asyncio.run(scenario())


def test_a_message_does_not_wait_for_ever_for_a_file_of_a_page_that_was_closed(monkeypatch):
    monkeypatch.setattr(uploads, "STALLED_S", 0.2)

    async def scenario() -> None:
        files = Uploads(Node(), {})
        await files.take(piece("left"), [MB])
        with pytest.raises(UsageError, match="did not arrive"):
            await files.done("left")
        with pytest.raises(UsageError):  # it is not taken up again either
            await files.take(piece("left", len(MB), last=True), [b"end"])

    asyncio.run(scenario())


def test_a_message_is_told_at_once_that_its_file_cannot_be_read():
    async def scenario() -> None:
        files = Uploads(Node(), {})
        await files.take(piece("changed"), [MB])
        waiting = asyncio.create_task(files.done("changed"))
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="cannot be read"):
            await files.take({**piece("changed", len(MB)), "unreadable": True}, [])
        with pytest.raises(UsageError, match="cannot be read"):
            await waiting

    asyncio.run(scenario())
