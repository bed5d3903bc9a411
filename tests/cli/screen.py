"""``aios-nb`` in a real terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

WAIT_S = 60
CTRL_C, CTRL_D, ALT_ENTER = "\x03", "\x04", "\x1b\r"
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>]|\x1b\][^\x07]*\x07")


class Screen:
    """``aios-nb``, or another module, in a terminal, with a person who waits for what they see."""

    def __init__(self, home: object, *args: str, module: str = "aios_nb", **env: str) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *args],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_own_terminal,  # noqa: PLW1509 (the child is one thread)
            env={
                **os.environ,
                "AIOS_HOME": str(home),
                "TERM": "xterm",
                "PROMPT_TOOLKIT_NO_CPR": "1",
                "COLUMNS": "100",
                "LINES": "30",
                **env,
            },
        )
        os.close(slave)
        self.raw = ""
        self._seen = 0

    @property
    def text(self) -> str:
        return re.sub(r"[\r\n]+", "\n", _SEQUENCE.sub("", self.raw))

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def until(self, *words: str) -> str:
        """Wait until these words have appeared, in this order, since the last time."""
        limit = time.monotonic() + WAIT_S
        while True:
            place = self._seen
            for word in words:
                place = self.text.find(word, place)
                if place < 0:
                    break
                place += len(word)
            else:
                seen, self._seen = self.text[self._seen : place], place
                return seen
            if not self._read(limit):
                pytest.fail(f"{words} did not appear in: {self.text[self._seen :]!r}")

    def end(self) -> int:
        """The exit code, when the program has ended by itself."""
        limit = time.monotonic() + WAIT_S
        while self._read(limit):
            pass
        return self.process.wait(timeout=WAIT_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=WAIT_S)
        os.close(self._master)

    def _read(self, limit: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0, limit - time.monotonic()))
        if not ready:
            return False
        try:
            chunk = os.read(self._master, 65536)
        except OSError:  # Linux: the other side is closed
            return False
        self.raw += chunk.decode(errors="replace")
        return bool(chunk)


def _own_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C becomes a signal, as for a person
