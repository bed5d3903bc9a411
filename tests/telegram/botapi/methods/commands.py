"""What a bot says about itself: the command menu, its name and descriptions."""

from __future__ import annotations

import re
from typing import Any

from tests.telegram.botapi.errors import bad
from tests.telegram.botapi.methods.table import Asked, method

MOST_COMMANDS = 100
COMMAND = re.compile(r"[a-z0-9_]{1,32}")
LONGEST_DESCRIPTION = 256
SCOPES = {
    "default": (),
    "all_private_chats": (),
    "all_group_chats": (),
    "all_chat_administrators": (),
    "chat": ("chat_id",),
    "chat_administrators": ("chat_id",),
    "chat_member": ("chat_id", "user_id"),
}
TEXTS = {"Name": ("name", 64), "Description": ("description", 512)}
SHORT = ("short_description", 120)


@method("setMyCommands")
def set_my_commands(asked: Asked) -> bool:
    commands = asked.args.json("commands")
    if not isinstance(commands, list):
        raise bad("can't parse commands JSON object")
    if len(commands) > MOST_COMMANDS:
        raise bad("BOT_COMMANDS_TOO_MUCH")
    asked.bot.commands[_where(asked)] = [_command(command) for command in commands]
    return True


@method("getMyCommands")
def get_my_commands(asked: Asked) -> list[dict[str, str]]:
    return asked.bot.commands.get(_where(asked), [])


@method("deleteMyCommands")
def delete_my_commands(asked: Asked) -> bool:
    asked.bot.commands.pop(_where(asked), None)
    return True


def _texts(title: str, field: str, most: int) -> None:
    @method(f"setMy{title}")
    def set_text(asked: Asked) -> bool:
        text = asked.args.text(field)
        if len(text) > most:
            raise bad(f"{field.upper()}_TOO_LONG")
        asked.bot.texts[field, asked.args.text("language_code")] = text
        return True

    @method(f"getMy{title}")
    def get_text(asked: Asked) -> dict[str, str]:
        default = asked.bot.first_name if field == "name" else ""
        language = asked.args.text("language_code")
        return {field: asked.bot.texts.get((field, language), default)}


for _title, (_field, _most) in {**TEXTS, "ShortDescription": SHORT}.items():
    _texts(_title, _field, _most)


def _command(command: Any) -> dict[str, str]:
    if not isinstance(command, dict):
        raise bad("can't parse BotCommand: Object expected")
    name = str(command.get("command", "")).removeprefix("/")
    description = str(command.get("description", ""))
    if not COMMAND.fullmatch(name):
        raise bad("BOT_COMMAND_INVALID")
    if not 1 <= len(description) <= LONGEST_DESCRIPTION:
        raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
    return {"command": name, "description": description}


def _where(asked: Asked) -> tuple[str, str]:
    """Scope and language that the commands are for."""
    scope = asked.args.json("scope") or {"type": "default"}
    if not isinstance(scope, dict) or scope.get("type") not in SCOPES:
        raise bad("can't parse BotCommandScope: Unsupported type specified")
    needed = SCOPES[scope["type"]]
    if any(scope.get(name) is None for name in needed):
        raise bad("can't parse BotCommandScope: Can't find field \"chat_id\"")
    if needed:
        asked.world.find_chat(asked.bot, str(scope["chat_id"]))
    key = ":".join([scope["type"], *(str(scope[name]) for name in needed)])
    return key, asked.args.text("language_code")
