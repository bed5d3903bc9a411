"""DataFrames become plain data and a readable table."""

from __future__ import annotations

import datetime as dt

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aios_nb.agents.outputs import Answer
from aios_nb.agents.tables import frame_data, table_text
from aios_nb.errors import TooLarge

pd = pytest.importorskip("pandas")


def answer(value) -> Answer:
    found = Answer()
    found.add(value)
    return found


def test_every_kind_of_cell_becomes_plain():
    frame = pd.DataFrame(
        {
            "n": [1, 2],
            "f": [1.5, float("nan")],
            "t": pd.to_datetime(["2025-01-02", None]),
            "s": ["x", None],
            "b": [True, False],
            "i": pd.array([1, None], dtype="Int64"),
            "o": [{"k": {1}}, dt.date(2025, 1, 2)],
            "d": pd.to_timedelta(["1h", None]),
            "c": pd.Categorical(["a", "b"]),
        }
    )
    table = answer(frame).data
    assert table["columns"] == ["n", "f", "t", "s", "b", "i", "o", "d", "c"]
    assert table["rows"] == [
        [1, 1.5, "2025-01-02T00:00:00", "x", True, 1, {"k": [1]}, "P0DT1H0M0S", "a"],
        [2, None, None, None, False, None, "2025-01-02", None, "b"],
    ]
    assert msgspec.json.decode(msgspec.json.encode(table)) == table


def test_row_numbers_are_dropped_and_an_index_that_says_something_stays():
    frame = pd.DataFrame({"v": [1, 2, 3]})
    assert frame_data(frame[frame.v > 1])["columns"] == ["v"]
    assert frame_data(frame.set_index(pd.Index(["a", "b", "c"], name="key"))) == {
        "columns": ["key", "v"],
        "rows": [["a", 1], ["b", 2], ["c", 3]],
    }
    assert frame_data(frame.describe())["columns"] == ["index", "v"]
    levels = pd.MultiIndex.from_tuples([("a", 1), ("b", 2), ("c", 3)], names=["x", None])
    assert frame_data(frame.set_index(levels))["columns"] == ["x", "index", "v"]


def test_odd_columns_keep_their_place():
    frame = pd.DataFrame([[1, 2]], columns=["same", "same"])
    assert frame_data(frame) == {"columns": ["same", "same"], "rows": [[1, 2]]}
    wide = pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")]))
    assert frame_data(wide)["columns"] == ["a b"]


def test_an_empty_frame_is_a_table_too():
    assert answer(pd.DataFrame({"a": []})).data == {"columns": ["a"], "rows": []}
    assert "without columns" in answer(pd.DataFrame()).text


def test_a_series_is_a_table_of_one_column():
    assert answer(pd.Series([1], name="v")).data == {"columns": ["v"], "rows": [[1]]}


def test_the_text_shows_the_first_rows_and_says_how_many_more():
    text = answer(pd.DataFrame({f"c{n}": range(25) for n in range(12)})).text
    lines = text.splitlines()
    assert len(lines) == 2 + 10 + 2
    assert lines[0].startswith("| c0")
    assert lines[-1] == "… 15 more rows, 2 more columns"


def test_a_cell_cannot_break_the_table():
    text = table_text(["a|b"], [["x\ny|z" + "w" * 100]])
    assert text.splitlines()[2].startswith("| x y\\|zw")
    assert len(text.splitlines()) == 3


def test_a_table_that_cannot_fit_is_refused_before_it_is_converted():
    with pytest.raises(TooLarge, match="600000 rows"):
        answer(pd.DataFrame({"a": range(600_000)}))
    with pytest.raises(TooLarge, match="1 MB fit"):
        answer(pd.DataFrame({"a": ["x" * 1000] * 1100}))


def test_a_frame_inside_data_is_a_table():
    assert answer({"t": pd.DataFrame({"a": [1]})}).data == {"t": {"columns": ["a"], "rows": [[1]]}}


cells = st.one_of(
    st.none(), st.integers(), st.floats(), st.text(max_size=5), st.booleans(), st.datetimes()
)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(cells, cells), max_size=8))
def test_any_frame_travels(rows):
    found = answer(pd.DataFrame(rows, columns=["a", "b"]))
    assert len(found.data["rows"]) == len(rows)
    assert msgspec.json.decode(msgspec.json.encode(found.data)) == found.data
    found.text.encode()
