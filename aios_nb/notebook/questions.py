"""A question mark at the end of ``%aios ask …`` belongs to the question.

IPython takes a line that ends in ``?`` for a call for help with its last word, magics included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from tokenize import TokenInfo
from typing import Any

from IPython.core.inputtransformer2 import (
    EscapedCommand,
    HelpEnd,
    MagicAssign,
    TokenTransformBase,
    assemble_continued_line,
    find_end_of_continued_line,
)

from aios_nb.notebook.parser import COMMANDS

_OURS = re.compile(r"%(\w+ .*%)?aios\s+[^\s?]")
"""``%aios`` with something behind it, also behind another magic such as ``%time``; ``%aios?`` is
for IPython."""
_FINDERS: tuple[Any, ...] = (MagicAssign, EscapedCommand)


class Question(TokenTransformBase):
    """Writes out such a call before IPython looks for calls for help.

    It sees tokens, as IPython's own do: what stands in a text or in a docstring stays as it is.
    """

    priority = HelpEnd.priority - 1

    def __init__(self, line: int, column: int) -> None:
        # The earliest in a line has its turn first, and help begins with the line.
        super().__init__((line, 0))  # type: ignore[no-untyped-call]
        self._column = column

    @classmethod
    def find(cls, tokens_by_line: Sequence[Sequence[TokenInfo]]) -> Question | None:
        for line in tokens_by_line:
            if not line or not _last(line).endswith("?"):
                continue
            magic = next(filter(None, (finder.find([line]) for finder in _FINDERS)), None)
            if magic is not None and _is_ours(line, magic.start_line + 1, magic.start_col):
                return cls(magic.start_line + 1, magic.start_col)
        return None

    def transform(self, lines: list[str]) -> list[str]:
        begins = (self.start_line, self._column)
        end = find_end_of_continued_line(lines, self.start_line)
        name, said = assemble_continued_line(lines, begins, end)[1:].split(maxsplit=1)
        asked = " ".join(said.rstrip().rstrip("?").split())
        if name == "aios" and (" " not in asked or asked in COMMANDS):
            said = f"help {asked}"  # `%aios ask?` and `%aios hub add?` ask about the command
        call = f"get_ipython().run_line_magic({name!r}, {said.rstrip()!r})\n"
        before = lines[self.start_line][: self._column]
        return [*lines[: self.start_line], before + call, *lines[end + 1 :]]


def _last(line: Sequence[TokenInfo]) -> str:
    """The end of the text that a line of tokens was read from."""
    return line[-1].line.rstrip() or next(
        (token.line.rstrip() for token in reversed(line) if token.line.strip()), ""
    )


def _is_ours(line: Sequence[TokenInfo], row: int, column: int) -> bool:
    return any(
        token.start == (row, column) and _OURS.match(token.line, column) is not None
        for token in line
    )


def install(shell: Any) -> Callable[[], None]:
    """From now on ``%aios`` gets what ends in ``?``, but for ``%aios?``; the result ends that."""
    transformers = shell.input_transformer_manager.token_transformers
    transformers.append(Question)

    def uninstall() -> None:
        if Question in transformers:
            transformers.remove(Question)

    return uninstall
