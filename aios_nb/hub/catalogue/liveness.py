"""Whether an agent is to be shown, from its record and what is known of its node."""

from __future__ import annotations

from aios_nb.hub.others import Light
from aios_nb.records import AgentRecord, is_live

_LIGHTS = {"alive": Light.LIVE, "suspect": Light.SUSPECT}


def light_of(record: AgentRecord, state: str | None, epoch: int | None) -> Light:
    """How the agent stands if its node is in this state (``alive``, ``suspect``, …; None: unknown).

    A restarted node offers only what it published in this life: any other epoch is a ghost.
    """
    light = Light.GONE if state is None else _LIGHTS.get(state, Light.GONE)
    return light if is_live(record, epoch) else Light.GONE
