"""``/blobs/SHA256`` over a real socket, into the node's real file store."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from typing import Any

import pytest

from aios_nb.access import Caller, Principal
from aios_nb.blobs import BlobStore
from aios_nb.config import Limits
from aios_nb.store import Store
from aios_nb.wire.guard import _digest

CONTENT = b"<script>alert(1)</script>" * 100
SHA = hashlib.sha256(CONTENT).hexdigest()
PATH = f"/blobs/{SHA}"
LIMITS = Limits(file_bytes=100_000, refused_per_s=1e6)
BRIDGE = Principal(Caller.TOKEN, "bridge")


@pytest.fixture
def asked(serving, tmp_path):
    """The answers to some requests (method, path, body, headers, token) in a row."""

    def asked(*requests: tuple[Any, ...], real: bool = True) -> list[Any]:
        async def main() -> list[Any]:
            scoped = {_digest("bridge-token"): BRIDGE}.get
            async with serving(limits=LIMITS, scoped=scoped) as site:
                store = None
                if real:
                    store = Store.open(tmp_path / "files.db")
                    site.server._blobs._files = BlobStore(tmp_path / "blobs", store, LIMITS)
                try:
                    return [
                        await site.http(
                            method,
                            path,
                            body,
                            more[0] if more else None,
                            token=more[1] if len(more) > 1 else site.token,
                        )
                        for method, path, body, *more in requests
                    ]
                finally:
                    if store is not None:
                        await store.close()

        return asyncio.run(main())

    return asked


def test_what_was_put_comes_back_as_an_attachment(asked):
    put, got, head = asked(("PUT", PATH, CONTENT), ("GET", PATH, b""), ("HEAD", PATH, b""))
    assert put.status == 200
    assert put.json == {"sha256": SHA, "size": len(CONTENT)}
    assert got.status == 200
    assert got.body == CONTENT
    for answer in (got, head):
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"] == "attachment"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-length"] == str(len(CONTENT))
        assert answer.headers["server"] == "aios-nb"
    assert head.body == b""


def test_other_bytes_than_the_name_says_are_refused(asked):
    put, got = asked(("PUT", PATH, CONTENT + b"x"), ("GET", PATH, b""))
    assert put.status == 400
    assert "hash" in put.json["error"]
    assert got.status == 404


def test_missing_and_forbidden_look_the_same(asked):
    _, forbidden, missing = asked(
        ("PUT", PATH, CONTENT),
        ("GET", PATH, b"", {}, "bridge-token"),
        ("GET", "/blobs/" + "0" * 64, b"", {}, "bridge-token"),
    )
    assert forbidden.status == missing.status == 404
    assert forbidden.body == missing.body
    differing = {"date"}
    assert {k: v for k, v in forbidden.headers.items() if k not in differing} == {
        k: v for k, v in missing.headers.items() if k not in differing
    }


def test_without_a_token_nothing_goes_in_or_out(asked):
    answers = asked(
        ("PUT", PATH, CONTENT),
        ("GET", PATH, b"", {}, None),
        ("HEAD", PATH, b"", {}, "wrong"),
        ("PUT", PATH, CONTENT, {}, ""),
    )
    assert [answer.status for answer in answers] == [200, 401, 401, 401]


@pytest.mark.parametrize(
    "name",
    ["x", "0" * 63, "0" * 65, "A" * 64, "../" + "0" * 61, "%2e%2e%2fetc", "0" * 64 + "/x", "é"],
)
def test_a_name_that_is_no_hash_is_not_found(asked, name):
    put, got = asked(("PUT", f"/blobs/{name}", b"x"), ("GET", f"/blobs/{name}", b""))
    assert put.status in (400, 404)
    assert got.status in (400, 404)


def chunked(content: bytes, size: int = 8192) -> bytes:
    parts = [content[at : at + size] for at in range(0, len(content), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def test_a_file_may_be_full_but_not_fuller(asked):
    full, over = b"x" * 100_000, b"x" * 100_001
    answers = asked(
        *(("PUT", f"/blobs/{hashlib.sha256(body).hexdigest()}", body) for body in (full, over)),
        ("GET", f"/blobs/{hashlib.sha256(over).hexdigest()}", b""),
    )
    assert [answer.status for answer in answers] == [200, 413, 404]


def test_a_file_without_a_length_is_counted_while_it_comes(serving):
    async def main():
        async with serving(limits=LIMITS) as site:
            codes = []
            for content in (b"x" * 100_000, b"x" * 150_000):
                sha = hashlib.sha256(content).hexdigest()
                head = (
                    f"PUT /blobs/{sha} HTTP/1.1\r\nHost: {site.host}\r\nConnection: close\r\n"
                    f"Authorization: Bearer {site.token}\r\nTransfer-Encoding: chunked\r\n\r\n"
                )
                answer = await site.raw(head.encode() + chunked(content))
                codes.append(int(answer.split(b" ", 2)[1]))
            return codes

    assert asyncio.run(main()) == [200, 413]


def test_a_full_store_says_when_to_come_back(asked):
    (answer,) = asked(("PUT", PATH, b"full"), real=False)
    assert answer.status == 503
    assert answer.headers["retry-after"] == "7"


def test_a_part_of_a_file_can_be_asked_for(asked):
    _, part = asked(("PUT", PATH, CONTENT), ("GET", PATH, b"", {"Range": "bytes=1-6"}))
    assert part.status == 206
    assert part.body == b"script"


def test_an_upload_that_stops_is_cut_off_and_leaves_nothing(serving, tmp_path):
    limits = Limits(body_wait_s=0.1, header_wait_s=0.1, refused_per_s=1e6)

    async def main():
        async with serving(limits=limits) as site:
            store = Store.open(tmp_path / "files.db")
            site.server._blobs._files = BlobStore(tmp_path / "blobs", store, limits)
            head = (
                f"PUT {PATH} HTTP/1.1\r\nHost: {site.host}\r\n"
                f"Authorization: Bearer {site.token}\r\nContent-Length: {len(CONTENT)}\r\n\r\n"
            )
            with contextlib.suppress(ConnectionError):
                await site.raw(head.encode() + CONTENT[:100])
            again = await site.http("GET", PATH)
            await store.close()
            return again.status, list((tmp_path / "blobs").iterdir())

    assert asyncio.run(main()) == (404, [])


def test_anyone_in_conformance_mode_cannot_use_files(serving):
    async def main():
        async with serving(conformance=True) as site:
            put = await site.http("PUT", PATH, CONTENT, token=None)
            return put.status, site.shelf.readers

    assert asyncio.run(main()) == (401, {})
