"""How things look in a cell's output, without widgets: as HTML, and as text where there is none.

``install`` tells IPython about the types of ``aios_nb.site``. They are named, not imported: a
notebook that only loads the extension pays for nothing.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from typing import Any

log = logging.getLogger("aios_nb.notebook")

_ROWS, _REPLIES = "aios_nb.rows", "aios_nb.replies"
_SHOW = "aios_nb.notebook.show"
_RESULTS = f"{_SHOW}.results"

FACES: dict[tuple[str, str], tuple[str, str]] = {
    (_ROWS, "Hits"): ("tables", "hits"),
    (_ROWS, "Peers"): ("tables", "peers"),
    (_ROWS, "Callers"): ("tables", "callers"),
    (_ROWS, "Chats"): ("tables", "chats"),
    (_ROWS, "Imports"): ("guests", "imports"),
    (_ROWS, "Import"): ("guests", "one"),
    (_ROWS, "Catalog"): ("guests", "catalog"),
    (_ROWS, "Rows"): ("tables", "rows"),
    (_ROWS, "Hit"): ("tables", "hit"),
    (_ROWS, "CardView"): ("card", "card"),
    (_ROWS, "History"): ("transcript", "transcript"),
    (_ROWS, "Info"): ("results", "info"),
    (_REPLIES, "Reply"): ("reply", "reply"),
    (_RESULTS, "Note"): ("results", "note"),
    (_RESULTS, "Lines"): ("results", "lines"),
    (_RESULTS, "Status"): ("results", "status"),
    (_RESULTS, "Checkup"): ("results", "health"),
    (_RESULTS, "Table"): ("results", "framed"),
    ("aios_bots.core.bridge", "Code"): ("telegram", "code"),
    ("aios_nb.people.settings_for", "Settings"): ("settings", "settings"),
}
"""Types by module and name, and what makes a bundle of them."""


def install(shell: Any) -> Callable[[], None]:
    """Show our types in this shell; the result ends that."""
    from aios_nb.notebook.show.faces import Faces

    faces = Faces(shell)
    faces.put_on()
    return faces.take_off


def made(kind: tuple[str, str], value: Any) -> dict[str, Any]:
    """The bundle of a value of that kind; nothing when it cannot be made, and then repr is shown.

    A display that fails would fail the cell.
    """
    module, name = FACES[kind]
    try:
        make = getattr(importlib.import_module(f"{_SHOW}.{module}"), name)
        bundle: dict[str, Any] = make(value)
    except Exception:
        log.exception("a %s could not be shown", kind[1])
        return {}
    return bundle
