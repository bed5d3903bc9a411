"""The files of an answer, on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aios_nb.client import SiteClient, get_file
from aios_nb.errors import UsageError

_NAMES_MAX = 1000


async def save_files(
    client: SiteClient, files: Sequence[Mapping[str, Any]], folder: Path
) -> list[Path]:
    """Download into ``folder``; a file that is there already is never replaced."""
    from aios_nb.blobs import safe_name

    return [
        _write_new(folder / safe_name(file["name"]), await get_file(client, file)) for file in files
    ]


def _write_new(path: Path, content: bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _write_beside(path, content)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def _write_beside(path: Path, content: bytes) -> Path:
    for number in range(1, _NAMES_MAX):
        name = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        try:
            with name.open("xb") as out:
                out.write(content)
        except FileExistsError:
            continue
        return name
    raise UsageError(f"there are too many files like {path}", hint="choose another --save DIR")
