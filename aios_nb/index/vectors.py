"""Numbered points, and which of them are nearest to some others.

Of each point one bit per number is kept, its sign, beside the numbers in steps of 1/127. All points
are compared by their bits, some thousand of the best by the numbers. At 100,000 points the bits are
3 MB and take half a millisecond, where a product with 64 of the numbers as floats takes three, and
no product of matrices means no threads of a mathematics library in somebody's kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from aios_nb.index.model import DIMENSIONS, Floats

Number = TypeVar("Number", bound=np.generic)

SHORTLIST = 1000
"""Points that are compared by their numbers; of the ten nearest of 40,000 it has 95 %."""
_WORDS = DIMENSIONS // 64
_FIRST_ROWS = 256
_GROWTH = 1.25
_STEPS = 127


class Vectors:
    def __init__(self) -> None:
        self._count = 0
        """Rows in use so far; some of them may have been dropped."""
        self._living = 0
        self._signs: npt.NDArray[np.uint64] = np.zeros((_WORDS, 0), np.uint64)
        self._steps: npt.NDArray[np.int8] = np.zeros((0, DIMENSIONS), np.int8)
        self._scale: Floats = np.zeros(0, np.float32)
        """What a step is worth; 0 in a row that was dropped."""
        self._sum = np.zeros(DIMENSIONS, np.float64)

    def put(self, row: int, vector: Floats) -> None:
        """Take a vector of length one, or of zeros, under a number that has none."""
        self._reserve(row + 1)
        self._signs[:, row] = _signs(vector)
        scale = max(float(np.abs(vector).max()), 1e-9) / _STEPS
        self._steps[row] = np.rint(vector / scale)
        self._scale[row] = scale
        self._sum += self._steps[row] * self._scale[row]  # just what ``drop`` takes off again
        self._living += 1

    def drop(self, row: int) -> None:
        self._sum -= self._steps[row] * self._scale[row]
        self._scale[row] = 0.0
        self._living -= 1

    def _reserve(self, rows: int) -> None:
        self._count = max(self._count, rows)
        if rows <= len(self._scale):
            return
        size = max(rows, int(len(self._scale) * _GROWTH), _FIRST_ROWS)
        self._signs = np.ascontiguousarray(_grown(self._signs.T, size).T)
        self._steps = _grown(self._steps, size)
        self._scale = _grown(self._scale, size)

    def usual(self, asked: Floats) -> float:
        """How near all points are to this one on average."""
        return float(self._sum @ asked) / max(1, self._living)

    def nearest(self, asked: Floats, count: int) -> list[int]:
        """The rows that are probably nearest."""
        if count >= self._count:
            return list(range(self._count))
        rows = self._alike(_signs(asked), max(count, SHORTLIST))
        if len(rows) <= count:
            return [int(row) for row in rows]
        best = np.argpartition(self._cosines(rows, asked), -count)[-count:]
        return [int(row) for row in rows[best]]

    def _alike(self, signs: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.intp]:
        """The rows with the fewest other signs: at least so many, and all that are as good.

        A count of 256, all signs other, wraps to none; the numbers put that right.
        """
        other = np.zeros(self._count, np.uint8)
        for part, asked in zip(self._signs[:, : self._count], signs, strict=True):
            other += np.bitwise_count(part ^ asked)
        other[self._scale[: self._count] == 0] = DIMENSIONS - 1  # dropped: behind all others
        having = np.cumsum(np.bincount(other, minlength=DIMENSIONS + 1))
        return np.flatnonzero(other <= np.searchsorted(having, count))

    def cosines(self, rows: Sequence[int], asked: Floats) -> list[float]:
        """How near each of the rows is."""
        found: list[float] = self._cosines(np.asarray(rows, np.intp), asked).tolist()
        return found

    def _cosines(self, rows: npt.NDArray[np.intp], asked: Floats) -> Floats:
        # Not ``@``: for so little a mathematics library would wake its threads.
        found: Floats = np.einsum("ij,j->i", self._steps[rows].astype(np.float32), asked)
        return found * self._scale[rows]


def _signs(vector: Floats) -> npt.NDArray[np.uint64]:
    return np.packbits(vector > 0).view(np.uint64)


def _grown(array: npt.NDArray[Number], rows: int) -> npt.NDArray[Number]:
    larger = np.zeros((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
