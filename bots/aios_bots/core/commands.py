"""The commands a person can give, and who may give them where."""

from __future__ import annotations

import re

import msgspec

from aios_bots.core.pairing import Role

_COMMAND = re.compile(r"/([A-Za-z0-9_]{1,32})(?:@([A-Za-z0-9_]{1,64}))?(?:\s+(.*))?", re.DOTALL)


class Command(msgspec.Struct, frozen=True):
    least: Role
    """What somebody must be at least. Only a code may be said by strangers."""
    about: str
    takes: str = ""
    private: bool = False
    """Only in a private chat."""


COMMANDS: dict[str, Command] = {
    "start": Command(Role.GUEST, "say hello, or come in with a code", "[CODE]", private=True),
    "help": Command(Role.GUEST, "what you can do here"),
    "pair": Command(Role.GUEST, "come in with a code from the notebook", "CODE", private=True),
    "id": Command(Role.GUEST, "your number here, for the owner"),
    "unpair": Command(Role.GUEST, "leave for good", private=True),
    "search": Command(Role.GUEST, "find agents", "WORDS"),
    "agents": Command(Role.GUEST, "the agents you can talk to"),
    "agent": Command(Role.GUEST, "what an agent is and does", "NAME"),
    "chats": Command(Role.GUEST, "your conversations", private=True),
    "watch": Command(Role.GUEST, "read along in a conversation of /chats", "N"),
    "who": Command(Role.GUEST, "who is in this conversation"),
    "history": Command(Role.GUEST, "what was said before", "[N]"),
    "status": Command(Role.GUEST, "how the bridge is doing"),
    "leave": Command(Role.GUEST, "leave this conversation"),
    "mute": Command(Role.GUEST, "be quiet for a while", "[1h]"),
    "chat": Command(Role.MEMBER, "talk to an agent", "NAME [TEXT]"),
    "new": Command(Role.MEMBER, "begin a new conversation"),
    "join": Command(Role.MEMBER, "go on in a conversation of /chats, or of a code", "N|CODE"),
    "stop": Command(Role.MEMBER, "stop the reply that is being written"),
    "file": Command(Role.MEMBER, "get a file of this conversation", "[NAME]"),
    "invite": Command(Role.OWNER, "a code for somebody else", "[ROLE]", private=True),
}


class Said(msgspec.Struct, frozen=True):
    """A command as it was typed."""

    name: str
    rest: str = ""
    bot: str = ""
    """Which bot is meant, if it says so."""


def said(text: str) -> Said | None:
    """The command in a text; None for other text, and for ``//x``, which means ``/x`` literally."""
    found = _COMMAND.fullmatch(text.strip())
    return Said(found[1].lower(), (found[3] or "").strip(), found[2] or "") if found else None
