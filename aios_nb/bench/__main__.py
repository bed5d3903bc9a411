"""``python -m aios_nb.bench``: the same as ``aios-nb bench``."""

from __future__ import annotations

import sys

from aios_nb.bench import main

sys.exit(main(sys.argv[1:]))
