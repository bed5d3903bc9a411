"""A streamed reply is one message that grows, and ends as it should whatever happens before."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aios_bots.core.model import ChatKind, Rich
from aios_bots.core.spans import from_markdown, units
from aios_bots.core.splitting import MORE, PARTS_MAX, beginning, parts
from aios_bots.core.turn import EDIT_S, TYPING_S, Do, Step, Turn

PIECES = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.05, 0.4, 1.1, 6.0]),
        st.sampled_from(["a ", "and so on, ", "**bold** ", "**", "`x`", "🙂", "\n", "\n\n", "- ",
                         "```\n", "[l](https://a.example/and/more) ", "| a | b |\n|---|---|\n",
                         "word " * 12]),
    ),
    max_size=60,
)  # fmt: skip


class App:
    """A chat that does what a turn says, or refuses it, and notes what it showed."""

    def __init__(self, turn: Turn, refused: Iterable[bool] = ()) -> None:
        self.turn, self.now = turn, 0.0
        self.shown: list[Rich] = []
        self.files = 0
        self.calls: list[tuple[float, Step]] = []
        self._refused = iter(refused)

    def work(self, until: float | None = None) -> None:
        """Do all there is to do up to that time; without one until the turn is over."""
        while True:
            while (step := self.turn.step(self.now)) is not None:
                self._do(step)
            wait = self.turn.wait(self.now)
            if until is None and wait is None:
                return
            if until is not None and (wait is None or self.now + wait > until):
                self.now = until
                return
            assert wait is not None
            self.now += wait

    def _do(self, step: Step) -> None:
        self.calls.append((self.now, step))
        if step.do is Do.TYPING:
            return
        if next(self._refused, False):
            self.turn.failed(step, self.now)
            return
        match step.do:
            case Do.SEND:
                assert step.part == len(self.shown)
                self.shown.append(step.rich)
            case Do.EDIT:
                assert self.shown[step.part] != step.rich, "an edit that changes nothing"
                self.shown[step.part] = step.rich
            case Do.DELETE:
                assert step.part == len(self.shown) - 1
                self.shown.pop()
            case Do.FILE:
                self.files += 1
        self.turn.done(step, self.now)

    def count(self, do: Do) -> int:
        return sum(step.do is do for _, step in self.calls)


def played(pieces: list[tuple[float, str]], refused: Iterable[bool] = (), **settings) -> App:
    app = App(Turn(ChatKind.PRIVATE, 0.0, **settings), refused)
    for pause, piece in pieces:
        app.work(app.now + pause)
        app.turn.feed(piece, app.now)
        app.work(app.now)
    app.turn.end()
    app.work()
    return app


@settings(max_examples=100)
@given(PIECES, st.lists(st.booleans(), max_size=20), st.integers(60, 300))
def test_the_chat_ends_with_the_whole_reply(pieces, refused, limit: int) -> None:
    app = played(pieces, refused, limit=limit)
    assert app.turn.over
    wanted = parts(from_markdown("".join(piece for _, piece in pieces)), limit=limit)
    if not wanted.file:
        assert app.shown == list(wanted.messages)
        assert app.files == 0
    else:
        assert 1 <= len(app.shown) <= PARTS_MAX
        assert app.shown[-1].text.endswith(MORE)
        assert app.files == 1
    assert all(units(step.rich.text) <= limit for _, step in app.calls)


@settings(max_examples=100)
@given(PIECES)
def test_a_reply_that_fits_is_exactly_one_message(pieces) -> None:
    app = played(pieces)
    text = "".join(piece for _, piece in pieces)
    assert app.count(Do.SEND) == len(app.shown) == (1 if from_markdown(text).text.strip() else 0)
    assert app.count(Do.DELETE) == (0 if app.shown else app.count(Do.SEND))


@settings(max_examples=60)
@given(PIECES, st.sampled_from([ChatKind.PRIVATE, ChatKind.GROUP]))
def test_edits_keep_their_pace(pieces, kind: ChatKind) -> None:
    app = App(Turn(kind, 0.0))
    for pause, piece in pieces:
        app.work(app.now + pause)
        app.turn.feed(piece, app.now)
        app.work(app.now)
    times = [at for at, step in app.calls if step.do in {Do.SEND, Do.EDIT}]
    assert all(after - before > EDIT_S[kind] - 1e-6 for before, after in pairwise(times))


def test_the_first_words_are_shown_after_a_moment() -> None:
    app = App(Turn(ChatKind.PRIVATE, 0.0))
    app.turn.feed("Well", 0.0)
    app.work(5.0)
    sends = [(at, step.rich.text) for at, step in app.calls if step.do is Do.SEND]
    assert sends == [(0.7, "Well")]


def test_enough_words_are_shown_at_once() -> None:
    app = App(Turn(ChatKind.PRIVATE, 0.0))
    app.turn.feed("x" * 30, 0.0)
    app.work(0.0)
    assert app.shown == [Rich("x" * 30)]


def test_typing_is_shown_until_there_are_words() -> None:
    app = App(Turn(ChatKind.PRIVATE, 0.0))
    app.work(10.0)
    assert [at for at, _ in app.calls] == [0.0, TYPING_S, 2 * TYPING_S]
    app.turn.feed("x" * 30, 10.0)
    app.work(30.0)
    assert app.count(Do.TYPING) == 3


def test_styles_come_with_the_last_edit() -> None:
    app = played([(0.0, "**bold** and more than thirty characters"), (2.0, " of it, plainly said")])
    texts = [step for _, step in app.calls if step.do is not Do.TYPING]
    assert [bool(step.rich.spans) for step in texts] == [False, False, True]
    assert [step.final for step in texts] == [True, False, True]


def test_a_reply_without_styles_that_is_shown_already_needs_no_last_edit() -> None:
    app = played([(0.0, "nothing but plain words, and enough of them")])
    assert app.count(Do.SEND) == 1
    assert app.count(Do.EDIT) == 0


def test_few_new_characters_wait_for_more_but_not_for_ever() -> None:
    app = App(Turn(ChatKind.PRIVATE, 0.0))
    app.turn.feed("x" * 30, 0.0)
    app.work(0.0)
    app.turn.feed("yyy", 0.0)
    app.work(4.0)
    assert app.count(Do.EDIT) == 0
    app.work(6.0)
    assert app.shown == [Rich("x" * 30 + "yyy")]


def test_edits_are_rarer_while_the_chat_is_busy() -> None:
    turn = Turn(ChatKind.PRIVATE, 0.0)
    turn.feed("x" * 30, 0.0)
    first = turn.step(0.0)
    assert first is not None
    turn.done(first, 0.0)
    turn.feed("y" * 30, 0.0)
    assert turn.step(1.0, busy=True) is None
    assert turn.wait(1.0, busy=True) == pytest.approx(0.5)
    assert turn.step(1.5, busy=True) is not None


def test_a_message_that_is_outgrown_gets_its_styles_and_stays() -> None:
    line = "**some** words in a paragraph\n\n"
    app = played([(1.1, line) for _ in range(12)], limit=140)
    seen = [step for _, step in app.calls if step.part == 0 and step.do is not Do.TYPING]
    assert [step.final for step in seen][-1]
    opened = next(n for n, (_, step) in enumerate(app.calls) if step.do is Do.SEND and step.part)
    later = [step for _, step in app.calls[opened:] if step.part == 0]
    assert not later
    assert app.shown[0].spans


def test_one_call_at_a_time() -> None:
    turn = Turn(ChatKind.PRIVATE, 0.0)
    turn.feed("x" * 40, 0.0)
    step = turn.step(0.0)
    turn.end()
    assert turn.step(9.0) is None
    assert not turn.over
    assert step is not None
    turn.done(step, 9.0)
    assert turn.over


def test_the_last_edit_is_asked_for_until_it_is_done() -> None:
    turn = Turn(ChatKind.PRIVATE, 0.0)
    turn.feed("x" * 40, 0.0)
    first = turn.step(0.0)
    assert first is not None
    turn.done(first, 0.0)
    turn.end("**another** end")
    for now in range(1, 4):
        last = turn.step(float(now))
        assert last == Step(Do.EDIT, 0, from_markdown("**another** end"), final=True)
        turn.failed(last, float(now))
    turn.done(turn.step(5.0), 5.0)
    assert turn.over


def test_an_app_without_edits_gets_the_reply_when_it_is_complete() -> None:
    app = played([(1.0, "**some** words in a sentence. ")] * 20, limit=200, edits=False)
    assert app.count(Do.EDIT) == 0
    assert app.shown == list(parts(from_markdown(app.turn.text), limit=200).messages)
    assert len(app.shown) > 1


def test_a_flood_of_text_shows_its_beginning_first() -> None:
    text = "```\n" + "line\n" * 20_000 + "```"
    app = App(Turn(ChatKind.PRIVATE, 0.0))
    app.turn.feed(text, 0.0)
    app.work(0.0)
    whole = from_markdown(text)
    assert app.shown[0].text == beginning(whole, limit=4096, max_spans=100, most=1)[0].text
    app.turn.end()
    app.work()
    assert app.files == 1


def test_an_address_that_is_not_complete_yet_begins_no_second_message() -> None:
    app = App(Turn(ChatKind.PRIVATE, 0.0, limit=200))
    app.turn.feed("word " * 38 + "[l](https://a.example/a/long/way/to/go", 0.0)
    app.work(3.0)
    app.turn.feed(")", 3.0)
    app.turn.end()
    app.work()
    assert app.count(Do.SEND) == len(app.shown) == 1
    assert app.count(Do.DELETE) == 0
