"""Programs of others, and the catalogs of others, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from aios_nb.notebook.show import page
from aios_nb.notebook.show.page import Bundle, dim, dot, esc
from aios_nb.notebook.show.tables import aligned, nothing
from aios_nb.people.guests import added, how_to_add, remarks
from aios_nb.people.wording import NOTEBOOK
from aios_nb.site import Catalog, Import, Imports, Listed

_TYPED = NOTEBOOK.command


def imports(found: Imports) -> Bundle:
    """All of them: who answers, what changed, and what to type then."""
    if not found:
        return nothing(found)
    changed = sum(row.changed for row in found)
    title = f"{len(found)} program{'s' if len(found) > 1 else ''} of others"
    about = f"{changed} changed since you approved" if changed else "none of it is verified by us"
    text = aligned(
        ("NAME", "KIND", "STATE", "ACCESS", "ADDRESS"),
        [(row.name, row.kind, row.state, row.access, row.place) for row in found],
        [" · ".join(remarks(row, _TYPED)) for row in found],
    )
    return page.bundle(page.panel(title, about, page.wide(map(_cells, found))), text)


def one(row: Import) -> Bundle:
    """What was brought in, just now or before."""
    words = "\n".join([added(row), *remarks(row, _TYPED)])
    return page.bundle(page.bare(page.wide([_cells(row)])), words)


def _cells(row: Import) -> Sequence[str]:
    name = page.keep(f"<b>{esc(row.name)}</b>") + f"<br>{page.tags([row.kind])}"
    about = f"{esc(row.title)}<br>{page.mono(row.place)}"
    return (
        dot("suspect" if row.changed else "alive" if row.live else ""),
        name,
        page.free(about + "".join(f"<br>{_said(line)}" for line in remarks(row, _TYPED))),
        page.keep(f"{_state(row)}<br>{dim(row.access)}"),
    )


def _said(line: str) -> str:
    return f"<b>{esc(line)}</b>" if line.startswith("→") else dim(line)


def _state(row: Import) -> str:
    if row.changed:
        return '<span class="warn-t">⚠ changed</span>'
    return dim("not verified" if row.live else row.state)


def catalog(found: Catalog) -> Bundle:
    """What it lists, and what to type to bring one in."""
    if not found:
        return nothing(found)
    title = f"{len(found)} in this catalog"
    body = page.wide([_listed(row) for row in found])
    text = aligned(
        ("NAME", "KIND", "ABOUT"),
        [(row.name, row.kind or "?", row.about) for row in found],
        [how_to_add(row, _TYPED) for row in found],
    )
    return page.bundle(page.panel(title, "its words; nothing of it was asked or added", body), text)


def _listed(row: Listed) -> Sequence[str]:
    name = page.keep(f"<b>{esc(row.name)}</b>") + f"<br>{page.tags([row.kind or '?'])}"
    typed = f"<br><code>{esc(how_to_add(row, _TYPED))}</code>"
    return name, page.free(esc(row.about) + typed)
