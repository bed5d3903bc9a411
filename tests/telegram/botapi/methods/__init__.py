"""The methods of the Bot API, by name; each module adds those of one noun."""

from tests.telegram.botapi.methods import (
    answers,
    commands,
    drafts,
    editing,
    intake,
    media,
    rooms,
    sending,
    topics,
)
from tests.telegram.botapi.methods.table import METHODS, Asked, Said

__all__ = [
    "METHODS",
    "Asked",
    "Said",
    "answers",
    "commands",
    "drafts",
    "editing",
    "intake",
    "media",
    "rooms",
    "sending",
    "topics",
]
