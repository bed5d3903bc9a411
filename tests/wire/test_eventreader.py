"""Events as they arrive: cut anywhere, with any line ends, never more than was meant."""

from __future__ import annotations

import pytest

from aios_nb.wire.eventreader import Event, EventReader, TooLong

STREAM = (
    b'data: {"a":1}\n\n: still here\n\nevent: x\nid: 3\ndata: one\ndata:two\n\n'
    b"retry: 50\nid: 4\ndata\n\nretry: soon\n\ndata: end\n\ndata: unfinished\n"
)
EVENTS = [
    Event(b'{"a":1}', None, None),
    Event(b"one\ntwo", "3", None),
    Event(b"", "4", 50),
    Event(b"end", None, None),
]


def read(*pieces: bytes) -> list[Event]:
    reader = EventReader(1000)
    return [event for piece in pieces for event in reader.feed(piece)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_events_cut_at_any_byte_are_read_the_same(end):
    stream = STREAM.replace(b"\n", end)
    for cut in range(len(stream) + 1):
        assert read(stream[:cut], stream[cut:]) == EVENTS
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == EVENTS


@pytest.mark.parametrize("piece", [b"data: 3456789\n", b"data: 345", b"x"])
def test_an_event_that_does_not_end_is_given_up(piece):
    reader = EventReader(100)
    with pytest.raises(TooLong):
        all(reader.feed(piece) == [] for _ in range(1000))


def test_a_stream_may_go_on_for_ever():
    reader = EventReader(100)
    told = sum(len(reader.feed(b": still here\n\ndata: 1\n\n")) for _ in range(1000))
    assert told == 1000
