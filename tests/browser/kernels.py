"""What the kernel under test can do; ``make matrix`` has older ones too."""

from __future__ import annotations

import ipykernel
import pytest

HEARS_BESIDE_A_CELL = ipykernel.version_info[0] >= 7  # the first with subshells
MAY_HANG = (7, 0) <= ipykernel.version_info[:2] < (7, 4)
"""When a request comes in the moment in which it sends its last reply; 7.4 has repaired that."""

hears_beside_a_cell = pytest.mark.skipif(
    not HEARS_BESIDE_A_CELL, reason="this ipykernel hears a page when the cell is over"
)
hears_after_a_cell = pytest.mark.skipif(
    HEARS_BESIDE_A_CELL, reason="this ipykernel hears a page beside a busy cell"
)
