"""``@agent``: turns code into an agent and hands it to whoever collects agents now.

That is the loader of ``--agents FILE`` while it runs a file, else the running node, else nobody:
then it is kept, and a node started later takes it over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, overload

from aios_nb.agents.definition import TIMEOUT_S, Definition, check_options, describe
from aios_nb.current import program
from aios_nb.errors import UsageError

log = logging.getLogger("aios_nb.agents")

T = TypeVar("T")
Sink = Callable[[Definition], None]

declared: dict[str, Definition] = program.declared
"""Agents of this program by name, the last definition of each; a starting node hosts them."""

_collector: ContextVar[dict[str, Definition] | None] = ContextVar("agents_collected", default=None)


@overload
def agent(target: T, /) -> T: ...
@overload
def agent(
    *,
    name: str | None = None,
    title: str | None = None,
    about: str | None = None,
    tags: Iterable[str] = (),
    examples: Iterable[str] = (),
    version: str | None = None,
    access: str | None = None,
    engine: str | None = None,
    timeout_s: float = TIMEOUT_S,
    concurrency: int | None = None,
    idempotent: bool = False,
    may_call: Iterable[str] | None = None,
) -> Callable[[T], T]: ...


def agent(
    target: Any = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    about: str | None = None,
    tags: Iterable[str] = (),
    examples: Iterable[str] = (),
    version: str | None = None,
    access: str | None = None,
    engine: str | None = None,
    timeout_s: float = TIMEOUT_S,
    concurrency: int | None = None,
    idempotent: bool = False,
    may_call: Iterable[str] | None = None,
    **unknown: Any,
) -> Any:
    """Offer a function or a class as an agent; returns it unchanged. Again = replace.

    The function takes ``(text)`` or ``(text, ctx)`` and returns text, data, a DataFrame, a figure,
    an ``aios.File``, or a tuple of these; a generator streams. A class is made once, without
    arguments, and its ``run`` is called.

    ``engine``: async code runs ``inline`` on the node's loop, other code in a ``thread``.
    ``timeout_s``: the longest run; the caller's deadline applies too.
    ``version``: counted up each time the agent is replaced, unless it is given.
    ``idempotent``: may run again after a crash. ``access``: private, known, network or public.
    """
    check_options(unknown)
    if isinstance(target, str):
        raise UsageError("@agent takes its settings by keyword", hint=f'name="{target[:48]}"')

    def offer(subject: Any) -> Any:
        declare(
            describe(
                subject,
                name=name,
                title=title,
                about=about,
                tags=tags,
                examples=examples,
                version=version,
                access=access,
                engine=engine,
                timeout_s=timeout_s,
                concurrency=concurrency,
                idempotent=idempotent,
                may_call=may_call,
            )
        )
        return subject

    return offer if target is None else offer(target)


def define(target: Any, /, **card: Any) -> Definition:
    """Offer an object with ``run`` (or anything ``@agent`` takes); the same keywords."""
    definition = describe(target, **card)
    declare(definition)
    return definition


def declare(definition: Definition) -> None:
    """Hand a definition to whoever collects agents now."""
    collected = _collector.get()
    if collected is not None:
        if definition.name in collected:
            log.warning("two agents are called %s; the later one is offered", definition.name)
        collected[definition.name] = definition
        return
    declared[definition.name] = definition
    sink = program.sink
    if sink is not None:  # read once: a node that stops takes it away
        sink(definition)


def name_of(target: Any) -> str | None:
    """The name under which this function, class, object or definition was declared, if it was."""
    for definition in declared.values():
        run = definition.run
        owner = getattr(run, "__self__", None)
        if target is definition or target is run:
            return definition.name
        if owner is not None and (target is owner or target is type(owner)):
            return definition.name
    return None


def set_sink(sink: Sink | None) -> None:
    """From now on each declared agent goes to ``sink`` too; None = to nobody."""
    program.sink = sink


def forget(name: str) -> None:
    """A withdrawn agent does not come back with the next node."""
    declared.pop(name, None)


@contextmanager
def collecting() -> Iterator[dict[str, Definition]]:
    """What is declared inside goes into this dict and nowhere else."""
    collected: dict[str, Definition] = {}
    token = _collector.set(collected)
    try:
        yield collected
    finally:
        _collector.reset(token)
