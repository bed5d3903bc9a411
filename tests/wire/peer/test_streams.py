"""Messages arrive whole and in order, within the credit their readers gave, however they mix."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aios_nb.wire.peer.frames import (
    BYE,
    CREDIT,
    END,
    MESSAGE,
    PIECE,
    PIECED_MAX,
    PING,
    PONG,
    Ready,
    Violation,
    credit,
    head,
    split,
)
from aios_nb.wire.peer.streams import Full, Stream, Streams

TERMS = Ready(credit=4000, frame=1021, message=20_000, streams=8)
PIECE_BYTES = TERMS.piece_bytes
ALL = 1 << 30


def two(terms: Ready = TERMS) -> tuple[Streams, Streams]:
    return Streams(terms, terms, dialled=True), Streams(terms, terms, dialled=False)


def deliver(frames: Iterable[bytes], to: Streams) -> list[tuple[Stream, bytes | None]]:
    """What a side hears of these frames."""
    heard = []
    for frame in frames:
        number, kind = split(frame)
        got = to.receive(number, kind, frame)
        if got is not None:
            heard.append(got)
    return heard


def settle(a: Streams, b: Streams) -> list[tuple[Stream, bytes | None]]:
    """Carry frames both ways until nothing moves."""
    heard = []
    while a.pending or b.pending:
        heard += deliver(a.take(ALL), b)
        heard += deliver(b.take(ALL), a)
    return heard


class End:
    """One side with what was asked of it and what it holds unread."""

    def __init__(self, streams: Streams, *, lazy: bool) -> None:
        self.streams = streams
        self.lazy = lazy
        """Its readers take nothing by themselves."""
        self.wire: deque[bytes] = deque()
        """On the way to the other side."""
        self.asked: dict[int, bytes] = {}
        self.got: dict[int, list[bytes]] = defaultdict(list)
        self.unread: deque[tuple[Stream, bytes, int]] = deque()
        self.to_answer: deque[Stream] = deque()
        self.requests: dict[int, bytes] = {}

    def hear(self, frame: bytes) -> None:
        number, kind = split(frame)
        got = self.streams.receive(number, kind, frame)
        if got is None:
            return
        stream, body = got
        assert body is not None
        if stream.ours:
            self.unread.append((stream, body, self.streams.hold(stream)))
            if not self.lazy:
                self.read()
        else:
            assert number not in self.requests
            self.requests[number] = body
            self.to_answer.append(stream)

    def read(self) -> None:
        stream, body, cost = self.unread.popleft()
        self.got[stream.number].append(body)
        self.streams.took(stream, cost)

    def check_bounds(self) -> None:
        held: dict[Stream, int] = defaultdict(int)
        for stream, body, _ in self.unread:
            held[stream] += len(body)
        partial = 0
        for stream in self.streams.all():
            assert 0 <= stream.window <= TERMS.credit
            assert stream.credit >= 0
            partial += stream.parts is not None
            most = TERMS.credit + 2 * TERMS.message
            assert held[stream] + len(stream.parts or b"") <= most
        assert partial <= PIECED_MAX


steps = st.lists(
    st.tuples(
        st.sampled_from(["ask", "answer", "carry", "carry", "carry", "read", "take", "take"]),
        st.booleans(),
        st.integers(0, 12_000),
    ),
    max_size=80,
)


@given(steps, st.booleans(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_mix_arrives_whole_and_in_order(  # noqa: C901, PLR0912
    plan, a_is_lazy, b_is_lazy
):
    a, b = (
        End(streams, lazy=lazy) for streams, lazy in zip(two(), (a_is_lazy, b_is_lazy), strict=True)
    )
    sent: dict[tuple[bool, int], list[bytes]] = defaultdict(list)
    opened: dict[bool, list[tuple[Stream, bytes]]] = {True: [], False: []}
    count = 0
    for what, first, size in plan:
        here, there = (a, b) if first else (b, a)
        match what:
            case "ask":
                count += 1
                body = b"%d:" % count + b"q" * size
                try:
                    opened[first].append((here.streams.open(body, None), body))
                except Full:
                    assert here.streams.open_ours == TERMS.streams
            case "answer" if here.to_answer:
                stream = here.to_answer[0]
                count += 1
                body = b"%d:" % count + b"a" * size
                last = size % 3 == 0
                sent[not first, stream.number].append(body)
                here.streams.send(stream, body, last=last)
                if last:
                    here.to_answer.popleft()
            case "take":
                here.wire += here.streams.take(size)
            case "carry" if here.wire:
                there.hear(here.wire.popleft())
            case "read" if here.unread:
                here.read()
        a.check_bounds()
        b.check_bounds()

    a.lazy = b.lazy = False
    while a.streams.pending or b.streams.pending or a.wire or b.wire or a.unread or b.unread:
        for here, there in ((a, b), (b, a)):
            here.wire += here.streams.take(ALL)
            while here.wire:
                there.hear(here.wire.popleft())
            while here.unread:
                here.read()

    for first, end, other in ((True, a, b), (False, b, a)):
        for stream, body in opened[first]:
            assert stream.number, "a request that never left"
            assert other.requests[stream.number] == body
            assert end.got[stream.number] == sent[first, stream.number]
    assert a.streams.queued_bytes == b.streams.queued_bytes == 0


def test_numbers_rise_in_the_order_in_which_streams_begin():
    a, b = two()
    long = [a.open(b"x" * 10_000, None) for _ in range(PIECED_MAX + 2)]
    short = a.open(b"short", None)

    heard = settle(a, b)

    assert len(heard) == len(long) + 1
    assert short.number < long[-1].number
    assert sorted(stream.number for stream in (*long, short)) == [1, 3, 5, 7, 9, 11, 13]


def test_a_stream_without_credit_sends_nothing_until_its_reader_took_something():
    a, b = two()
    a.open(b"?", None)
    [(asked, _)] = deliver(a.take(ALL), b)
    for _ in range(10):
        b.send(asked, b"x" * 900)
    heard = deliver(b.take(ALL), a)
    kept = [(stream, a.hold(stream)) for stream, _ in heard]

    assert len(heard) == 4, "what the credit of 4000 bytes holds"
    assert not b.pending
    for stream, cost in kept:
        a.took(stream, cost)
    deliver(a.take(ALL), b)
    assert b.pending


def test_a_long_reply_does_not_hold_up_short_ones():
    a, b = two()
    for size in (b"long", b"short"):
        a.open(size, None)
    (long, _), (short, _) = deliver(a.take(ALL), b)
    b.send(long, b"x" * 3900, last=True)
    b.send(short, b"y", last=True)

    kinds = [(split(frame)) for frame in b.take(ALL)]

    assert kinds.index((short.number, MESSAGE)) == 1


def test_control_frames_go_first():
    a, _ = two()
    a.open(b"x" * 3000, None)
    a.ping(b"12345678")
    a.pong(b"abcdefgh")

    frames = a.take(1)

    assert [split(frame)[1] for frame in frames] == [PING, PONG, PIECE]
    assert a.pending


def test_only_the_last_ping_is_answered():
    a, _ = two()
    for stamp in (b"00000001", b"00000002"):
        a.pong(stamp)

    assert a.take(ALL) == [head(0, PONG) + b"00000002"]


def test_a_goodbye_comes_after_what_was_asked_before():
    a, b = two()
    streams = [a.open(b"x" * 9000, None) for _ in range(PIECED_MAX + 1)]
    a.bye("replaced")
    order = []
    while a.pending or b.pending:
        frames = a.take(1500)
        order += [split(frame) for frame in frames]
        deliver([frame for frame in frames if split(frame)[1] != BYE], b)
        deliver(b.take(ALL), a)

    begins = [order.index(next(o for o in order if o[0] == s.number)) for s in streams]
    assert order.index((0, BYE)) > max(begins)


def test_a_stream_that_is_given_up_before_it_began_is_not_mentioned():
    a, b = two()
    a.end(a.open(b"never mind", None))
    kept = a.open(b"do", None)

    assert [(s.number, body) for s, body in settle(a, b)] == [(kept.number, b"do")]
    assert (a.open_ours, b.open_theirs) == (1, 1)


def test_a_stream_that_is_given_up_half_way_frees_its_place():
    a, b = two()
    long = [a.open(b"x" * 15_000, None) for _ in range(PIECED_MAX)]
    waiting = a.open(b"y" * 15_000, None)
    deliver(a.take(PIECED_MAX * PIECE_BYTES), b)
    a.end(long[0])

    whole = [(stream.number, body) for stream, body in settle(a, b) if body is not None]

    assert (waiting.number, b"y" * 15_000) in whole
    assert len(whole) == PIECED_MAX


def test_the_other_side_hears_that_nobody_listens():
    a, b = two()
    stream = a.open(b"?", None)
    [(asked, _)] = settle(a, b)
    b.send(asked, b"x" * 9000)
    a.end(stream)

    assert settle(a, b) == [(asked, None)]
    assert asked.gone
    assert b.queued_bytes == 0
    b.send(asked, b"too late", last=True)
    assert not b.pending


def test_late_frames_of_a_stream_that_was_given_up_are_dropped():
    a, b = two()
    stream = a.open(b"?", None)
    [(asked, _)] = settle(a, b)
    b.send(asked, b"!", last=True)
    late = b.take(ALL)
    a.end(stream)

    assert deliver(late, a) == []


def test_no_more_streams_than_the_other_side_takes():
    a, b = two()
    streams = [a.open(b"?", None) for _ in range(TERMS.streams)]
    with pytest.raises(Full):
        a.open(b"?", None)
    for stream, _ in settle(a, b):
        b.send(stream, b"!", last=True)
    for stream, _ in settle(a, b):
        a.close(stream)

    assert a.open(b"?", None).number > streams[-1].number


def test_a_notification_leaves_no_stream_open():
    a, b = two()
    a.open(b"by the way", None, last=True)
    [(said, _)] = settle(a, b)
    b.close(said)

    assert a.idle
    assert b.idle


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        ([head(2, MESSAGE) + b"x"], "an answer to nothing"),
        ([head(0, MESSAGE) + b"x"], "the link itself"),
        ([head(1, CREDIT) + b"\0\0\0\1"], "begins with a message"),
        ([head(1, END)], "begins with a message"),
        ([head(1, MESSAGE) + b"x", head(1, MESSAGE) + b"x"], "more than was let in"),
        ([head(1, MESSAGE) + b"x", head(1, PIECE) + b"x"], "more than was let in"),
        ([head(1, MESSAGE) + b"x" * 4001], "more than was let in"),
        ([head(1, PIECE) + b"x" * 3999, head(1, PIECE) + b"x" * 2001], "more than was let in"),
        ([head(1, PIECE)], "an empty piece"),
        ([head(1, PIECE) + b"x", head(1, PIECE)], "an empty piece"),
        ([head(n, PIECE) + b"x" for n in (1, 3, 5, 7, 9)], "too many messages in pieces"),
        ([head(n, MESSAGE) + b"x" for n in range(1, 19, 2)], "too many streams"),
        ([head(1, MESSAGE) + b"x", head(1, CREDIT) + b"\0"], "four bytes"),
        ([head(1, MESSAGE) + b"x", credit(1, 0xFFFFFFFF)], "more credit than"),
        ([head(1, MESSAGE) + b"x", head(1, PING) + b"12345678"], "for the link"),
        ([head(1, PIECE) + b"x" * 1000] * 21, "too long"),
    ],
)
def test_who_breaks_the_rules_is_found_out(frames, why):
    _, b = two()
    with pytest.raises(Violation, match=why):
        deliver(frames, b)


def test_a_number_that_was_used_is_not_used_again():
    _, b = two()
    deliver([head(5, MESSAGE) + b"x"], b)

    assert deliver([head(3, MESSAGE) + b"late", head(5, CREDIT) + b"\0\0\0\1"], b) == []
    assert b.open_theirs == 1


def test_a_side_that_begins_without_credit_to_finish_gets_no_more():
    """What it could make us hold is one window more than what its reader left unread."""
    a, b = two()
    a.open(b"?", None)
    deliver(a.take(ALL), b)
    held = 0

    def fill() -> None:
        nonlocal held
        for stream, body in deliver([head(1, MESSAGE) + b"x" * 500], a):
            held += len(body or b"")
            a.hold(stream)
            a.take(ALL)

    for _ in range(TERMS.credit // 500):
        fill()
    with pytest.raises(Violation, match="more than was let in"):
        fill()
    assert held == TERMS.credit


# Asked and answered at once ------------------------------------------------------------


def test_a_short_request_is_answered_without_a_stream():
    a, b = two()
    asked = a.open(b"?", None)
    [frame] = a.take(ALL)

    assert b.request(asked.number, frame) == b"?"
    assert b.prompt(asked.number, b"!")
    assert b.idle is False
    assert [(s, body) for s, body in deliver(b.take(ALL), a)] == [(asked, b"!")]
    assert b.idle
    assert b.request(asked.number, frame) is None, "a number is used once"


def test_an_answer_that_is_long_or_must_wait_takes_a_stream():
    a, b = two()
    asked = [a.open(b"?", None) for _ in range(2)]
    for stream, frame in zip(asked, a.take(ALL), strict=True):
        assert b.request(stream.number, frame) == b"?"

    assert not b.prompt(asked[0].number, b"x" * (PIECE_BYTES + 1))
    b.send(b.adopt(asked[0].number), b"x" * 9000, last=True)
    b.stalled = True
    assert not b.prompt(asked[1].number, b"!")
    b.send(b.adopt(asked[1].number), b"!", last=True)

    assert sorted(len(body or b"") for _, body in settle(a, b)) == [1, 9000]
    assert b.idle


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        ([head(1, MESSAGE) + b"x" * 4001], "more than was let in"),
        ([head(n, MESSAGE) + b"x" for n in range(1, 19, 2)], "too many streams"),
    ],
)
def test_the_rules_hold_for_short_requests_too(frames, why):
    _, b = two()

    def hear() -> None:
        for frame in frames:
            assert b.request(split(frame)[0], frame) is not None
            b.adopt(split(frame)[0])

    with pytest.raises(Violation, match=why):
        hear()


def test_what_opens_no_stream_is_no_request():
    a, b = two()
    stream = a.open(b"?", None)
    a.take(ALL)

    assert a.request(stream.number, head(stream.number, MESSAGE) + b"!") is None
    assert b.request(0, head(0, MESSAGE) + b"!") is None
    assert b.request(2, head(2, MESSAGE) + b"!") is None


def test_long_messages_for_slow_readers_do_not_keep_the_places_of_others():
    a, b = two()
    for _ in range(PIECED_MAX + 1):
        a.open(b"?", None)
    *slow, quick = [stream for stream, _ in deliver(a.take(ALL), b)]
    for stream in slow:
        for _ in range(3):
            b.send(stream, b"x" * 900)
    for stream, _ in deliver(b.take(ALL), a):
        a.hold(stream)  # and nobody takes it
    for stream in (*slow, quick):
        b.send(stream, b"y" * 9000, last=True)

    assert [len(body or b"") for _, body in settle(a, b)] == [9000]
