"""The best index that can be had here."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

from aios_nb.index.hybrid import HybridIndex

if TYPE_CHECKING:
    from aios_nb.index.meaning import Meaning
    from aios_nb.index.model import Model

log = logging.getLogger("aios_nb.index")


def open_index() -> HybridIndex:
    """An empty index: words and meaning, or what of that can be loaded. Slow the first time."""
    try:
        from aios_nb.index.lexicon import Lexicon
    except ImportError as error:
        _warn("tantivy", str(error), "words are counted in plain Python, slower")
        from aios_nb.index.plain import PlainWords

        return HybridIndex(PlainWords, _meaning())
    return HybridIndex(Lexicon, _meaning())


def open_plain() -> HybridIndex:
    """An empty index that knows words only; for a few documents, at once."""
    from aios_nb.index.plain import PlainWords

    return HybridIndex(PlainWords, None)


def _meaning() -> Meaning | None:
    model = _model()
    if model is None:
        return None
    from aios_nb.index.meaning import Meaning

    return Meaning(model)


@functools.cache
def _model() -> Model | None:
    """One for the whole process: it is only read."""
    try:
        from aios_nb.index.model import Model

        return Model.load()
    except Exception as error:  # noqa: BLE001  the files of another version can fail in any way
        _warn("wordllama", str(error), "search knows words only")
        return None


@functools.cache
def _warn(package: str, error: str, effect: str) -> None:
    """Said once for each reason."""
    log.warning("%s cannot be loaded (%s): %s", package, error, effect)
