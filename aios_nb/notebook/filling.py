"""``{name}`` in what is typed behind a magic: the value of that variable, and nothing else.

No expressions, no formats, no attributes: a question may be full of braces (JSON, LaTeX, code),
and what is not the name of a variable stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from aios_nb.errors import UsageError
from aios_nb.richtext import one_line

_NAME = re.compile(r"\{([^\W\d]\w*)\}")


def filling(*namespaces: Mapping[str, Any]) -> Callable[[str], str]:
    """Puts the variables that exist into a text; the first namespace that has one counts."""

    def value(found: re.Match[str]) -> str:
        for names in namespaces:
            if found[1] in names:
                return _text(found[1], names[found[1]])
        return found[0]

    return lambda text: _NAME.sub(value, text)


def _text(name: str, value: Any) -> str:
    try:
        return str(value)
    except Exception as error:
        failed = one_line(f"{type(error).__name__}: {error}")
        raise UsageError(f"{{{name}}} has no text: {failed}") from error


def variables(shell: Any) -> dict[str, Any]:
    """What the person has made, without what IPython itself puts beside it (``In``, ``exit``)."""
    hidden = shell.user_ns_hidden
    return {
        name: value
        for name, value in shell.user_ns.items()
        if name.startswith("_") or hidden.get(name, _MISSING) is not value
    }


_MISSING = object()
