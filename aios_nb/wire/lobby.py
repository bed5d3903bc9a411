"""All doors of a node for programs that speak another protocol than ours."""

from __future__ import annotations

from aios_nb.config import Limits
from aios_nb.identity import Identity
from aios_nb.ports import Blobs
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.doors import Door, Facts


class Lobby:
    """Makes the doors of one node, by path."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        identity: Identity,
        facts: Facts,
        blobs: Blobs,
        limits: Limits,
        *,
        conformance: bool,
    ) -> None:
        self._calls = dispatcher.for_anyone()
        self._identity = identity
        self._facts = facts
        self._blobs = blobs
        self._limits = limits
        self._conformance = conformance

    def doors(self) -> dict[str, Door]:
        """What ``Server`` takes; heavy ones are loaded when somebody first comes."""
        return {}
