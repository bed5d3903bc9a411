"""Runs a command and turns whatever happens into one line and an exit code."""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from aios_nb.cli.parser import PASSED_ON, parse
from aios_nb.errors import AiosError, NotRunning, RpcError, UsageError
from aios_nb.people.wording import in_words
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
        _answer(argv, {"message": "interrupted"})
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes at exit and would complain again: give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return PIPE_CLOSED
    except AiosError as error:
        if debugging():
            raise
        _complain(in_words(error))
        _answer(argv, _fields(error))
        return exit_code(error)
    except Exception as error:
        if debugging():
            raise
        said = f"{type(error).__name__}: {error}"
        hint = "AIOS_DEBUG=1 shows where"
        _complain(f"{said} ({hint})")
        _answer(argv, {"message": one_line(said), "hint": hint})
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


def _fields(error: AiosError) -> dict[str, Any]:
    fields: dict[str, Any] = {"message": error.message, "hint": error.hint}
    if isinstance(error, RpcError):
        fields["code"] = error.data.get("code", error.code)
    return fields


def _answer(argv: Sequence[str], error: dict[str, Any]) -> None:
    """For a program that asked for JSON: what went wrong, where it looks for the answer."""
    own = list(argv[: argv.index("--")] if "--" in argv else argv)
    if "--json" not in own or own[0] in PASSED_ON:
        return
    try:
        print(json.dumps({"error": {"hint": None, **error}}), flush=True)
    except (OSError, ValueError):  # nobody reads it
        return


def _complain(text: str) -> None:
    try:
        print(f"aios-nb: {one_line(text)}", file=sys.stderr)
    except (BrokenPipeError, ValueError):  # nobody reads our errors either
        return
