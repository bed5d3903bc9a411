"""Tab behind ``%aios`` and ``%%agent``: commands, options, agents, conversations, nodes.

Everything comes from what is known here already; nobody is asked, so it never waits.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

from aios_nb.errors import AiosError
from aios_nb.notebook.filling import variables
from aios_nb.notebook.parser import COMMANDS, OFFER, Argument, Command, Option
from aios_nb.notebook.paths import paths
from aios_nb.notebook.words import quoted, skip, typed, word_at
from aios_nb.people.conversations import recent
from aios_nb.people.naming import is_built_in

if TYPE_CHECKING:
    from aios_nb.notebook.session import Session

_LINE = re.compile(r"\s*(?:[\w.,\[\]'\" ]+=\s*)?%aios\s+(.*)\Z", re.DOTALL)
_CELL = re.compile(r"\s*%%(aios|agent)\s+(.*)\Z", re.DOTALL)
_OPEN_BRACE = re.compile(r"\{([^\W\d]?\w*)\Z")
_CLIENTS = ("claude", "vscode", "cursor", "codex")
_LATEST = "last"
_QUOTES = ("'", '"')
_PATHS = frozenset({"FILE", "DIR"})
_KINDS = {"C": "conversation"}
"""What completes the value of an option, by what that is called."""


class Found(NamedTuple):
    """What may be typed next."""

    fragment: str
    """The end of the line that each of the words stands for."""
    words: list[str]
    alone: bool = True
    """Nothing else is offered: in a line of ours, keywords and other magics would be wrong."""


_OTHERS = Found("", [], alone=False)
"""Not our line: IPython knows it."""
CONVERSATIONS = 50
"""So many of the latest are offered."""


def install(shell: Any, session: Session) -> Callable[[], None]:
    """Complete in this shell; the result ends that."""
    from IPython.core.completer import context_matcher

    completion = Completion(shell, session)

    def match(context: Any) -> dict[str, Any]:
        return completion.match(context)

    matcher = context_matcher(identifier="aios_nb", priority=100)(match)

    matchers = shell.Completer.custom_matchers
    matchers.append(matcher)
    leave = session.subscribe(completion.refresh)
    shell.events.register("post_run_cell", completion.refresh)

    def uninstall() -> None:
        if matcher in matchers:
            matchers.remove(matcher)
        leave()
        shell.events.unregister("post_run_cell", completion.refresh)

    completion.refresh()
    return uninstall


class Completion:
    """What may be typed next."""

    def __init__(self, shell: Any, session: Session) -> None:
        self._shell = shell
        self._session = session
        self._conversations: list[str] = []
        self._asked: Future[Any] | None = None

    def match(self, context: Any) -> dict[str, Any]:
        """For IPython's matcher API, version 2."""
        from IPython.core.completer import SimpleCompletion

        fragment, words, alone = self.complete(
            context.full_text, context.cursor_line, context.cursor_position
        )
        if alone and not words:
            words = [fragment]  # IPython suppresses others only where something is offered
        return {
            "completions": [SimpleCompletion(text=text, type="aios") for text in words],
            "matched_fragment": fragment,
            "suppress": alone,
            "ordered": True,
        }

    def complete(self, text: str, line: int, column: int) -> Found:
        """What stands for the end of that line, and what could."""
        before = text.split("\n")[line][:column]
        cell = _CELL.match(before) if line == 0 else None
        here = _LINE.match(before)
        if cell and cell[1] == "agent":
            return self._behind(OFFER, cell[2])
        if cell or here:
            return self._command((cell or here)[2 if cell else 1])  # type: ignore[index]
        if text.lstrip().startswith("%%aios"):
            return self._variable(before)
        return _OTHERS

    def refresh(self, *_: Any) -> None:
        """Look behind which conversations there are, for the next time."""
        site = self._session.site()
        if site is None or (self._asked is not None and not self._asked.done()):
            return
        with contextlib.suppress(AiosError, RuntimeError):  # stopped between two lines
            self._asked = site.loop.submit(recent(site.client, CONVERSATIONS))
            self._asked.add_done_callback(self._heard)

    def _heard(self, answer: Future[Any]) -> None:
        with contextlib.suppress(BaseException):
            self._conversations = [row["conversation"] for row in answer.result()]

    def _command(self, line: str) -> Found:
        name, space, rest = line.partition(" ")
        if not space:
            return Found(name, _fitting(name, [word for word in COMMANDS if " " not in word]))
        deeper, space, further = rest.lstrip().partition(" ")
        below = COMMANDS.get(f"{name} {deeper}")
        if below is not None and space:
            return self._behind(below, further)
        words = [word.partition(" ")[2] for word in COMMANDS if word.startswith(f"{name} ")]
        if words and not space and (found := _fitting(deeper, words)):
            return Found(deeper, found)
        command = COMMANDS.get(name)
        return Found("", []) if command is None else self._behind(command, rest)

    def _behind(self, command: Command, rest: str) -> Found:
        """Behind a command's name: an option, its value, or a word."""
        words, fragment = _apart(command, rest)
        option = command.option(words[-1]) if words else None
        if option is not None and option.value:
            return self._value(option, fragment)
        if fragment.startswith("-"):
            flags = [
                each.flags[-1]
                for each in command.options
                if each.many or each.flags[-1] not in words
            ]
            return Found(fragment, _fitting(fragment, flags))
        argument = _argument(command, words)
        if argument is None:
            flags = [each.flags[-1] for each in command.options] if not fragment else []
            return Found(fragment, flags)
        return self._word(argument, rest, fragment)

    def _value(self, option: Option, fragment: str) -> Found:
        if option.value in _PATHS:
            return _files(fragment)
        values = option.choices or self._values(_KINDS.get(option.value, ""))
        return _values(fragment, values)

    def _word(self, argument: Argument, rest: str, fragment: str) -> Found:
        if argument.name.upper() in _PATHS:
            return _files(fragment)
        if argument.rest and not argument.kind:
            return self._variable(rest)
        if argument.kind == "command":  # some have two words
            return Found(rest.lstrip(), _fitting(rest.lstrip(), COMMANDS))
        values = self._values(argument.kind)
        if typed(fragment).startswith("@"):
            values = [f"@{value}" for value in values]
        return _values(fragment, values)

    def _variable(self, before: str) -> Found:
        """The name of a variable in ``{…``."""
        brace = _OPEN_BRACE.search(before)
        if brace is None:
            return Found("", [])
        names = [name for name in variables(self._shell) if not name.startswith("_")]
        return Found(brace[0], [f"{{{name}}}" for name in _fitting(brace[1], sorted(names))])

    def _values(self, kind: str) -> Iterable[str]:
        roster = self._session.roster
        if kind == "agent":
            return roster.names()
        if kind in {"own", "import"}:
            site = self._session.site()
            own = "" if site is None else site.client.node_id
            return [
                row["name"]
                for row in roster.rows()
                if row["node_id"] == own
                and bool(row.get("source")) == (kind == "import")
                and not is_built_in(row, own)
            ]
        if kind == "node":
            return [row["node_id"] for row in roster.nodes()]
        if kind == "conversation":
            self.refresh()
            return [_LATEST, *self._conversations]
        return _CLIENTS if kind == "client" else ()


def _argument(command: Command, words: Sequence[str]) -> Argument | None:
    """The argument that comes next, after these words."""
    taken, skip = 0, False
    for word in words:
        option = command.option(word.partition("=")[0])
        if skip:
            skip = False
        elif option is not None:
            skip = bool(option.value) and "=" not in word
        else:
            taken += 1
    arguments = command.arguments
    if taken < len(arguments):
        return arguments[taken]
    return arguments[-1] if arguments and arguments[-1].rest else None


def _apart(command: Command, rest: str) -> tuple[list[str], str]:
    """The words that are done, and the one that is being typed.

    ``--x=y`` is two. A quote that is open goes on over spaces where a value is wanted; a question
    may begin with one.
    """
    words: list[str] = []
    at = skip(rest, 0)
    while at < len(rest):
        flag, given, _ = rest[at:].partition("=")
        option = command.option(flag)
        if given and option is not None and option.value:
            words.append(flag)
            at = skip(rest, at + len(flag) + 1)
            continue
        word, end = word_at(rest, at)
        is_open = rest[at] in _QUOTES and word == rest[at:end]
        if end == len(rest) or (is_open and _wants_value(command, words)):
            break
        words.append(rest[at:end])
        at = skip(rest, end)
    return words, rest[at:]


def _wants_value(command: Command, words: Sequence[str]) -> bool:
    """Whether the next word is one of many that are known, not somebody's own words."""
    option = command.option(words[-1]) if words else None
    if option is not None and option.value:
        return not command.greedy  # there a value goes on to the next option, quotes or not
    argument = _argument(command, words)
    return argument is not None and bool(argument.kind or argument.name.upper() in _PATHS)


def _files(fragment: str) -> Found:
    return _quoted(fragment, paths(typed(fragment)))


def _values(fragment: str, values: Iterable[str]) -> Found:
    """Those that begin with what is typed."""
    return _quoted(fragment, _fitting(typed(fragment), values))


def _quoted(fragment: str, words: Iterable[str]) -> Found:
    """These, in the quotes that stand there already."""
    mark = fragment[:1] if fragment[:1] in _QUOTES else ""
    return Found(fragment, [quoted(word, mark) for word in words])


def _fitting(fragment: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(fragment)]
