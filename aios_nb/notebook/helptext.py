"""``%aios?`` and ``%%agent?``: everything that can be typed, made from the parser's tables."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from aios_nb.notebook.parser import COMMANDS, GROUPS, OFFER, Command
from aios_nb.people.layout import fit
from aios_nb.richtext import cells_wide

_INDENT = "  "
_BRACKETS = re.compile(r"\[[^\]]*\]")
_TIE = "\N{NO-BREAK SPACE}"
LINE = 94
"""A page breaks longer ones anywhere: beside the list of files it has room for some 97."""
_WIDE = 34
"""A usage that is longer gets a line of its own."""
_START = """\
Agents of this notebook and of others: find one, talk to it, offer your own.

    %aios search sum up numbers         who can do that?
    answer = %aios ask calc 2 * 21      the answer, in a variable
    %aios chat echo                     a chat under the cell

    %%agent shout --about Says it louder
    def shout(text):
        return text.upper()
"""
_END = """\
AGENT is a name, or name@nodeid. C is a conversation: its id, the start of it, its title, or
`last`. {name} is filled in if there is a variable `name`; other braces stay.
`%%aios ask AGENT` asks what is in the cell. In Python: aios.node().ask("calc", "2 * 21"), or
`await aios.node().ask_async(…)`, which leaves the kernel free. Tab completes; errors are one
line, and `%aios debug` has the traceback.
"""
_OFFER = """\
The cell runs as usual. Then the function or class called NAME in it, or the only one, is an
agent of this notebook's node: others find it and may call it. Running the cell again replaces
it; its conversations go on, and its version counts up. `%aios withdraw NAME` ends the offer.

    %%agent adder --about Adds the numbers in a sentence --tags math
    def adder(text):
        return sum(int(word) for word in text.split() if word.isdigit())

It takes (text) or (text, ctx) and gives text, data, a DataFrame, a figure or an aios.File;
with `yield` it streams. A class has a method run. `@aios.agent(…)` does the same in Python.
"""


def overview() -> str:
    """All commands, with examples."""
    lines = [_START]
    for title, commands in GROUPS.items():
        lines.append(title)
        for command in commands:
            lines += _entry(command.usage, command.about)
        lines.append("")
    return "\n".join([*lines, _END])


def about(command: Command) -> str:
    """All about one command."""
    magic = "%%agent" if command is OFFER else "%aios"
    usage = _typed(f"{magic} {command.usage}", "")
    lines = [*usage, "", f"{command.about[0].upper()}{command.about[1:]}.", ""]
    for option in command.options:
        flags = ", ".join(option.flags)
        choices = f" ({', '.join(option.choices)})" if option.choices else ""
        lines += _entry(f"{flags} {option.value}".rstrip(), f"{option.about}{choices}")
    if command.options_last:
        text = command.arguments[-1].usage
        lines.append(f"{_INDENT}Options may stand behind {text} too; ` -- ` before it ends them.")
    if command.options:
        lines.append("")
    for example in command.examples:
        lines.append(f"    {example if '%' in example else f'{magic} {example}'}")
    if command.takes_cell:
        lines.append(f"    %{magic} {command.name} AGENT    (and what to ask in the cell)")
    return "\n".join(lines).rstrip() + "\n"


def of(name: str | None) -> str:
    """What ``%aios help`` shows."""
    command = COMMANDS.get(" ".join((name or "").split()))
    return overview() if command is None else about(command)


def offering() -> str:
    """All about ``%%agent``."""
    return f"{about(OFFER)}\n{_OFFER}"


def _entry(usage: str, said: str) -> Iterator[str]:
    column = first = _INDENT + " " * _WIDE
    if cells_wide(usage) < _WIDE:
        first = _INDENT + fit(usage, _WIDE)
    else:
        yield from _typed(usage, _INDENT)
    yield from textwrap.wrap(said, LINE, initial_indent=first, subsequent_indent=column)


def _typed(usage: str, indent: str) -> list[str]:
    """What is typed, on as many lines as it takes; an option stays with its value."""
    whole = _BRACKETS.sub(lambda option: option[0].replace(" ", _TIE), usage)
    lines = textwrap.wrap(
        whole,
        LINE,
        initial_indent=indent,
        subsequent_indent=_INDENT * 3,
        break_on_hyphens=False,
    )
    return [line.replace(_TIE, " ") for line in lines]
