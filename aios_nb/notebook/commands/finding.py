"""``search``, ``agents``, ``peers``, ``card``."""

from __future__ import annotations

from aios_nb.notebook.commands import Call
from aios_nb.site import CardView, Hits, Peers

_LIMIT = 10


def search(call: Call) -> Hits:
    return call.node().search(call["words"], call["limit"] or _LIMIT)


def agents(call: Call) -> Hits:
    return call.node().agents()


def peers(call: Call) -> Peers:
    return call.node().peers()


def card(call: Call) -> CardView:
    return call.node().card(call["agent"])
