"""Agents from a file or a module: what ``--agents FILE_OR_MODULE`` hosts."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import traceback
from pathlib import Path
from types import CodeType, ModuleType

from aios_nb.agents.builtin import BUILTIN_NAMES
from aios_nb.agents.decorator import collecting
from aios_nb.agents.definition import Definition
from aios_nb.errors import AiosError, UsageError
from aios_nb.tilde import expanded

log = logging.getLogger("aios_nb.agents")


def load_agents(ref: str) -> list[Definition]:
    """The agents that a ``FILE.py`` or a module declares; it is run once for that.

    As with ``python FILE.py``, modules beside the file can be imported. Whatever goes wrong in it
    is one line with file and line number.
    """
    with collecting() as collected:
        if ref.endswith(".py") or "/" in ref or "\\" in ref:
            _run_file(expanded(ref))
        else:
            _run_module(ref)
    if not collected:
        raise UsageError(f"no agents in {ref}", hint="put @aios.agent above a function in it")
    for name in collected:
        if name in BUILTIN_NAMES:
            log.warning("%s in %s hides the built-in agent of that name", name, ref)
    return list(collected.values())


def _run_file(path: Path) -> None:
    try:
        source = path.read_bytes()
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder", hint="name a file in it") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    path = path.resolve()
    try:
        code: CodeType = compile(source, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _syntax(error, str(path)) from error
    except ValueError as error:  # null bytes, in some versions of Python
        raise UsageError(f"{path}: {error}") from error
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # In sys.modules, because dataclasses and pickle look a class's module up there; under a name of
    # its own, because a file called json.py must not become the module json.
    module = ModuleType(f"aios_agents_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        exec(code, module.__dict__)  # noqa: S102 - the user's own file, named on the command line
    except (Exception, SystemExit) as error:
        raise _said_in_one_line(error, str(path)) from error


def _run_module(name: str) -> None:
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m NAME`: modules of the current folder
    try:
        found = sys.modules.get(name) or importlib.util.find_spec(name)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise UsageError(f"no module {name!r}", hint="for a file, say FILE.py")
    try:
        if isinstance(found, ModuleType):
            importlib.reload(found)  # its decorators ran before anyone collected
        else:
            importlib.import_module(name)
    except (Exception, SystemExit) as error:
        origin = found.__file__ if isinstance(found, ModuleType) else found.origin
        raise _said_in_one_line(error, origin or name) from error


def _said_in_one_line(error: BaseException, origin: str) -> UsageError:
    """Where in the user's code it happened, and what."""
    if isinstance(error, SyntaxError) and error.filename:
        return _syntax(error, error.filename)
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == origin]
    where = f"{origin}:{lines[-1]}" if lines else origin
    if isinstance(error, AiosError):
        return UsageError(f"{where}: {error.message}", hint=error.hint)
    said = next(iter(str(error).splitlines()), "")
    return UsageError(f"{where}: {type(error).__name__}{': ' if said else ''}{said}")


def _syntax(error: SyntaxError, origin: str) -> UsageError:
    where = f"{origin}:{error.lineno}" if error.lineno else origin
    return UsageError(f"{where}: {error.msg}")
