"""Texts as points: near ones mean something alike.

The model is a table with one row per piece of a word; a text is the mean of its rows. It comes
inside the wheel of ``wordllama`` and is read from there: importing that package sets up logging for
the whole process, and its own loader looks for files on the network.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

from aios_nb.index.pieces import Pieces

Floats = npt.NDArray[np.float32]

DIMENSIONS = 256
TOKENS_MAX = 512
"""Of one text: the mean of more says less."""
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_PIECES = "tokenizers/l2_supercat_tokenizer_config.json"
_TABLE = "embedding.weight"


class Model:
    """Turns a text into a vector of length one. No network, no threads of its own."""

    def __init__(self, table: npt.NDArray[np.float16], pieces: Pieces) -> None:
        self._table = table.view(np.uint16)
        # Looking the few values up is four times as fast as turning halves into floats each time.
        every = np.arange(1 << 16, dtype=np.uint16)
        self._floats: Floats = every.view(np.float16).astype(np.float32)
        self._pieces = pieces

    @classmethod
    def load(cls) -> Model:
        """Read from the installed ``wordllama``. Raises ``ImportError`` or ``OSError``."""
        spec = importlib.util.find_spec("wordllama")
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError("No module named 'wordllama'", name="wordllama")
        folder = Path(spec.submodule_search_locations[0])
        table, pieces = _read_table(folder / _WEIGHTS), Pieces.load(folder / _PIECES)
        if len(pieces) != len(table):
            raise OSError(f"{len(pieces)} pieces do not fit a table of {len(table)} rows")
        return cls(table, pieces)

    def knows(self, word: str) -> bool:
        """Whether the table has this folded word as a whole; then it is one, and well placed."""
        return self._pieces.knows(word)

    def embed(self, text: str) -> Floats:
        """Where the text lies; zeros for one without any word."""
        pieces = self._pieces.of(text)[:TOKENS_MAX]
        if not pieces:
            return np.zeros(DIMENSIONS, np.float32)
        total: Floats = np.add.reduce(self._floats[self._table[pieces]])
        return total / max(float(np.sqrt(total @ total)), 1e-9)


def _read_table(path: Path) -> npt.NDArray[np.float16]:
    """The table, left on disk until its rows are used.

    A safetensors file is the length of its head, the head as JSON, and the plain numbers.
    """
    with path.open("rb") as file:
        head_bytes = int.from_bytes(file.read(8), "little")
        head = json.loads(file.read(head_bytes))
    entry = head[_TABLE]
    if entry["dtype"] != "F16" or entry["shape"][1] != DIMENSIONS:
        raise OSError(f"{path.name} is not the table we know")
    begin, _ = entry["data_offsets"]
    shape = tuple(entry["shape"])
    mapped = np.memmap(path, np.float16, "r", offset=8 + head_bytes + begin, shape=shape)
    return np.asarray(mapped)
