"""The bench's hold on its load generator process."""

from __future__ import annotations

import subprocess
import sys
from types import TracebackType
from typing import Self

import msgspec

from aios_nb.bench.contestants import asked, child_env, end
from aios_nb.bench.spec import Answer, Broken, Close, Command, Drive, Load, Open, Target, Window

_answers = msgspec.json.Decoder(Answer)


class Generator:
    """A running load generator; sessions opened here live in that process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "aios_nb.bench.loadgen"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=child_env(),
        )

    def open(self, target: Target) -> Session:
        """Connections to a target, ready to be driven."""
        answer = self.ask(Open(target))
        if answer.session is None:
            raise Broken("the load generator opened nothing")
        return Session(self, answer.session, target)

    def ask(self, command: Command) -> Answer:
        line = asked(self._process, msgspec.json.encode(command))
        if not line:
            raise Broken("the load generator is gone")
        answer = _answers.decode(line)
        if answer.error is not None:
            raise Broken(answer.error)
        return answer

    def close(self) -> None:
        end(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()


class Session:
    """One target's connections."""

    def __init__(self, generator: Generator, number: int, target: Target) -> None:
        self._generator = generator
        self._number = number
        self.target = target

    def drive(self, load: Load) -> Window:
        """What this load shows; a wrong reply is an error, never a slower figure."""
        window = self._generator.ask(Drive(self._number, load)).window
        if window is None:
            raise Broken("the load generator measured nothing")
        if window.wrong:
            total = window.replies + window.wrong
            raise Broken(
                f"{window.wrong} of {total} replies were wrong; first: {window.first_wrong}"
            )
        return window

    def close(self) -> None:
        self._generator.ask(Close(self._number))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
