from __future__ import annotations

import pytest

from aios_nb.bench.events import EventParser

STREAM = (
    b'data: {"a":1}\n\n: still here\n\nevent: x\nid: 3\ndata: one\ndata:two\n\n'
    b"data:\n\ndata: end\n\n"
)
EXPECTED = [b'{"a":1}', b"one\ntwo", b"", b"end"]


def read(*pieces: bytes) -> list[bytes]:
    found: list[bytes] = []
    parser = EventParser(found.append)
    for piece in pieces:
        parser.feed(piece)
    return found


@pytest.mark.parametrize("stream", [STREAM, STREAM.replace(b"\n", b"\r\n")])
def test_events_cut_at_any_byte_are_read_the_same(stream: bytes) -> None:
    for cut in range(len(stream) + 1):
        assert read(stream[:cut], stream[cut:]) == EXPECTED
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == EXPECTED


def test_an_unfinished_event_is_not_reported() -> None:
    assert read(b"data: a\n\ndata: b\n") == [b"a"]
