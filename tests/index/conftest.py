"""The index with each of its engines, and with some agents in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aios_nb.index.hybrid import HybridIndex
from aios_nb.index.lexicon import Lexicon
from aios_nb.index.meaning import Meaning
from aios_nb.index.model import Model
from aios_nb.index.plain import PlainWords
from tests.index.agents import AGENTS

MakeIndex = Callable[[], HybridIndex]


@pytest.fixture(scope="session")
def model() -> Model:
    return Model.load()


@pytest.fixture(params=["tantivy and meaning", "plain and meaning", "tantivy", "plain"])
def make_index(request, model: Model) -> MakeIndex:
    counting = Lexicon if "tantivy" in request.param else PlainWords
    has_meaning = "meaning" in request.param

    def make() -> HybridIndex:
        return HybridIndex(counting, Meaning(model) if has_meaning else None)

    return make


@pytest.fixture
def index(make_index: MakeIndex) -> HybridIndex:
    made = make_index()
    for key, document in AGENTS.items():
        made.put(key, document)
    made.refresh()
    return made


@pytest.fixture
def best(model: Model) -> HybridIndex:
    """The index as nodes have it."""
    made = HybridIndex(Lexicon, Meaning(model))
    for key, document in AGENTS.items():
        made.put(key, document)
    made.refresh()
    return made
