"""What a person typed, as a value that a JSON Schema asks for. No I/O.

The schema is somebody else's: it is read, never run. Only its plainest words count (type, enum,
one step of a local reference); the server has the last say on what it takes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aios_nb.richtext import one_line

CHOICES_SHOWN = 12
_YES = frozenset({"yes", "y", "true", "on", "1", "ok"})
_NO = frozenset({"no", "n", "false", "off", "0"})
_BRANCHES_READ = 16
_WORDS_CHARS = 200


def schema_of(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema itself, or what its local reference names."""
    for _ in range(4):  # a reference may lead to itself
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = _at(root, reference)
    return {}


def _at(root: Mapping[str, Any], reference: str) -> Any:
    if not reference.startswith("#/"):
        return {}
    found: Any = root
    for step in reference[2:].split("/"):
        found = found.get(step, {}) if isinstance(found, Mapping) else {}
    return found


def kinds(schema: Any, root: Mapping[str, Any]) -> set[str]:
    """The JSON types that it takes; empty: any."""
    found: set[str] = set()
    for branch in _branches(schema, root):
        kind = branch.get("type")
        named = kind if isinstance(kind, list) else [kind]
        found.update(name for name in named if isinstance(name, str))
    return found


def choices(schema: Any, root: Mapping[str, Any]) -> list[Any]:
    """The values it takes, if it lists them."""
    found: list[Any] = []
    for branch in _branches(schema, root):
        if "const" in branch:
            found.append(branch["const"])
        elif isinstance(branch.get("enum"), list):
            found.extend(branch["enum"])
    return found


def _branches(schema: Any, root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    here = schema_of(schema, root)
    yield here
    for word in ("anyOf", "oneOf"):
        below = here.get(word)
        if isinstance(below, list):
            for branch in below[:_BRANCHES_READ]:
                yield schema_of(branch, root)


def described(schema: Any, root: Mapping[str, Any]) -> str:
    """What it takes, in words for a person."""
    listed = choices(schema, root)
    if listed:
        shown = ", ".join(one_line(_text(one), 60) for one in listed[:CHOICES_SHOWN])
        words = f"one of {shown}" + (", …" if len(listed) > CHOICES_SHOWN else "")
    else:
        found = sorted(kinds(schema, root) - {"null"})
        words = " or ".join({"boolean": "yes or no"}.get(kind, one_line(kind)) for kind in found)
    return words[:_WORDS_CHARS] or "text"


def from_text(text: str, schema: Any, root: Mapping[str, Any]) -> Any:
    """The value that a text stands for. Raises ``ValueError`` with what is wanted instead."""
    here = schema_of(schema, root)
    taken = kinds(here, root)
    items = here.get("items", {})
    in_lists = "array" in kinds(items, root)  # such are typed as JSON
    if "array" in taken and not in_lists and not text.lstrip().startswith("["):
        return [from_text(part.strip(), items, root) for part in text.split(",") if part.strip()]
    listed = choices(here, root)
    for one in listed:
        if _text(one).casefold() == text.strip().casefold():
            return one
    if listed:
        raise ValueError(f"{one_line(text, 60)!r} is not {described(here, root)}")
    for kind in ("boolean", "integer", "number", "array", "object"):
        if kind in taken:
            with contextlib.suppress(ValueError, OverflowError):
                return _READERS[kind](text.strip())
    if not taken:
        with contextlib.suppress(ValueError):
            return _json(text.strip())
    if "string" in taken or not taken:
        return text
    if "null" in taken and text.strip().casefold() in {"null", "none", ""}:
        return None
    raise ValueError(f"{one_line(text, 60)!r} is not {described(here, root)}")


def _boolean(text: str) -> bool:
    word = text.casefold()
    if word not in _YES | _NO:
        raise ValueError
    return word in _YES


def _integer(text: str) -> int:
    if len(text) > 100:  # noqa: PLR2004 - a number with more digits is an attack on whoever prints it
        raise ValueError
    return int(text)


def _number(text: str) -> int | float:
    try:
        return _integer(text)
    except ValueError:
        found = float(text)
        if found - found != 0:  # endless, or no number
            raise
        return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError from None


def _of(kind: type) -> Any:
    def read(text: str) -> Any:
        found = _json(text)
        if not isinstance(found, kind):
            raise ValueError  # noqa: TRY004 - one kind of "no"
        return found

    return read


_READERS: Mapping[str, Any] = {
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "array": _of(list),
    "object": _of(dict),
}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def properties(schema: Any) -> dict[str, Any]:
    """The named parts of an object's schema."""
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def required(schema: Any) -> list[str]:
    """The parts that must be there."""
    found = schema.get("required") if isinstance(schema, Mapping) else None
    named: Sequence[Any] = found if isinstance(found, list) else ()
    return [name for name in dict.fromkeys(named) if isinstance(name, str)]
