"""``python -m aios_nb`` is ``aios-nb``."""

import sys

from aios_nb.cli import main

sys.exit(main())
