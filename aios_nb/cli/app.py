"""Runs a command and turns whatever happens into one line and an exit code."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence

from aios_nb.cli.parser import parse
from aios_nb.errors import AiosError, NotRunning, UsageError
from aios_nb.richtext import one_line

OK = 0
FAILED = 1
USAGE = 2
NO_NODE = 3
INTERRUPTED = 130
PIPE_CLOSED = 141
"""As the shell reports a program that died of SIGPIPE."""


def run(argv: Sequence[str]) -> int:
    """The exit code of the command in ``argv``."""
    try:
        return _run(argv)
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes at exit and would complain again: give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return PIPE_CLOSED
    except AiosError as error:
        if debugging():
            raise
        _complain(str(error))
        return exit_code(error)
    except Exception as error:
        if debugging():
            raise
        _complain(f"{type(error).__name__}: {error} (AIOS_DEBUG=1 shows where)")
        return FAILED


def _run(argv: Sequence[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode shows `?`, no error
    args = parse(argv)
    if args is None:
        return OK
    module, _, function = args.does.partition(":")
    command = getattr(importlib.import_module(f"aios_nb.cli.{module}"), function)
    code = command(args)
    sys.stdout.flush()
    return OK if code is None else int(code)


def exit_code(error: AiosError) -> int:
    """2: asked wrongly. 3: nobody to ask. 1: asked, and it failed."""
    if isinstance(error, UsageError):
        return USAGE
    return NO_NODE if isinstance(error, NotRunning) else FAILED


def debugging() -> bool:
    return os.environ.get("AIOS_DEBUG", "") not in {"", "0"}


def _complain(text: str) -> None:
    try:
        print(f"aios-nb: {one_line(text)}", file=sys.stderr)
    except (BrokenPipeError, ValueError):  # nobody reads our errors either
        return
