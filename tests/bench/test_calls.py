from __future__ import annotations

from aios_nb.bench.calls import Echo, Events, Serials
from aios_nb.bench.tokens import CHUNK_BYTES, EVENT_BYTES, TASK, TASK_BYTES, chunk, event


def data(salt: str, number: int) -> bytes:
    return event(salt, number)[6:-2]


def test_a_number_leads_back_to_its_slot_and_never_comes_twice() -> None:
    serials = Serials(3)
    given = [(slot, serials.next(slot)) for _ in range(4) for slot in range(3)]
    assert all(number % 3 == slot for slot, number in given)
    assert len({number for _, number in given}) == len(given)


def test_an_echo_must_be_of_the_last_thing_sent() -> None:
    call = Echo(1)
    first, second = call.request(0), call.request(0)
    assert call.reply(0, second) is None
    assert "another text" in (call.reply(0, first) or "")


def test_events_are_checked_for_number_text_and_place() -> None:
    call = Events(1, chunks=3)

    def answered_by(*numbers: int) -> str | None:
        _, salt = call.request(0).decode().split()
        for number in numbers:
            call.piece(0, data(salt, number))
        return call.end(0)

    assert answered_by(0, 1, 2) is None
    assert answered_by(0, 1) == "2 events of 3"
    assert answered_by(0, 1, 2, 3) == "4 events of 3"
    assert (answered_by(0, 2, 1) or "").startswith("event 1 was")


def test_texts_have_the_sizes_that_the_method_names() -> None:
    for number in (1, 99_999):
        assert len(TASK % number) == TASK_BYTES
        assert len(chunk(str(number), number)) == CHUNK_BYTES
        assert len(event(str(number), number)) == EVENT_BYTES
