from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from aios_nb.bench import labelled
from aios_nb.index.model import Model
from aios_nb.index.pieces import BEGINS, WORD_MAX_CHARS, Pieces

FOLDER = Path(importlib.util.find_spec("wordllama").submodule_search_locations[0])
FILE = FOLDER / "tokenizers/l2_supercat_tokenizer_config.json"


@pytest.fixture(scope="module")
def pieces() -> Pieces:
    return Pieces.load(FILE)


def test_words_fall_into_the_same_pieces_as_with_the_models_own_tokenizer(pieces) -> None:
    tokenizer = Tokenizer.from_file(str(FILE))
    texts = [
        text
        for name in labelled.OWN
        for document in labelled.own(name).documents.values()
        for text in (document.name, document.title, document.about)
    ]
    texts += [
        "汇率换算 GPT翻译",
        "Größe café naïve",
        "😀 x\u0301y",
        "привет мир",
        "don't e-mail 3.14",
    ]
    for text in texts:
        plain = " ".join(text.split())
        assert pieces.of(plain) == tokenizer.encode(plain, add_special_tokens=False).ids


def test_a_word_is_known_if_it_is_one_piece(pieces) -> None:
    assert pieces.knows("weather")
    assert not pieces.knows("wether")
    assert len(pieces.of("weather")) == 1
    assert pieces._numbers[BEGINS + "weather"] == pieces.of("weather")[0]


def test_a_huge_word_is_cut(pieces) -> None:
    assert pieces.of("qx" * 10_000) == pieces.of(("qx" * 10_000)[:WORD_MAX_CHARS])


def test_what_means_alike_is_near(model: Model) -> None:
    money = model.embed("exchange dollars for euros")
    assert money @ model.embed("currency rates") > money @ model.embed("dog training")
    assert money @ money == pytest.approx(1.0, abs=1e-5)


def test_a_text_without_words_is_nowhere(model: Model) -> None:
    assert not np.any(model.embed(""))
    assert not np.any(model.embed("  "))


def test_files_that_do_not_fit_are_refused(tmp_path, monkeypatch) -> None:
    fake = tmp_path / "tokenizers"
    fake.mkdir()
    (fake / FILE.name).write_text('{"vocab": {"a": 0}, "merges": []}')
    weights = FOLDER / "weights"
    (tmp_path / "weights").symlink_to(weights)
    spec = importlib.util.find_spec("wordllama")
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
    with pytest.raises(OSError, match="do not fit"):
        Model.load()
