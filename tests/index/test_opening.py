from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest

from aios_nb.index import opening
from tests.index.agents import AGENTS


@pytest.fixture(autouse=True)
def _forget() -> None:
    opening._model.cache_clear()
    opening._warn.cache_clear()


@pytest.mark.parametrize(
    ("missing", "modules"),
    [
        ("tantivy", ["tantivy", "aios_nb.index.lexicon"]),
        ("numpy", ["numpy", "aios_nb.index.model", "aios_nb.index.meaning"]),
    ],
)
def test_what_cannot_be_loaded_is_said_once_and_words_still_answer(
    missing, modules, monkeypatch, caplog
) -> None:
    for name in modules:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            index = opening.open_index()
            for key, document in AGENTS.items():
                index.put(key, document)
            index.refresh()
            assert index.search("train tickets")[0].key == "train"
    assert len(caplog.records) == 1
    assert missing in caplog.text or "wordllama" in caplog.text


def test_the_model_is_read_without_the_package_that_brings_it() -> None:
    """Importing ``wordllama`` would set up logging for the whole process."""
    code = (
        "import json, logging, sys, socket\n"
        "def refuse(*_): raise AssertionError('no network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from aios_nb.index.opening import open_index\n"
        "index = open_index()\n"
        "print(json.dumps([index._meaning is not None, 'wordllama' in sys.modules,"
        " len(logging.getLogger().handlers)]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert json.loads(done.stdout) == [True, False, 0]


def test_heavy_libraries_load_with_the_first_index_only() -> None:
    code = (
        "import sys; import aios_nb.hub.searching, aios_nb.index.documents\n"
        "print([name for name in ('numpy', 'tantivy', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.split() == [b"[]"]
