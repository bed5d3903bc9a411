"""``{name}`` in what is typed behind a magic: the value of that variable, and nothing else.

No expressions, no formats, no attributes: a question may be full of braces (JSON, LaTeX, code),
and what is not the name of a variable stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_NAME = re.compile(r"\{([^\W\d]\w*)\}")


def filling(*namespaces: Mapping[str, Any]) -> Callable[[str], str]:
    """Puts the variables that exist into a text; the first namespace that has one counts."""

    def value(found: re.Match[str]) -> str:
        for names in namespaces:
            if found[1] in names:
                return str(names[found[1]])
        return found[0]

    return lambda text: _NAME.sub(value, text)


def variables(shell: Any) -> dict[str, Any]:
    """What the person has made, without what IPython itself puts beside it (``In``, ``exit``)."""
    hidden = shell.user_ns_hidden
    return {
        name: value
        for name, value in shell.user_ns.items()
        if name.startswith("_") or hidden.get(name, _MISSING) is not value
    }


_MISSING = object()
