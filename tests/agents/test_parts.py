"""Files and replies."""

from __future__ import annotations

import pytest

from aios_nb.envelope import FileRef, Outcome
from aios_nb.errors import TooLarge, UsageError
from aios_nb.parts import FILE_LIMIT_BYTES, File, Reply, read_files


def test_a_file_from_a_path_is_read_at_once(tmp_path):
    path = tmp_path / "plot.png"
    path.write_bytes(b"before")
    file = File(path)
    path.write_bytes(b"after")
    assert (file.content, file.name, file.mime) == (b"before", "plot.png", "image/png")
    assert File(str(path), name="other.txt").mime == "text/plain"


def test_a_file_from_bytes_has_a_name_that_fits():
    assert File(b"x").name == "file.bin"
    assert File(b"x").mime == "application/octet-stream"
    assert File(b"x", mime="image/png").name == "file.png"
    assert File(bytearray(b"x"), name="a.csv").mime == "text/csv"


def test_a_file_that_cannot_be_is_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*/nothing\.txt: No such file"):
        File(tmp_path / "nothing.txt")
    with pytest.raises(UsageError, match="cannot read"):
        File(tmp_path)
    with pytest.raises(UsageError, match="not int"):
        File(3)


def test_files_are_given_as_a_list_or_one_by_itself(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a")
    for one in (path, str(path), File(path), File(b"a", name="a.txt")):
        for given in (one, [one], (each for each in [one])):
            (file,) = read_files(given)
            assert (file.name, file.content) == ("a.txt", b"a")
    assert [file.content for file in read_files([path, b"b"])] == [b"a", b"b"]
    assert read_files(b"b")[0].content == b"b"
    assert read_files(()) == []
    for wrong in (3, None):
        with pytest.raises(UsageError, match="made from a path or bytes"):
            read_files(wrong)


def test_a_file_may_have_20_mb_and_not_a_byte_more(tmp_path):
    assert len(File(bytes(FILE_LIMIT_BYTES)).content) == FILE_LIMIT_BYTES
    with pytest.raises(TooLarge, match="20 MB"):
        File(bytes(FILE_LIMIT_BYTES + 1), name="big")
    path = tmp_path / "big"
    with path.open("wb") as out:
        out.truncate(FILE_LIMIT_BYTES + 1)
    with pytest.raises(TooLarge, match="20 MB"):
        File(path)


def test_a_reply_is_a_str_with_more():
    ref = FileRef("a", "b", 1, "c")
    reply = Reply.of(Outcome("hello", {"x": 1}, (ref,)))
    assert reply == "hello"
    assert (reply.data, reply.files) == ({"x": 1}, (ref,))


def test_a_reply_becomes_a_table():
    pytest.importorskip("pandas")
    table = {"columns": ["a", "b"], "rows": [[1, None], [2, "x"]]}
    frame = Reply("", table).df()
    assert list(frame.columns) == ["a", "b"]
    assert frame["a"].tolist() == [1, 2]
    assert Reply("", [{"a": 1}, {"a": 2}]).df()["a"].tolist() == [1, 2]
    for data in (None, 3, "x", {}, {"a": 1}):
        with pytest.raises(UsageError, match="no table"):
            Reply("", data).df()
