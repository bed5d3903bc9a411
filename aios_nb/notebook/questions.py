"""A question mark at the end of ``%aios ask …`` belongs to the question.

IPython takes a line that ends in ``?`` for a call for help with its last word, magics included.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_ASKED = re.compile(r"(?P<before>\s*(?:[^\W\d][\w., ]*=\s*)?)%aios\s+(?P<line>\S.*\?)\s*\Z")


def install(shell: Any) -> Callable[[], None]:
    """From now on ``%aios`` gets what ends in ``?``, but for ``%aios?``; the result ends that."""
    transforms = shell.input_transformers_cleanup
    transforms.append(kept)

    def uninstall() -> None:
        if kept in transforms:
            transforms.remove(kept)

    return uninstall


def kept(lines: list[str]) -> list[str]:
    """The lines of a cell with such calls written out, as IPython writes out all others."""
    if lines and lines[0].startswith("%%"):
        return lines
    return [_written_out(line) for line in lines]


def _written_out(line: str) -> str:
    found = _ASKED.match(line)
    if found is None:
        return line
    end = "\n" if line.endswith("\n") else ""
    return f"{found['before']}get_ipython().run_line_magic('aios', {found['line']!r}){end}"
