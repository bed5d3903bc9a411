"""``%%agent``: a cell that runs as usual, and what it defines is an agent from then on."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from aios_nb.current import program
from aios_nb.envelope import NAME
from aios_nb.errors import AiosError, UsageError
from aios_nb.notebook.filling import filling, variables
from aios_nb.notebook.parser import OFFER, read

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from aios_nb.notebook.session import Session

_CALLED = {"timeout": "timeout_s", "example": "examples"}
"""Options whose keyword has another name."""


def offer(shell: Any, session: Session, line: str, cell: str) -> Any:
    """Run the cell, offer its agent; what comes back is what the cell's last line gives."""
    said = read(OFFER, line, filling(variables(shell))).values
    options = {name: value for name, value in said.items() if value}
    name = options.pop("name")
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be an agent's name",
            hint="a-z, 0-9, _ and -, starting with a letter or digit, at most 48",
        )
    before = program.declared.get(name)
    try:
        return _offered(shell, session, name, options, line, cell)
    except Exception:  # who interrupted it waits for nothing more
        _say_what_stands(shell, session, name, changed=program.declared.get(name) is not before)
        raise


def _offered(
    shell: Any, session: Session, name: str, options: dict[str, Any], line: str, cell: str
) -> Any:
    source = shell.transform_cell(cell)  # its own magics as Python
    # Below a first line, as in the notebook, so that the line numbers of errors are right.
    file = shell.compile.cache(f"%%agent {line}\n{source}", _number(shell), raw_code=source)
    try:
        tree = shell.transform_ast(shell.compile.ast_parse(f"\n{source}", filename=file))
        steps = _compiled(shell, tree, file)
    except SyntaxError as error:
        raise Misspelt(error, shell) from None
    chosen = _chosen(name, [node.name for node in tree.body if isinstance(node, _DEFINITIONS)])
    with _shown_from_cell(shell):
        result = _run(shell, steps)
    if chosen not in shell.user_ns:
        raise UsageError(f"{chosen} is not there any more at the end of the cell")
    with _shown_from_cell(shell):
        _declare(name, shell.user_ns[chosen], options)
    _say(shell, session, name)
    return None if cell.rstrip().endswith(";") else result


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _number(shell: Any) -> int:
    """Of the cell that runs: ``In[number]``."""
    numbers, frame = shell.compile._filename_map, sys._getframe()  # noqa: SLF001 - nobody else knows
    while frame.f_back is not None:
        if frame.f_code.co_filename in numbers:
            return int(numbers[frame.f_code.co_filename])
        frame = frame.f_back
    return int(shell.execution_count)


def _chosen(name: str, made: Sequence[str]) -> str:
    """Which of the cell's functions and classes it is about. Known before the cell runs."""
    wanted = name.replace("-", "_")
    fitting = [each for each in made if each == wanted] or [
        each for each in made if each.lower() == wanted
    ]
    if fitting:
        return fitting[-1]
    if len(set(made)) == 1:
        return made[0]
    if not made:
        raise UsageError(
            "this cell defines no function and no class", hint=f"def {wanted}(text): …"
        )
    raise UsageError(
        f"this cell defines {', '.join(dict.fromkeys(made))}, but no {wanted}",
        hint=f"call one of them {wanted}, or name the agent after it",
    )


def _compiled(shell: Any, tree: ast.Module, file: str) -> list[CodeType]:
    """The cell, and apart its last line if that is an expression."""
    body, steps = list(tree.body), []
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    with shell.compile.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT):
        steps.append(shell.compile(ast.Module(body, []), file, "exec"))
        if isinstance(last, ast.Expr):
            steps.append(shell.compile(ast.Expression(last.value), file, "eval"))
    if any(step.co_flags & inspect.CO_COROUTINE for step in steps):
        raise UsageError("a cell with %%agent cannot await", hint="do that in another cell")
    return steps


def _run(shell: Any, steps: Sequence[CodeType]) -> Any:
    """Run it in the notebook's own names; the value of its last line."""
    value = None
    for step in steps:
        value = eval(step, shell.user_ns)  # noqa: S307 - the person's own cell
    return value


@contextmanager
def _shown_from_cell(shell: Any) -> Iterator[None]:
    try:
        yield
    except AiosError:
        raise
    except Exception as error:
        _show_from_cell(shell, error)
        raise


def _show_from_cell(shell: Any, error: Exception) -> None:
    """Let its traceback begin in the cell, as that of any other cell does."""
    trace = error.__traceback__
    while trace and _is_ours(trace.tb_frame):
        trace = trace.tb_next
    shown: list[str] = shell.InteractiveTB.structured_traceback(
        type(error), error, trace or error.__traceback__, tb_offset=0
    )
    with suppress(AttributeError):  # an exception that takes none is shown with a few lines more
        error._render_traceback_ = shown.copy  # type: ignore[attr-defined]


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith("aios_nb.")


class Misspelt(Exception):
    """A cell that is no Python. IPython would show a syntax error with all of our own lines."""

    def __init__(self, error: SyntaxError, shell: Any) -> None:
        super().__init__(str(error))
        self._lines = shell.SyntaxTB.structured_traceback(type(error), error, [])

    def _render_traceback_(self) -> list[str]:
        return list(self._lines)


Misspelt.__name__ = SyntaxError.__name__  # what it is to whoever reads it


def _declare(name: str, target: Any, options: dict[str, Any]) -> None:
    from aios_nb.agents.decorator import define, name_of

    decorated = name_of(target)  # by @agent above it, in this cell
    if decorated is None:
        define(target, name=name, **{_CALLED.get(key, key): what for key, what in options.items()})
    elif options or decorated != name:
        raise UsageError(
            f"{decorated} is offered as the @agent above it says, not as %%agent does",
            hint="give its settings in one place: there, or behind %%agent",
        )


def _say(shell: Any, session: Session, name: str) -> None:
    """Under which name others find it now, if they do."""
    from aios_nb.notebook.show.results import Note, note

    node = _node(shell, session)
    if node is None:
        said = f"{name} will be offered when the node is up"
    else:
        card = node.card(name).card
        said = f"{name} is offered: version {card['version']}, {_whom(card)}"
        if not card["about"]:
            said += "; people find it by what it does: --about, or a docstring"
    shell.display_pub.publish(data=note(Note(said)), metadata={})


def _say_what_stands(shell: Any, session: Session, name: str, *, changed: bool) -> None:
    """What answers though the cell failed: as before, or what an ``@agent`` in it offered."""
    from aios_nb.notebook.show.results import Note, note

    node = session.site()
    version = None if node is None else node.offered(name)  # a busy node does not hold up the error
    if version is None:
        return
    said = f"{name} is not changed: version {version} is still offered"
    if changed:
        said = f"{name} is offered all the same: version {version}"
    shell.display_pub.publish(data=note(Note(said)), metadata={})


def _node(shell: Any, session: Session) -> Any:
    """The node, which may be starting; None if there is none."""
    from aios_nb.notebook.show.faces import cell_of
    from aios_nb.notebook.show.progress import waiting

    if session.state == "starting":
        with waiting(cell_of(shell), "waiting for the node to start"), suppress(AiosError):
            session.node()
    return session.site()


def _whom(card: dict[str, Any]) -> str:
    """For whom it is, and under which name they find it."""
    for_whom = {"private": "for you alone", "known": "for nodes you allowed"}
    return for_whom.get(card["access"], f"for everyone as {card['id']}")
