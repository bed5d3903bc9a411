"""The menu of commands that an app shows, for each kind of chat."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aios_bots.adapters.telegram.answers import Lost, Refused
from aios_bots.core.adapter import Absent
from aios_bots.core.commands import COMMANDS, Command
from aios_bots.core.pairing import Role

Ask = Callable[[str, dict[str, Any]], Awaitable[bytes]]
TRIES = 5
PAUSE_S = 10.0
"""Between two tries when the line breaks."""
_ABOUT_MAX_CHARS = 256


async def set_menu(
    ask: Ask, owners: Sequence[str] = (), gone: Sequence[str] = (), pause_s: float = PAUSE_S
) -> None:
    """Say which commands there are; the owners' chats show theirs too. Not a must.

    ``gone``: who is an owner no more, and sees what everybody sees.
    """
    private = _menu(lambda command: command.least is not Role.OWNER)
    everything = _menu(lambda _: True)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("setMyCommands", {"commands": private, "scope": {"type": "default"}}),
        ("setMyCommands", {"commands": private, "scope": {"type": "all_private_chats"}}),
        (
            "setMyCommands",
            {
                "commands": _menu(lambda command: not command.private),
                "scope": {"type": "all_group_chats"},
            },
        ),
        *(("setMyCommands", {"commands": everything, "scope": _chat(one)}) for one in owners),
        *(("deleteMyCommands", {"scope": _chat(one)}) for one in gone),
    ]
    for method, params in calls:
        if not await _called(ask, method, params, pause_s):
            return


async def _called(ask: Ask, method: str, params: dict[str, Any], pause_s: float) -> bool:
    """Whether to go on with the next one."""
    for _ in range(TRIES):
        try:
            await ask(method, params)
        except Absent:
            return False
        except Lost:
            await asyncio.sleep(pause_s)
        except Refused as refused:
            if not refused.pause_s:
                return True  # a chat that is not there any more, a scope that is not known
            await asyncio.sleep(refused.pause_s)
        else:
            return True
    return False


def _chat(person: str) -> dict[str, str]:
    """Their private chat, which has their number."""
    return {"type": "chat", "chat_id": person}


def _menu(fits: Callable[[Command], bool]) -> list[dict[str, str]]:
    return [
        {"command": name, "description": command.about[:_ABOUT_MAX_CHARS]}
        for name, command in COMMANDS.items()
        if fits(command)
    ]
