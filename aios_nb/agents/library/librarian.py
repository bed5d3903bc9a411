"""The agent itself. It runs in a thread, one question at a time.

A question first brings the shelf up to date: files that are new, changed or gone since the last one
are noticed by their size and times. When a run is stopped, its shelf goes with it, because it may
have been stopped anywhere; a run that merely gets late keeps what it has read and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic
from typing import Any

from aios_nb.agents.context import ThreadContext
from aios_nb.agents.library import answers
from aios_nb.agents.library.asking import Asked, Wish, asked
from aios_nb.agents.library.bookmark import Bookmark
from aios_nb.agents.library.shelf import Shelf, Stock, Tell
from aios_nb.config import Limits
from aios_nb.index.documents import Index

SHOWN = 5
LATE_S = 5.0
"""Reading stops this long before the caller stops waiting, or in the last quarter of its time."""
_LATE_SHARE = 0.25
PROGRESS_S = 0.5


def _best_index() -> Index:
    from aios_nb.index.opening import open_index

    return open_index()


class Librarian:
    """Answers about one folder: the one it is given, else the one it remembers."""

    def __init__(
        self,
        folder: Path | None = None,
        bookmark: Bookmark | None = None,
        *,
        avoid: Iterable[Path] = (),
        relative_to: Path | None = None,
        limits: Limits | None = None,
        open_index: Callable[[], Index] = _best_index,
    ) -> None:
        self._bookmark = bookmark or Bookmark()
        self._folder = _real(folder) if folder is not None else self._bookmark.read()
        self._avoid = frozenset(_real(path) for path in avoid)
        """Folders that are never read: the node's own, with its keys."""
        self._relative_to = relative_to
        self._limits = limits or Limits()
        self._open_index = open_index
        self._shelf: Shelf | None = None

    def answer(self, text: str, ctx: ThreadContext) -> tuple[str, dict[str, Any]]:
        is_person = ctx.sender.type == "human"
        wanted = asked(text, _is_folder if is_person else _never)
        if wanted.wish in (Wish.LOOK, Wish.FORGET) and not is_person:
            return answers.not_for_agents(self._folder)
        if wanted.wish is Wish.FORGET:
            return self._forget()
        if wanted.wish is Wish.LOOK:
            refusal = self._turn_to(wanted.folder)
            if refusal is not None:
                return refusal
        if self._folder is None:
            return answers.no_folder()
        return self._from(self._folder, wanted, ctx)

    def _from(self, folder: Path, wanted: Asked, ctx: ThreadContext) -> answers.Said:
        # Taken away for the time of the work, so that nobody meets it half done.
        shelf, self._shelf = self._shelf, None
        if shelf is None or shelf.folder != folder:
            shelf = Shelf(
                folder,
                files_max=self._limits.library_files,
                passages_max=self._limits.library_passages,
                avoid=self._avoid,
                open_index=self._open_index,
            )
        try:
            stock = _brought_up_to_date(shelf, ctx)
        except OSError as error:
            return answers.lost(folder, error)
        found = shelf.search(wanted.question, SHOWN) if wanted.question else []
        self._shelf = shelf
        if not wanted.question:
            return answers.standing(folder, stock)
        return answers.passages(wanted.question, found, folder, stock, self._relative_to)

    def _turn_to(self, named: str) -> answers.Said | None:
        """Look there from now on, or say why not."""
        folder = _real(_path(named))
        if not _is_folder(named):
            return answers.not_there(folder, self._folder)
        if any(own == folder or own in folder.parents for own in self._avoid):
            return answers.own_home(folder, self._folder)
        if folder != self._folder:
            self._folder = folder
            self._bookmark.write(folder)
        return None

    def _forget(self) -> answers.Said:
        folder, self._folder, self._shelf = self._folder, None, None
        self._bookmark.write(None)
        return answers.forgotten(folder)


def _brought_up_to_date(shelf: Shelf, ctx: ThreadContext) -> Stock:
    reserve = min(LATE_S, ctx.deadline * _LATE_SHARE)
    return shelf.update(_teller(ctx), lambda: ctx.deadline < reserve)


def _teller(ctx: ThreadContext) -> Tell:
    """Says at the beginning and then now and again how far the reading is."""
    last = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal last
        if done == 0 or monotonic() - last >= PROGRESS_S:
            last = monotonic()
            ctx.progress(f"reading {total:,} files", done / total)

    return tell


def _path(named: str) -> Path:
    try:
        return Path(named).expanduser()
    except RuntimeError:  # ~name of nobody
        return Path(named)


def _real(path: Path) -> Path:
    try:
        return path.expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # a ring of links, or what no path can have
        return path.absolute()


def _is_folder(named: str) -> bool:
    try:
        return bool(named.strip()) and _path(named).is_dir()
    except (OSError, ValueError):
        return False


def _never(_: str) -> bool:
    return False
