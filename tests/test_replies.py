"""What an agent answered, in somebody's hands."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aios_nb.envelope import FileRef
from aios_nb.errors import UsageError
from aios_nb.replies import ReplyFile

CONTENT = bytes(range(256)) * 1000


@contextmanager
def little_room() -> Iterator[None]:
    """Inside, the system writes the beginning of a file and no more, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(CONTENT) // 2, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_that_could_not_be_written_whole_is_not_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReplyFile, "read", lambda _: CONTENT)
    file = ReplyFile(FileRef("a.bin", "application/octet-stream", len(CONTENT), "0" * 64), None)
    with little_room(), pytest.raises(UsageError, match="cannot be written"):
        file.save(tmp_path)

    assert list(tmp_path.iterdir()) == []
    assert file.save(tmp_path).read_bytes() == CONTENT
