"""A text for one person, line by line, with the few styles that we use ourselves."""

from __future__ import annotations

from typing import NamedTuple

from aios_bots.core.model import Rich, Span, SpanKind
from aios_bots.core.spans import units


class Run(NamedTuple):
    text: str
    kind: SpanKind


def bold(text: str) -> Run:
    return Run(text, SpanKind.BOLD)


def code(text: str) -> Run:
    return Run(text, SpanKind.CODE)


class Page:
    """Lines, each of plain and styled stretches. What it is given must be clean."""

    def __init__(self, *first: str | Run) -> None:
        self._text: list[str] = []
        self._spans: list[Span] = []
        self._units = 0
        if first:
            self.line(*first)

    def line(self, *runs: str | Run) -> Page:
        if self._text:
            self._put("\n")
        for run in runs:
            if isinstance(run, Run):
                if run.text:
                    self._spans.append(Span(run.kind, self._units, units(run.text)))
                self._put(run.text)
            else:
                self._put(run)
        return self

    def _put(self, text: str) -> None:
        self._text.append(text)
        self._units += units(text)

    @property
    def rich(self) -> Rich:
        return Rich("".join(self._text), tuple(self._spans))
