"""What a message from an app says in a conversation."""

from __future__ import annotations

from aios_bots.core.commands import said
from aios_bots.core.desk.rights import silenced
from aios_bots.core.desk.visit import Visit
from aios_bots.core.model import Incoming
from aios_nb.richtext import one_line, plain

QUOTE_CHARS = 160


def spoken(visit: Visit, incoming: Incoming) -> str:
    """The words themselves: without our command before them, quoted if they are not their own."""
    text = plain(incoming.text)
    if incoming.forwarded:
        return forwarded(visit, text)
    command = said(text)
    if command is not None and command.name == "chat":
        return named(command.rest)[1]
    return text[1:] if text.startswith("//") else text


def named(rest: str) -> tuple[str, str]:
    """A name, and what is said behind it."""
    words = rest.strip().split(None, 1)
    return (words[0] if words else ""), (words[1].strip() if len(words) > 1 else "")


def forwarded(visit: Visit, text: str) -> str:
    """Somebody else's words: marked, and calling nobody."""
    head = f"forwarded by {visit.name}:"
    if not text.strip():
        return head
    return "\n".join([head, *(f"> {line}".rstrip() for line in silenced(text).splitlines())])


def reply(who: str, quoted: str, text: str) -> str:
    """An answer to what a person said: that in short above it."""
    line = silenced(one_line(quoted, QUOTE_CHARS))
    return f"> {silenced(who)}: {line}\n\n{text}" if line else text
