"""What an agent may answer with."""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
import json
import math
from collections import namedtuple
from decimal import Decimal
from enum import Enum
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aios_nb.agents.outputs import SHOWN_JSON, Answer, as_data
from aios_nb.envelope import (
    DATA_LIMIT_BYTES,
    FILES_PER_MESSAGE,
    TEXT_LIMIT_BYTES,
    FileRef,
    Outcome,
)
from aios_nb.errors import AgentFailed, TooLarge
from aios_nb.parts import File, Reply


def answer(value) -> Answer:
    found = Answer()
    found.add(value)
    return found


class Color(Enum):
    RED = "red"


class Point(msgspec.Struct):
    x: int


@dataclasses.dataclass
class Place:
    name: str
    at: dt.date


Pair = namedtuple("Pair", "left right")  # noqa: PYI024


@pytest.mark.parametrize(
    ("value", "text", "data"),
    [
        ("hello", "hello", None),
        (None, "", None),
        ("", "", None),
        (3, "3", 3),
        (2.5, "2.5", 2.5),
        (True, "True", True),
        (2**100, str(2**100), 2**100),
        (math.nan, "nan", None),
        (math.inf, "inf", None),
        (Fraction(1, 3), "1/3", None),
        (Decimal("1.10"), "1.10", None),
        (1j, "1j", None),
        ({"a": 1}, '{"a":1}', {"a": 1}),
        ([], "[]", []),
        ({1: (2, {3})}, '{"1":[2,[3]]}', {"1": [2, [3]]}),
        ({"x": math.nan}, '{"x":null}', {"x": None}),
        ({"c": Color.RED, "at": dt.date(2025, 1, 2)}, '{"c":"red","at":"2025-01-02"}', None),
        (Point(3), '{"x":3}', {"x": 3}),
        (Place("here", dt.date(2025, 1, 2)), '{"name":"here","at":"2025-01-02"}', None),
        (Pair(1, "x"), '{"left":1,"right":"x"}', {"left": 1, "right": "x"}),
        (("said", {"a": 1}), "said", {"a": 1}),
        (("one", None, "two"), "one\ntwo", None),
        (("it is", 42), "it is", 42),
        (Reply("r", {"a": 1}), "r", {"a": 1}),
        (Outcome("o", [1]), "o", [1]),
    ],
)
def test_text_and_data(value, text, data):
    found = answer(value)
    assert found.text == text
    expected = json.loads(text) if data is None and text.startswith("{") else data
    assert found.data == expected


def test_files_stand_beside_text_and_data():
    ref = FileRef("old", "text/plain", 1, "0" * 64)
    file = File(b"x", name="x.txt")
    found = answer(("see", {"n": 1}, file, Reply(" more", None, (ref,))))
    assert found.text == "see\n more"
    assert found.files == [file, ref]


def test_the_files_of_a_public_reply_pass_through_by_their_reference():
    class Shown:
        ref = FileRef("old", "text/plain", 1, "0" * 64)

    assert answer(Reply("", None, (Shown(),))).files == [Shown.ref]


def test_long_data_is_cut_in_the_text_only():
    found = answer(["ü" * 5000])
    assert len(found.text) == SHOWN_JSON + 1
    assert found.text.endswith("…")
    assert len(found.data[0]) == 5000


@pytest.mark.parametrize(
    ("value", "said"), [(object(), "an object"), (b"x", "bytes"), (str, "a type")]
)
def test_what_cannot_be_sent_is_named_in_plain_words(value: object, said: str):
    with pytest.raises(AgentFailed, match=f"^the agent answered with {said}, which cannot be sent"):
        answer(value)


def test_half_a_surrogate_pair_does_not_break_the_wire():
    found = answer("a\ud800b")
    assert found.text == "a?b"
    with pytest.raises(AgentFailed, match="cannot be sent as JSON"):
        answer({"a": "\ud800"})


@pytest.mark.parametrize(
    ("value", "kind", "hint"),
    [
        (b"x", "bytes", "aios.File"),
        ({1}, "set", "return text"),
        (object(), "object", "return text"),
        (dt.date(2025, 1, 1), "datetime.date", "return text"),
        (lambda: 0, "function", "return text"),
        (io.BytesIO(), "BytesIO", "return text"),
    ],
)
def test_anything_else_is_refused_by_its_name(value, kind, hint):
    with pytest.raises(AgentFailed) as told:
        answer(value)
    assert kind in told.value.message
    assert hint in str(told.value.hint)


def test_what_json_cannot_carry_is_one_line():
    loop: list = []
    loop.append(loop)
    for wrong in (loop, {(1, 2): 3}, {"a": object()}, [File(b"x")]):
        with pytest.raises(AgentFailed) as told:
            answer(wrong)
        assert "\n" not in str(told.value)


def test_data_is_given_once():
    with pytest.raises(AgentFailed, match="data twice"):
        answer(({"a": 1}, {"b": 2}))


def test_a_generators_numbers_are_text():
    found = Answer()
    assert [found.add_piece(n) for n in (1, 2.5, "x", None)] == ["1", "2.5", "x", ""]
    assert (found.text, found.data) == ("12.5x", None)


def test_text_may_have_1_mb_of_utf8_and_not_a_byte_more():
    assert len(answer("x" * TEXT_LIMIT_BYTES).text) == TEXT_LIMIT_BYTES
    for wrong in ("x" * (TEXT_LIMIT_BYTES + 1), "ü" * (TEXT_LIMIT_BYTES // 2 + 1)):
        with pytest.raises(TooLarge, match="1 MB of text"):
            answer(wrong)


def test_data_may_have_1_mb_of_json_and_not_a_byte_more():
    fits = "x" * (DATA_LIMIT_BYTES - 4)
    assert answer([fits]).data == [fits]
    with pytest.raises(TooLarge, match="1 MB fit"):
        answer([fits + "x"])
    with pytest.raises(TooLarge):
        as_data([fits + "x"])


def test_a_reply_may_have_16_files():
    files = tuple(File(b"x") for _ in range(FILES_PER_MESSAGE))
    assert len(answer(files).files) == FILES_PER_MESSAGE
    with pytest.raises(TooLarge, match="16 files"):
        answer((*files, File(b"x")))


def test_a_matplotlib_figure_becomes_a_png_and_is_closed():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    axes.plot([1, 2])
    file = answer(figure).files[0]
    assert file.content.startswith(b"\x89PNG")
    assert (file.name, file.mime) == ("figure.png", "image/png")
    assert figure.number not in plt.get_fignums()
    assert answer(("the axes", plt.subplots()[1])).files[0].content.startswith(b"\x89PNG")
    assert not plt.get_fignums()


def test_a_pil_image_becomes_a_png():
    image = pytest.importorskip("PIL.Image")
    for mode in ("RGB", "CMYK", "L"):
        file = answer(image.new(mode, (2, 2))).files[0]
        assert file.content.startswith(b"\x89PNG")


def test_a_plotly_figure_that_cannot_be_drawn_says_what_is_missing():
    class Figure:
        __module__ = "plotly.graph_objs"

        def to_image(self, format):  # noqa: A002 - plotly's name
            raise ValueError("needs kaleido")

    with pytest.raises(AgentFailed, match="could not be drawn") as told:
        answer(Figure())
    assert "kaleido" in told.value.hint


def test_a_pydantic_model_is_data():
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):
        at: dt.date

    assert answer(Model(at=dt.date(2025, 1, 2))).data == {"at": "2025-01-02"}


def test_numpy_numbers_and_arrays_are_data():
    np = pytest.importorskip("numpy")
    assert answer(np.int64(3)).data == 3
    assert answer(np.float64(2.5)).data == 2.5
    assert answer(np.bool_(True)).data is True
    assert answer(np.array([[1, 2]])).data == [[1, 2]]
    assert answer({"a": np.float32(0.5), "b": np.array([1.0, np.nan])}).data == {
        "a": 0.5,
        "b": [1.0, None],
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), json_values) | st.lists(json_values))
def test_data_looks_the_same_here_and_after_a_journey(value):
    data = answer(value).data
    assert msgspec.json.decode(msgspec.json.encode(data)) == data


@given(st.lists(st.text(st.characters()), max_size=20))
def test_streamed_text_and_final_text_are_the_same(pieces):
    found = Answer()
    streamed = "".join(found.add_piece(piece) for piece in pieces)
    assert streamed == found.text
    found.text.encode()
