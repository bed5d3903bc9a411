"""Bridges to chat apps in the words of their owner."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import datetime

from aios_bots.core.bridge import Code
from aios_bots.core.pairing import Role
from aios_bots.core.people import Line, Person
from aios_nb.bridges.bot import Card
from aios_nb.people.layout import seconds
from aios_nb.richtext import one_line

PEOPLE_HEAD = ("ID", "NAME", "ROLE", "AGENTS", "SINCE")
TRIED_HEAD = ("WHEN", "WHO", "WHAT", "DETAIL")
_ROLES = {
    Role.OWNER: "for you: all your agents, and everything the bot can do",
    Role.MEMBER: "for somebody who talks to agents that others may use",
    Role.GUEST: "for somebody who reads along",
}
_TRIED = {"told once": "that the bot is private"}
_HALF = 4


def name_of(card: Card) -> str:
    """What people call the bot."""
    return one_line(f"@{card.status.name}" if card.status.name else f"bot {card.account}")


def in_short(card: Card, *, bridged: bool) -> str:
    """One line: which bot, and how it is."""
    status = card.status
    if not bridged:
        ended = status.state in {"running", "stopped", "starting", "not started"}
        return "stopped" if ended else one_line(f"stopped: {status.state}")
    return one_line(status.trouble) if status.trouble else "running"


def rows(card: Card, *, bridged: bool) -> list[tuple[str, str]]:
    """How a bridge is doing, a label and a line each; what is as it should be is left out."""
    status, post = card.status, card.status.post
    found = [
        ("bridge", in_short(card, bridged=bridged)),
        ("node", card.node),
        ("people", f"{status.people} paired" if status.people else "nobody is paired yet"),
    ]
    if status.places:
        found.append(("chats", f"{status.places} with a conversation"))
    if status.waiting_in:
        found.append(("in", f"{status.waiting_in} waiting for the node"))
    if post.waiting:
        found.append(("out", f"{post.waiting} waiting, the oldest for {seconds(post.lag_s)}"))
    if post.gates:
        longest = seconds(max(post.gates.values()))
        found.append(("paused", f"{len(post.gates)} chats by Telegram, for {longest} at most"))
    found += [("gone", f"chat {chat}: {why}") for chat, why in post.parked.items()]
    if post.repeated:
        found.append(("repeated", f"{post.repeated} messages may be there twice"))
    if post.uncertain:
        found.append(("uncertain", f"{post.uncertain} messages may not be there"))
    if post.dead:
        found.append(("refused", f"{post.dead} calls were never taken"))
    if status.again:
        found.append(("again", f"{status.again} updates came twice; the second did nothing"))
    if status.aside:
        found.append(("aside", f"{status.aside} updates could not be dealt with"))
    found += [("note", note) for note in status.notes]
    return [(label, one_line(said)) for label, said in found]


def spelled(code: str) -> str:
    """A code so that it can be read aloud."""
    return f"{code[:_HALF]}-{code[_HALF:]}"


def about_code(code: Code) -> Iterator[str]:
    """What to do with a code, line by line."""
    if code.link:
        yield f"open {code.link}"
    yield f"{'or ' if code.link else ''}send the bot: /pair {spelled(code.code)}"
    yield from for_whom(code)


def for_whom(code: Code) -> Iterator[str]:
    """What a code gives, and for how long."""
    yield f"{_ROLES[code.role]}; once, within {int(code.expires_s // 60)} minutes"
    if code.conversation:
        yield f"it leads into the conversation; who is in already: /join {spelled(code.code)}"


def people_rows(people: tuple[Person, ...]) -> list[tuple[str, ...]]:
    return [
        (one.user_id, one.name, one.role.value, ", ".join(one.agents) or "all", when(one.added))
        for one in people
    ]


def tried_rows(lines: tuple[Line, ...]) -> list[tuple[str, ...]]:
    """Who is their number, as among people."""
    return [
        (
            when(line.at),
            line.who.rpartition(":")[2],
            line.what,
            line.detail or _TRIED.get(line.what, ""),
        )
        for line in lines
    ]


def when(at_ms: int) -> str:
    """A moment, in the time of this machine."""
    return f"{datetime.fromtimestamp(at_ms / 1000).astimezone():%Y-%m-%d %H:%M}"


def qr_lines(link: str) -> str:
    """A link as a QR code for a terminal; empty if that cannot be drawn here."""
    try:
        import segno
    except ImportError:
        return ""
    drawn = io.StringIO()
    segno.make(link, error="m", micro=False).terminal(drawn, border=2, compact=True)
    return drawn.getvalue().rstrip("\n")


def qr_picture(link: str) -> str:
    """The same as a picture in a ``data:`` address; empty if segno is not installed."""
    try:
        import segno
    except ImportError:
        return ""
    drawn: str = segno.make(link, error="m", micro=False).png_data_uri(scale=5, border=3)
    return drawn
