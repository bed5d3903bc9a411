"""What commands give back that is no list and no answer: a status, checks, lines."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from aios_nb.notebook.show import page
from aios_nb.notebook.show.page import Bundle, dim, esc
from aios_nb.people.checks import Check, Health, board
from aios_nb.people.layout import hanging, line_room, seconds, table_lines
from aios_nb.people.wording import NOTEBOOK, typed
from aios_nb.richtext import one_line, plain
from aios_nb.site import Info

_SIGNS = {Health.OK: ("✓", "ok-t"), Health.WARN: ("⚠", "warn-t"), Health.FAIL: ("✗", "bad-t")}
_LABEL = 10
_SAYS = 20
"""Cells before what the doctor says."""
_WHOLE = 16
"""Characters of a word that is not broken: the number of a person has fewer."""


class Note(str):  # noqa: SLOT000 - a text, with a face of its own
    """One line about what was done."""


class Lines(str):  # noqa: SLOT000
    """Text as it is: a log, a traceback, help."""


class Status(msgspec.Struct, frozen=True):
    """How the notebook's node is."""

    title: str
    about: str
    state: str
    rows: Sequence[tuple[str, str]]


class Checkup(msgspec.Struct, frozen=True):
    """What the doctor found."""

    checks: Sequence[Check]

    @property
    def ok(self) -> bool:
        return all(check.health is not Health.FAIL for check in self.checks)


class Table(msgspec.Struct, frozen=True):
    """Rows of plain texts, with what they are."""

    title: str
    about: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def framed(said: Table) -> Bundle:
    body = page.wide([[_cell(cell) for cell in row] for row in said.rows], said.head)
    head = [one_line(title) for title in said.head]
    text = [one_line(said.title), *table_lines(head, said.rows, room=line_room())]
    shown = page.panel(said.title, said.about, body if said.rows else "")
    about = [f"{text[0]}: {one_line(said.about)}" if said.about else text[0]]
    return page.bundle(shown, "\n".join(text if said.rows else about))


def _cell(text: str) -> str:
    """On a narrow page only long words are broken."""
    is_short = all(len(word) <= _WHOLE for word in text.split())
    return esc(text) if is_short else page.free(esc(text))


def note(said: Note) -> Bundle:
    return page.bundle(f'<div style="font-size:13px;opacity:.8">{esc(said)}</div>', one_line(said))


def lines(said: Lines) -> Bundle:
    """Colours of a traceback are for the terminal; a page shows the text."""
    shown = f'<pre class="p" style="max-height:none">{page.lines(said)}</pre>'
    return page.bundle(page.bare(shown), str(said))


def status(said: Status) -> Bundle:
    sign = page.dot({"up": "alive", "starting": "suspect"}.get(said.state, ""))
    head = f'<div class="h">{sign}<b>{esc(said.title)}</b>{dim(said.about)}</div>'
    body = page.table([(page.label(label), page.free(esc(value))) for label, value in said.rows])
    text = [f"{one_line(said.title)}  {one_line(said.about)}".rstrip()]
    text += [
        f"  {one_line(label):{_LABEL}}{hanging(one_line(value), _LABEL + 2)}"
        for label, value in said.rows
    ]
    return page.bundle(page.bare(head + body), "\n".join(text))


def info(said: Info) -> Bundle:
    """What ``node.info()`` tells."""
    return status(
        Status(
            f"node {said.name}",
            said.node_id,
            "up",
            (
                ("address", said.url),
                ("up for", seconds(said.uptime_s)),
                ("agents", f"{said.agents} here, {said.known_agents} of other nodes"),
                ("peers", str(said.peers)),
                ("version", said.version),
            ),
        )
    )


def health(said: Checkup) -> Bundle:
    """A board for each part, with its score."""
    parts, text = [], []
    for title, checks in board(said.checks):
        rows = []
        text.append(title)
        for check in checks:
            sign, kind = _SIGNS[check.health]
            to_do = typed(check.fix, NOTEBOOK)
            fix = f"<br><b>→ {esc(to_do)}</b>" if to_do else ""
            rows.append(
                (
                    f'<span class="{kind}">{sign}</span>',
                    page.label(check.about),
                    page.free(esc(check.says) + fix),
                )
            )
            says = hanging(one_line(check.says), _SAYS)
            text.append(f"{check.health.value:4}  {check.about:12}  {says}")
            if to_do:
                text.append(f"{' ' * _SAYS}→ {hanging(one_line(to_do), _SAYS + 2)}")
        parts.append((title, rows))
    verdict = "all is well" if said.ok else "something must be fixed"
    return page.bundle(page.panel("Doctor", verdict, page.parts(parts)), plain("\n".join(text)))
