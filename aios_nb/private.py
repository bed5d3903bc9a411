"""Files that only their owner can read: written whole or not at all, refused when others see them.

Keys and run files are such files. Nothing here knows what is in them.
"""

from __future__ import annotations

import errno
import os
import secrets
import shlex
import stat
from pathlib import Path

from aios_nb.errors import HomeError

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = 0o077
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


def read_private(path: Path, *, limit_bytes: int) -> bytes:
    """The content of a file that is ours alone. ``FileNotFoundError`` if there is none."""
    try:
        # Non-blocking, so that a pipe under this name is refused below and not waited for.
        fd = os.open(path, _READ_FLAGS)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise HomeError(f"{path} cannot be read: {error.strerror}") from error
    if stat.S_ISDIR(os.fstat(fd).st_mode):  # cannot even be opened as a file, and would stay open
        os.close(fd)
        raise HomeError(f"{path} is not a plain file", hint="move it away")
    with os.fdopen(fd, "rb", closefd=True) as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise HomeError(f"{path} is not a plain file", hint="move it away")
        if found.st_uid != os.geteuid():
            raise HomeError(f"{path} belongs to another user", hint="change its owner")
        if found.st_mode & _OTHERS:
            raise HomeError(f"{path} can be read or changed by other users", hint=_fix(path))
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise HomeError(f"{path} is longer than {limit_bytes} bytes", hint="move it away")
    return content


def replace_private(path: Path, content: bytes) -> None:
    """Publish ``content`` under ``path`` in one step; readers see the old file or the new one."""
    part = path.with_name(f".{path.name}.part")
    try:
        # The only writer holds a lock, so a part left by a killed process may go.
        part.unlink(missing_ok=True)
        _write_new(part, content, durable=False)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise HomeError(f"{path} cannot be written: {error.strerror}") from error


def create_private(path: Path, content: bytes) -> bool:
    """Put a new file on the disk for good; false, and nothing changed, if there is one already."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        try:
            _write_new(part, content, durable=True)
            created = _publish_new(part, path)
        finally:
            part.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise HomeError(
            f"{path} cannot be written: {error.strerror}",
            hint="AIOS_HOME may name another folder",
        ) from error
    return created


def own_folder(path: Path) -> None:
    """Make ``path`` a folder that only we can enter, or say why it cannot be."""
    try:
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        found = path.stat()
        if found.st_uid != os.geteuid():
            raise HomeError(
                f"{path} belongs to another user",
                hint="run as that user, or set AIOS_HOME to a folder of your own",
            )
        if stat.S_IMODE(found.st_mode) & 0o777 != FOLDER_MODE:
            path.chmod(FOLDER_MODE)
            found = path.stat()
    except FileExistsError as error:
        raise HomeError(f"{path} is not a folder", hint="move it away") from error
    except OSError as error:
        raise HomeError(
            f"{path} cannot be used: {error.strerror}",
            hint="set AIOS_HOME to a folder you can write to",
        ) from error
    if found.st_mode & _OTHERS:
        raise HomeError(
            f"{path} stays open to other users",
            hint="set AIOS_HOME to a disk that keeps file permissions",
        )


def is_open_to_others(path: Path) -> bool:
    """Whether users beside its owner may look into this folder; false if there is none."""
    try:
        return bool(path.stat().st_mode & _OTHERS)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise HomeError(
            f"{path} cannot be used: {error.strerror}",
            hint="set AIOS_HOME to a folder you can write to",
        ) from error


def _write_new(path: Path, content: bytes, *, durable: bool) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    with os.fdopen(fd, "wb") as file:
        os.fchmod(fd, FILE_MODE)  # the umask may have taken too much
        file.write(content)
        file.flush()
        if durable:
            os.fsync(fd)


def _publish_new(part: Path, path: Path) -> bool:
    # A link, unlike a rename, never replaces: two starters cannot overwrite each other's key.
    try:
        os.link(part, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if path.exists():
            return False
        part.rename(path)  # a disk without hard links; the name's lock keeps others away
    return True


def _sync_folder(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _fix(path: Path) -> str:
    return f"chmod 600 {shlex.quote(str(path))}"
