"""How often programs of others are looked at."""

from __future__ import annotations

import msgspec


class Pace(msgspec.Struct, frozen=True):
    """How often imports are looked at."""

    fresh_s: float = 60.0
    """A look counts so long."""
    slowest_s: float = 1800.0
    """One that stays silent is tried less and less often; this often it is tried for ever."""
    turn_s: float = 15.0
    look_s: float = 20.0
    """How long a look may take."""
    meet_s: float = 90.0
    """The same for a first meeting: a command may have to fetch itself first."""

    def pause_s(self, failures: int) -> float:
        doublings = min(failures - 1, 16) if failures else 0
        return min(self.fresh_s * (1 << doublings), max(self.slowest_s, self.fresh_s))
