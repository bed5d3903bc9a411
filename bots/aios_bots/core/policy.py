"""Who may do what from a chat app: nobody anything, unless a rule here says so.

Every update comes through ``rule``, whatever its kind: a check that only messages pass leaves
edits, buttons and reactions open. A person is a number that the app gave; names can be chosen.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from aios_bots.core.commands import COMMANDS, Command, Said, said
from aios_bots.core.model import ChatKind, Incoming, Kind, Sender, SenderKind
from aios_bots.core.pairing import Role

NEVER_PEOPLE = {"tg": frozenset({"777000", "1087968824", "136817688"})}
"""Numbers of an app that stand for many: Telegram's linked channels, its anonymous admins, and
channels that speak in groups."""
_ID_MAX_CHARS = 20
RANK = {None: 0, Role.GUEST: 1, Role.MEMBER: 2, Role.OWNER: 3}


class Act(StrEnum):
    TAKE = "take"
    """It is done, or said in the conversation."""
    PAIR = "pair"
    """Somebody says a code."""
    HELLO = "hello"
    """One neutral line, once a day, and nothing else."""
    REFUSE = "refuse"
    """It is not done, and the person is told why."""
    DROP = "drop"
    """Nothing happens."""


class Reason(StrEnum):
    ALLOWED = "allowed"
    FACT = "fact"
    """The app says where the bot can speak; whoever caused it, it gives no right."""
    CODE = "code"
    STRANGER = "stranger"
    NOT_A_PERSON = "not a person"
    FORWARDED = "forwarded command"
    NOT_MEANT = "not addressed"
    GROUP_OFF = "group not enabled"
    READ_ONLY = "may only read"
    OWNER_ONLY = "for the owner"
    PRIVATE_ONLY = "in a private chat only"
    UNKNOWN_MESSAGE = "about a message we do not know"
    NO_RULE = "no rule for this"
    TOO_FAST = "too fast"
    TOO_LONG = "too long"
    TOO_LARGE = "file too large"


QUIET = frozenset({Reason.ALLOWED, Reason.FACT, Reason.NOT_MEANT, Reason.UNKNOWN_MESSAGE})
"""Not worth a line in the audit: it is everyday."""


class Ruling(msgspec.Struct, frozen=True):
    act: Act
    reason: Reason


class _Rule(msgspec.Struct, frozen=True):
    least: Role
    meant: bool = False
    """The bot must be addressed."""
    known: bool = False
    """The message that it is about must be in a conversation already."""


_RULES: dict[tuple[ChatKind, Kind], _Rule] = {
    (ChatKind.PRIVATE, Kind.MESSAGE): _Rule(Role.MEMBER),
    (ChatKind.PRIVATE, Kind.EDIT): _Rule(Role.MEMBER, known=True),
    (ChatKind.PRIVATE, Kind.REACTION): _Rule(Role.MEMBER, known=True),
    (ChatKind.PRIVATE, Kind.BUTTON): _Rule(Role.GUEST),
    (ChatKind.PRIVATE, Kind.STOP): _Rule(Role.MEMBER),
    (ChatKind.GROUP, Kind.MESSAGE): _Rule(Role.MEMBER, meant=True),
    (ChatKind.GROUP, Kind.EDIT): _Rule(Role.MEMBER, known=True),
    (ChatKind.GROUP, Kind.REACTION): _Rule(Role.MEMBER, known=True),
    (ChatKind.GROUP, Kind.BUTTON): _Rule(Role.GUEST),
    (ChatKind.GROUP, Kind.STOP): _Rule(Role.MEMBER),
}
"""What is not here does not happen. Commands have their own table, inline searches need a guest."""


def is_person(platform: str, sender: Sender) -> bool:
    """Whether this is one person, by a number of the app."""
    return (
        sender.kind is SenderKind.PERSON
        and 0 < len(sender.id) <= _ID_MAX_CHARS
        and sender.id.isascii()
        and sender.id.isdecimal()
        and sender.id not in NEVER_PEOPLE.get(platform, ())
    )


def rule(
    update: Incoming, role: Role | None, *, group_on: bool = False, known: bool = False
) -> Ruling:
    """What becomes of an update: the first line of the table that holds.

    ``role``: of its sender with this bot, None for a stranger. ``group_on``: the owner let the bot
    speak in this group. ``known``: the message that it is about is in a conversation.
    """
    command = said(update.text) if update.kind is Kind.COMMAND else None
    ours = COMMANDS.get(command.name) if command is not None else None
    found = _rule_for(update, ours)
    need = found or _Rule(Role.OWNER)
    private = update.chat_kind is ChatKind.PRIVATE
    in_group = update.chat_kind is ChatKind.GROUP and update.kind is not Kind.INLINE
    spoken = update.kind in {Kind.MESSAGE, Kind.COMMAND}
    stranger = role is None
    opens = ours is not None and role is Role.OWNER  # the owner lets the bot in by a command
    too_low = Reason.OWNER_ONLY if need.least is Role.OWNER else Reason.READ_ONLY
    table = (
        (update.kind is Kind.MEMBERSHIP, Act.TAKE, Reason.FACT),
        (not is_person(update.platform, update.sender), Act.DROP, Reason.NOT_A_PERSON),
        (update.chat_kind is ChatKind.CHANNEL, Act.DROP, Reason.NOT_A_PERSON),
        (update.kind is Kind.COMMAND and update.forwarded, Act.DROP, Reason.FORWARDED),
        (in_group and need.meant and not update.addressed, Act.DROP, Reason.NOT_MEANT),
        (stranger and not (private and spoken), Act.DROP, Reason.STRANGER),
        (private and _has_code(command), Act.PAIR, Reason.CODE),
        (stranger, Act.HELLO, Reason.STRANGER),
        (found is None, Act.DROP, Reason.NO_RULE),
        (in_group and not group_on and not opens, Act.DROP, Reason.GROUP_OFF),
        (ours is not None and ours.private and not private, Act.REFUSE, Reason.PRIVATE_ONLY),
        (need.known and not known, Act.DROP, Reason.UNKNOWN_MESSAGE),
        (RANK[role] < RANK[need.least], Act.REFUSE, too_low),
        (True, Act.TAKE, Reason.ALLOWED),
    )
    return next(Ruling(act, reason) for holds, act, reason in table if holds)


def _rule_for(update: Incoming, ours: Command | None) -> _Rule | None:
    """What an update needs. A command that is not ours may be the agent's: then it is a message."""
    if update.kind is Kind.INLINE:
        return _Rule(Role.GUEST)
    if ours is not None:
        return _Rule(ours.least, meant=True)
    kind = Kind.MESSAGE if update.kind is Kind.COMMAND else update.kind
    return _RULES.get((update.chat_kind, kind))


def _has_code(command: Said | None) -> bool:
    return command is not None and command.name in {"pair", "start"} and bool(command.rest)
