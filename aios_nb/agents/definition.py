"""An agent as its author wrote it: the card's fields, the code, and how to call it.

The code takes ``(text)`` or ``(text, ctx)``. The first parameter gets the text. The second gets the
context if it has no default or is called ``ctx`` or ``context``; further parameters need defaults.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, TypedDict

import msgspec

from aios_nb.access import Access
from aios_nb.agents.card import Card
from aios_nb.agents.engines import engine_kind, near
from aios_nb.envelope import DEADLINE_MAX_S, NAME
from aios_nb.errors import UsageError

TIMEOUT_S = 300.0
"""The agent's own limit. Above the callers' default of 60 s, so that normally the caller decides;
below their maximum of a day, so that a forgotten loop does not hold a slot until tomorrow."""
TITLE_LIMIT = 200
ABOUT_LIMIT = 4000
TAG_LIMIT = 48
TAGS_LIMIT = 32
EXAMPLE_LIMIT = 1000
EXAMPLES_LIMIT = 20
_CTX_NAMES = frozenset({"ctx", "context"})
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Shape(StrEnum):
    """How the code answers."""

    FUNCTION = "function"
    COROUTINE = "coroutine"
    GENERATOR = "generator"
    ASYNC_GENERATOR = "async generator"

    @property
    def is_async(self) -> bool:
        return self in (Shape.COROUTINE, Shape.ASYNC_GENERATOR)

    @property
    def streams(self) -> bool:
        return self in (Shape.GENERATOR, Shape.ASYNC_GENERATOR)


class Options(TypedDict, total=False):
    """What ``@agent`` takes by keyword."""

    name: str | None
    title: str | None
    about: str | None
    tags: Iterable[str]
    examples: Iterable[str]
    version: str | None
    access: str | None
    engine: str | None
    timeout_s: float
    concurrency: int | None
    idempotent: bool
    may_call: Iterable[str] | None


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One version of one agent. Never changes; a new one replaces it."""

    name: str
    title: str
    about: str
    tags: tuple[str, ...]
    examples: tuple[str, ...]
    version: str
    counted: bool
    """The author gave no version: the node counts how often it was replaced."""
    access: Access
    engine: str
    timeout_s: float
    concurrency: int
    idempotent: bool
    may_call: tuple[str, ...] | None
    """Agents it may call with its own owner's rights instead of its caller's; None = none."""
    run: Callable[..., Any]
    takes_ctx: bool
    shape: Shape

    def card(self, node_id: str) -> Card:
        """What this agent says about itself when that node hosts it."""
        return Card(
            id=f"{self.name}@{node_id}",
            name=self.name,
            title=self.title,
            about=self.about,
            tags=self.tags,
            examples=self.examples,
            version=self.version,
            access=self.access.value,
            engine=self.engine,
            streams=self.shape.streams,
            idempotent=self.idempotent,
            timeout_s=self.timeout_s,
        )

    def published(self, node_id: str) -> Card:
        """The card that a record vouches for; a version that only the node counts is in the record.

        Else each run of an unchanged cell would make another card, and who used the agent would be
        warned of a change: a warning that always rings is soon ignored.
        """
        card = self.card(node_id)
        return msgspec.structs.replace(card, version="") if self.counted else card


def describe(target: Any, /, **options: Any) -> Definition:
    """The definition of a function, a class or an object; ``UsageError`` when it cannot be one."""
    check_options(options)
    wanted = Options(**options)  # type: ignore[typeddict-item]
    name = _name(target, wanted.get("name"))
    run = _callable(target, name)
    shape = _shape(run)
    engine = wanted.get("engine") or ("inline" if shape.is_async else "thread")
    kind = engine_kind(engine)
    if shape.is_async and not kind.takes_async:
        raise UsageError(
            f"{name} is async and cannot use engine={engine!r}",
            hint='leave engine out, or write "def" instead of "async def"',
        )
    title = wanted.get("title") or name.replace("_", " ").replace("-", " ").strip().capitalize()
    about = wanted.get("about") or _first_line(target)
    concurrency = wanted.get("concurrency")
    may_call = wanted.get("may_call")
    return Definition(
        name=name,
        title=_text("title", title, TITLE_LIMIT),
        about=_text("about", about, ABOUT_LIMIT),
        tags=_texts("tags", wanted.get("tags", ()), TAGS_LIMIT, TAG_LIMIT),
        examples=_texts("examples", wanted.get("examples", ()), EXAMPLES_LIMIT, EXAMPLE_LIMIT),
        version=_text("version", str(wanted.get("version") or "1"), TAG_LIMIT),
        counted=not wanted.get("version"),
        access=_access(wanted.get("access"), kind.access),
        engine=engine,
        timeout_s=_timeout(wanted.get("timeout_s", TIMEOUT_S)),
        concurrency=_concurrency(kind.concurrency if concurrency is None else concurrency),
        idempotent=bool(wanted.get("idempotent", False)),
        may_call=None if may_call is None else _texts("may_call", may_call, 100, 96),
        run=run,
        takes_ctx=_takes_ctx(run, name),
        shape=shape,
    )


def check_options(names: Iterable[str]) -> None:
    """Raises ``UsageError`` for a keyword that ``@agent`` does not take."""
    unknown = sorted(set(names) - set(Options.__annotations__))
    if unknown:
        raise UsageError(
            f"@agent does not know {unknown[0]!r}", hint=near(unknown[0], Options.__annotations__)
        )


def _name(target: Any, given: str | None) -> str:
    own = getattr(target, "__name__", None) or type(target).__name__
    name = str(given if given is not None else own.lower())
    if not NAME.fullmatch(name):
        what = f"{name!r} cannot be an agent's name"
        hint = "a-z, 0-9, _ and -, starting with a letter or digit, at most 48"
        raise UsageError(what, hint=hint if given else f'say name="…": {hint}')
    return name


def _callable(target: Any, name: str) -> Callable[..., Any]:
    if inspect.isclass(target):
        if not callable(getattr(target, "run", None)):
            raise UsageError(
                f"class {target.__name__} has no method run", hint="write def run(self, text): …"
            )
        try:
            inspect.signature(target).bind()
        except TypeError:
            raise UsageError(
                f"class {target.__name__} needs arguments to be made",
                hint=f"make one and use aios.define({target.__name__}(…))",
            ) from None
        except ValueError:
            pass  # no signature to read: made in C; making it will tell
        target = target()
    run = getattr(target, "run", None)
    if not inspect.isroutine(target) and callable(run):
        return run  # type: ignore[no-any-return]
    if callable(target):
        return target  # type: ignore[no-any-return]
    raise UsageError(
        f"{name} is a {type(target).__name__}, which cannot be an agent",
        hint="use a function, a class with run, or an object with run",
    )


def _shape(run: Callable[..., Any]) -> Shape:
    code = run
    while isinstance(code, functools.partial):
        code = code.func
    if not inspect.isroutine(code):
        code = code.__call__  # type: ignore[operator]  # an object that is called like a function
    if inspect.isasyncgenfunction(code):
        return Shape.ASYNC_GENERATOR
    if inspect.iscoroutinefunction(code):
        return Shape.COROUTINE
    if inspect.isgeneratorfunction(code):
        return Shape.GENERATOR
    return Shape.FUNCTION


def _takes_ctx(run: Callable[..., Any], name: str) -> bool:
    try:
        parameters = list(inspect.signature(run).parameters.values())
    except ValueError:
        return False  # made in C: text only
    free = inspect.Parameter.empty
    by_position = [p for p in parameters if p.kind in _BY_POSITION]
    takes_any = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    needed = [p.name for p in by_position[2:] if p.default is free]
    needed += [
        p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY and p.default is free
    ]
    if not (by_position or takes_any) or needed:
        more = f" without default: {', '.join(needed)}" if needed else "s: none"
        raise UsageError(
            f"{name} takes parameter{more}", hint="an agent takes (text) or (text, ctx)"
        )
    if len(by_position) < 2:  # noqa: PLR2004 - text and ctx
        return False
    second = by_position[1]
    return second.default is free or second.name in _CTX_NAMES


def _first_line(target: Any) -> str:
    doc = target.__doc__ if hasattr(target, "__name__") else type(target).__doc__
    return next((line.strip() for line in (doc or "").splitlines() if line.strip()), "")


def _text(field: str, value: object, limit: int) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{field} must be text, not {type(value).__name__}")
    if len(value) > limit:
        raise UsageError(f"{field} has {len(value)} characters; {limit} fit")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{field} has characters that are not valid Unicode") from None
    return value


def _texts(field: str, values: Iterable[str], count: int, limit: int) -> tuple[str, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise UsageError(f"{field} must be a list of texts", hint=f'{field}=["…", "…"]')
    texts = tuple(_text(field, value, limit) for value in values)
    if len(texts) > count:
        raise UsageError(f"{field} has {len(texts)} entries; {count} fit")
    return texts


def _access(given: str | None, default: Access) -> Access:
    if given is None:
        return default
    try:
        return Access(given)
    except ValueError:
        raise UsageError(f"there is no access {given!r}", hint=near(given, Access)) from None


def _timeout(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"timeout_s must be seconds, not {type(value).__name__}")
    if not 0 < value <= DEADLINE_MAX_S:
        raise UsageError(f"timeout_s must be above 0 and at most {DEADLINE_MAX_S:.0f}")
    return float(value)


def _concurrency(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError("concurrency must be a whole number of at least 1")
    return value
