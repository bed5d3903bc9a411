"""The bots of this home: those that are bridged, and how that goes."""

from __future__ import annotations

from collections.abc import Iterator

from aios_nb.bridges.bot import Bot, bots
from aios_nb.home import Home
from aios_nb.people.bridges import in_short, name_of
from aios_nb.people.checks import Check, ok, warn


def bridges(home: Home) -> Iterator[Check]:
    """One line a bot that was ever bridged here."""
    yield from map(_of, bots(home))


def _of(bot: Bot) -> Check:
    card, bridged = bot.card(), bot.is_bridged
    if card is None:
        return ok("telegram", f"bot {bot.account} was never up")
    name, how = name_of(card), in_short(card, bridged=bridged)
    if bridged and not card.status.trouble:
        return ok("telegram", f"{name} bridges the node {card.node}; {len(card.people)} paired")
    if bridged:
        return warn("telegram", f"{name}: {how}", "it goes on trying; aios-nb telegram status")
    if how == "stopped":
        return ok("telegram", f"{name} is not bridged now; aios-nb telegram starts it")
    return warn("telegram", f"{name} {how}", "start it again: aios-nb telegram")
