"""Files by their hash: kept whole, read by those who may."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aios_nb import blobs as blobs_module
from aios_nb import params as p
from aios_nb import uploads as uploads_module
from aios_nb.access import Caller, Principal, owner_of
from aios_nb.blobs import BlobStore, safe_name
from aios_nb.config import Limits
from aios_nb.envelope import FileRef
from aios_nb.errors import Busy, InvalidParams, TooLarge
from aios_nb.store import Store
from aios_nb.uploads import Uploads

OWNER = owner_of("a" * 32)
STRANGER = Principal(Caller.NODE, "b" * 32)


def with_blobs(tmp_path: Path, work: Callable[[BlobStore], Awaitable[None]], **limits: Any) -> None:
    async def main() -> None:
        store = Store.open(tmp_path / "a.db")
        try:
            await work(BlobStore(tmp_path / "blobs", store, Limits(**limits)))
        finally:
            await store.close()

    asyncio.run(main())


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def pieces(content: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


def test_what_is_put_is_read_back(tmp_path: Path) -> None:
    async def work(blobs: BlobStore) -> None:
        content = bytes(range(256)) * 100
        ref = await blobs.put(content, "a/b/plot.png", "", OWNER.id)
        assert ref == FileRef("plot.png", "image/png", len(content), sha(content))
        assert blobs.read(ref.sha256) == content
        path = blobs.open_path(ref.sha256)
        assert path is not None
        assert path.stat().st_mode & 0o777 == 0o600

    with_blobs(tmp_path, work)


def test_only_its_owner_and_the_nodes_owner_may_read(tmp_path: Path) -> None:
    async def work(blobs: BlobStore) -> None:
        ref = await blobs.put(b"x", "x", "", STRANGER.id)
        other = Principal(Caller.NODE, "c" * 32)
        assert blobs.may_read(ref.sha256, STRANGER)
        assert blobs.may_read(ref.sha256, OWNER)
        assert not blobs.may_read(ref.sha256, other)
        assert not blobs.may_read(sha(b"never"), OWNER)
        with pytest.raises(InvalidParams) as forbidden:
            blobs.check([ref], other)
        missing = FileRef("x", "", 1, sha(b"never"))
        with pytest.raises(InvalidParams) as absent:
            blobs.check([missing], other)
        assert str(forbidden.value) == str(absent.value)

    with_blobs(tmp_path, work)


def test_a_claimed_size_does_not_count(tmp_path: Path) -> None:
    async def work(blobs: BlobStore) -> None:
        ref = await blobs.put(b"four", "x", "", OWNER.id)
        (checked,) = blobs.check([FileRef("../../etc/x", "m", 999, ref.sha256)], OWNER)
        assert checked.size == 4
        assert checked.name == "x"

    with_blobs(tmp_path, work)


def test_wrong_bytes_and_too_many_leave_nothing(tmp_path: Path) -> None:
    async def work(blobs: BlobStore) -> None:
        with pytest.raises(InvalidParams, match="do not match"):
            await blobs.put_stream(pieces(b"other"), sha(b"this"), OWNER.id, 100)
        with pytest.raises(TooLarge):
            await blobs.put_stream(pieces(b"x" * 5000), sha(b"x" * 5000), OWNER.id, 4000)
        with pytest.raises(InvalidParams):
            await blobs.put_stream(pieces(b"x"), "../../x", OWNER.id, 100)
        assert list((tmp_path / "blobs").iterdir()) == []

    with_blobs(tmp_path, work)


def test_a_client_that_leaves_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    async def cut() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    async def work(blobs: BlobStore) -> None:
        with pytest.raises(ConnectionResetError):
            await blobs.put_stream(cut(), sha(b"half"), OWNER.id, 100)
        assert list((tmp_path / "blobs").iterdir()) == []

    with_blobs(tmp_path, work)


def test_the_whole_store_is_bounded(tmp_path: Path) -> None:
    async def work(blobs: BlobStore) -> None:
        await blobs.put(b"x" * 600, "x", "", OWNER.id)
        with pytest.raises(Busy):
            await blobs.put(b"y" * 600, "y", "", OWNER.id)
        await blobs.put(b"z" * 300, "z", "", OWNER.id)

    with_blobs(tmp_path, work, blobs_bytes=1000)


def test_old_files_nobody_refers_to_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(blobs: BlobStore) -> None:
        kept = await blobs.put(b"kept", "x", "", OWNER.id)
        loose = await blobs.put(b"loose", "x", "", OWNER.id)
        assert await blobs.sweep({kept.sha256}) == 0
        now = blobs_module.time.time()
        monkeypatch.setattr(blobs_module.time, "time", lambda: now + 31 * 86_400)
        assert await blobs.sweep({kept.sha256}) == 1
        assert blobs.open_path(loose.sha256) is None
        assert blobs.read(kept.sha256) == b"kept"

    with_blobs(tmp_path, work)


def test_a_file_comes_and_goes_in_pieces(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000

    async def work(blobs: BlobStore) -> None:
        uploads = Uploads(blobs, Limits(), lambda *_: False)
        step = 500_000
        for at in range(0, len(content), step):
            last = at + step >= len(content)
            done = await uploads.put(
                OWNER, p.BlobPut(sha(content), at, content[at : at + step], last)
            )
        assert done["stored"]
        got = b""
        while len(got) < len(content):
            got += uploads.get(OWNER, p.BlobGet(sha256=sha(content), offset=len(got)))["chunk"]
        assert got == content
        with pytest.raises(InvalidParams, match="no such file"):
            uploads.get(STRANGER, p.BlobGet(sha256=sha(content)))

    with_blobs(tmp_path, work)


def test_pieces_out_of_order_or_too_many_are_refused(tmp_path: Path) -> None:
    async def work(blobs: BlobStore) -> None:
        uploads = Uploads(blobs, Limits(file_bytes=1000), lambda *_: False)
        with pytest.raises(InvalidParams, match="missing"):
            await uploads.put(OWNER, p.BlobPut(sha(b"x"), 5, b"x"))
        await uploads.put(OWNER, p.BlobPut(sha(b"x"), 0, b"x" * 900))
        with pytest.raises(TooLarge):
            await uploads.put(OWNER, p.BlobPut(sha(b"x"), 900, b"x" * 200))
        for n in range(40):
            name = sha(str(n).encode())
            try:
                await uploads.put(OWNER, p.BlobPut(name, 0, b"x"))
            except Busy:
                break
        else:
            raise AssertionError("uploads are not bounded")
        assert base64.b64encode(b"x")

    with_blobs(tmp_path, work)


def test_an_upload_may_begin_again_and_abandoned_ones_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(blobs: BlobStore) -> None:
        uploads = Uploads(blobs, Limits(), lambda *_: False)
        for n in range(uploads_module.UPLOADS):
            await uploads.put(OWNER, p.BlobPut(sha(str(n).encode()), 0, b"x"))
        done = await uploads.put(OWNER, p.BlobPut(sha(b"0"), 0, b"0", last=True))
        assert done["stored"]
        now = uploads_module.time.monotonic()
        monkeypatch.setattr(uploads_module.time, "monotonic", lambda: now + 120)
        await uploads.put(OWNER, p.BlobPut(sha(b"new"), 0, b"new"))
        assert len(uploads._parts) == 1

    with_blobs(tmp_path, work)


@given(st.text())
def test_a_file_name_is_always_a_bare_safe_name(name: str) -> None:
    safe = safe_name(name)
    assert safe
    assert "/" not in safe
    assert "\\" not in safe
    assert not safe.startswith(".")
    assert len(safe.encode()) <= 200
    assert all(char.isprintable() for char in safe)
    assert safe_name(safe) == safe


# Strangers' files ----------------------------------------------------------------------------


def test_strangers_files_have_a_room_of_their_own(tmp_path: Path) -> None:
    async def work(blobs: BlobStore) -> None:
        await blobs.put(b"a" * 700, "a", "", STRANGER.id, stranger=True)
        await blobs.put(b"a" * 700, "a", "", "c" * 32, stranger=True)  # the same file
        with pytest.raises(Busy, match="for strangers"):
            await blobs.put(b"b" * 700, "b", "", "c" * 32, stranger=True)
        with pytest.raises(Busy, match="for strangers"):  # what agents make for them
            await blobs.put(b"b" * 700, "b", "", f"plot@{'a' * 32}", stranger=True)
        await blobs.put(b"b" * 700, "b", "", OWNER.id)
        await blobs.put(b"c" * 300, "c", "", STRANGER.id, stranger=True)

    with_blobs(tmp_path, work, stranger_blob_bytes=1000)


def test_what_failed_or_was_there_already_takes_no_room_of_strangers(tmp_path: Path) -> None:
    async def work(blobs: BlobStore) -> None:
        async def cut() -> AsyncIterator[bytes]:
            yield b"x" * 900
            raise ConnectionResetError

        await blobs.put(b"o" * 900, "o", "", OWNER.id)
        for _ in range(3):
            with pytest.raises(ConnectionResetError):
                await blobs.put_stream(cut(), sha(b"x"), STRANGER.id, 1000, stranger=True)
            other = pieces(b"x" * 900)
            with pytest.raises(InvalidParams):
                await blobs.put_stream(other, sha(b"x"), STRANGER.id, 1000, stranger=True)
            await blobs.put(b"o" * 900, "o", "", STRANGER.id, stranger=True)
        await blobs.put(b"y" * 900, "y", "", STRANGER.id, stranger=True)

    with_blobs(tmp_path, work, stranger_blob_bytes=1000)


def test_files_that_arrive_at_the_same_time_count_together(tmp_path: Path) -> None:
    async def work(blobs: BlobStore) -> None:
        both = asyncio.Barrier(2)

        async def slow(content: bytes) -> AsyncIterator[bytes]:
            yield content[:300]
            await both.wait()
            yield content[300:]

        contents = (b"a" * 600, b"b" * 600)
        got = await asyncio.gather(
            *(
                blobs.put_stream(slow(one), sha(one), STRANGER.id, 1000, stranger=True)
                for one in contents
            ),
            return_exceptions=True,
        )
        assert 600 in got
        assert sum(isinstance(one, Busy) for one in got) == 1

    with_blobs(tmp_path, work, stranger_blob_bytes=1000)


def test_strangers_files_are_known_after_a_restart_and_go_with_their_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = f"plot@{'a' * 32}"

    async def first(blobs: BlobStore) -> None:
        await blobs.put(b"a" * 400, "a", "", STRANGER.id, stranger=True)
        await blobs.put(b"b" * 400, "b", "", agent, stranger=True)
        await blobs.put(b"o" * 400, "o", "", OWNER.id)
        await blobs.put(b"o" * 400, "o", "", STRANGER.id, stranger=True)

    async def second(blobs: BlobStore) -> None:
        with pytest.raises(Busy):
            await blobs.put(b"c" * 400, "c", "", STRANGER.id, stranger=True)
        assert await blobs.sweep(set()) == 0  # a message may be on its way
        now = blobs_module.time.time()
        monkeypatch.setattr(blobs_module.time, "time", lambda: now + 2 * 3600)
        assert await blobs.sweep({sha(b"a" * 400)}) == 1
        assert [blobs.size(sha(one * 400)) for one in (b"a", b"b", b"o")] == [400, None, 400]
        await blobs.put(b"c" * 400, "c", "", STRANGER.id, stranger=True)

    with_blobs(tmp_path, first, stranger_blob_bytes=1000)
    with_blobs(tmp_path, second, stranger_blob_bytes=1000)
