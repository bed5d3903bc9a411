"""Nobody may do anything from a chat app unless a rule says so."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aios_bots.core import flood
from aios_bots.core.commands import COMMANDS, Said, said
from aios_bots.core.flood import Flood
from aios_bots.core.model import Attachment, ChatKind, Incoming, Kind, Place, Sender, SenderKind
from aios_bots.core.pairing import Role
from aios_bots.core.policy import Act, Reason, Ruling, rule
from tests.clock import Clock

ROLES = [None, *Role]
TALKING = (Kind.MESSAGE, Kind.EDIT, Kind.REACTION, Kind.STOP)


def update(
    kind: Kind = Kind.MESSAGE,
    chat: ChatKind = ChatKind.PRIVATE,
    text: str = "hello",
    sender: Sender | None = None,
    **more,
) -> Incoming:
    given_fields = {"addressed": True, **more}
    return Incoming(
        platform="tg",
        place=Place("77", "5"),
        chat_kind=chat,
        sender=sender or Sender("5", "Ann"),
        update_id=1,
        kind=kind,
        at=0.0,
        text=text,
        **given_fields,
    )


@pytest.mark.parametrize("kind", list(Kind))
def test_a_stranger_changes_nothing(kind: Kind) -> None:
    flags = [False, True]
    for chat, group_on, known, addressed in product(ChatKind, flags, flags, flags):
        asked = update(kind, chat, text="/status", addressed=addressed)
        found = rule(asked, None, group_on=group_on, known=known)
        if kind is Kind.MEMBERSHIP:
            assert found == Ruling(Act.TAKE, Reason.FACT)
        else:
            assert found.act in {Act.DROP, Act.HELLO}
            assert found.act is Act.DROP or chat is ChatKind.PRIVATE


@pytest.mark.parametrize(
    "sender",
    [
        Sender("5", kind=SenderKind.BOT),
        Sender("5", kind=SenderKind.CHAT),
        Sender("", kind=SenderKind.NOBODY),
        Sender(""),
        Sender("ann"),
        Sender("@ann"),
        Sender("-100123"),
        Sender("\u0665"),  # a digit, but not of the app
        Sender("9" * 30),
        Sender("1087968824"),
        Sender("777000"),
        Sender("136817688"),
    ],
)
def test_only_a_number_of_one_person_is_somebody(sender: Sender) -> None:
    for kind, chat in product(set(Kind) - {Kind.MEMBERSHIP}, ChatKind):
        asked = update(kind, chat, text="/start ABCDEFGH", sender=sender)
        found = rule(asked, Role.OWNER, group_on=True, known=True)
        assert found == Ruling(Act.DROP, Reason.NOT_A_PERSON)


@pytest.mark.parametrize(("kind", "role"), list(product(TALKING, Role)))
@pytest.mark.parametrize("chat", [ChatKind.PRIVATE, ChatKind.GROUP])
def test_members_talk_and_guests_only_read(kind, role, chat) -> None:
    found = rule(update(kind, chat), role, group_on=True, known=True)
    if role is Role.GUEST:
        assert found == Ruling(Act.REFUSE, Reason.READ_ONLY)
    else:
        assert found == Ruling(Act.TAKE, Reason.ALLOWED)


@pytest.mark.parametrize("role", list(Role))
def test_a_channel_and_an_unknown_kind_have_no_rule(role: Role) -> None:
    for kind in set(Kind) - {Kind.MEMBERSHIP}:
        assert rule(update(kind, ChatKind.CHANNEL), role, group_on=True, known=True).act is Act.DROP
    assert rule(update(Kind.OTHER), role, known=True) == Ruling(Act.DROP, Reason.NO_RULE)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("kind", [Kind.MESSAGE, Kind.COMMAND])
def test_in_a_group_the_bot_must_be_meant(role: Role, kind: Kind) -> None:
    asked = update(kind, ChatKind.GROUP, text="/status", addressed=False)
    assert rule(asked, role, group_on=True) == Ruling(Act.DROP, Reason.NOT_MEANT)
    assert rule(update(kind, text="/status", addressed=False), Role.OWNER).act is Act.TAKE


@pytest.mark.parametrize(("kind", "role"), list(product((*TALKING, Kind.BUTTON), Role)))
def test_a_group_that_the_owner_did_not_enable_hears_nothing(kind: Kind, role: Role) -> None:
    asked = update(kind, ChatKind.GROUP)
    assert rule(asked, role, group_on=False, known=True) == Ruling(Act.DROP, Reason.GROUP_OFF)


def test_only_the_owner_gives_commands_in_a_group_that_is_not_enabled() -> None:
    asked = update(Kind.COMMAND, ChatKind.GROUP, text="/chat@bot echo")
    assert rule(asked, Role.OWNER, group_on=False).act is Act.TAKE
    assert rule(asked, Role.MEMBER, group_on=False) == Ruling(Act.DROP, Reason.GROUP_OFF)


@pytest.mark.parametrize("chat", [ChatKind.PRIVATE, ChatKind.GROUP])
@pytest.mark.parametrize("kind", [Kind.EDIT, Kind.REACTION])
def test_edits_and_reactions_are_about_messages_that_we_know(kind: Kind, chat: ChatKind) -> None:
    found = rule(update(kind, chat), Role.OWNER, group_on=True, known=False)
    assert found == Ruling(Act.DROP, Reason.UNKNOWN_MESSAGE)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("role", ROLES)
def test_each_command_has_its_least_role(name: str, role: Role | None) -> None:
    found = rule(update(Kind.COMMAND, text=f"/{name} word"), role)
    order = [None, Role.GUEST, Role.MEMBER, Role.OWNER]
    if name in {"pair", "start"}:
        assert found.act is Act.PAIR
    elif role is None:
        assert found == Ruling(Act.HELLO, Reason.STRANGER)
    else:
        allowed = order.index(role) >= order.index(COMMANDS[name].least)
        assert found.act is (Act.TAKE if allowed else Act.REFUSE)


def test_in_a_group_that_is_not_enabled_even_the_owner_only_commands() -> None:
    asked = update(Kind.COMMAND, ChatKind.GROUP, text="/reset@bot now")
    assert rule(asked, Role.OWNER, group_on=False) == Ruling(Act.DROP, Reason.GROUP_OFF)
    assert rule(asked, Role.OWNER, group_on=True).act is Act.TAKE


@pytest.mark.parametrize("role", ROLES)
def test_codes_are_for_private_chats(role: Role | None) -> None:
    asked = update(Kind.COMMAND, ChatKind.GROUP, text="/pair@bot ABCDEFGH")
    assert rule(asked, role, group_on=True).act in {Act.REFUSE, Act.DROP}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("text", ["/pair ABCDEFGH", "/invite", "/chat echo", "/nothing"])
def test_a_forwarded_command_is_none(role: Role | None, text: str) -> None:
    asked = update(Kind.COMMAND, text=text, forwarded=True)
    assert rule(asked, role) == Ruling(Act.DROP, Reason.FORWARDED)


def test_a_command_that_is_not_ours_is_a_message_to_the_agent() -> None:
    asked = update(Kind.COMMAND, text="/reset now")
    assert rule(asked, Role.MEMBER).act is Act.TAKE
    assert rule(asked, Role.GUEST) == Ruling(Act.REFUSE, Reason.READ_ONLY)
    assert rule(asked, None).act is Act.HELLO


@pytest.mark.parametrize(("role", "act"), [(None, Act.DROP), (Role.GUEST, Act.TAKE)])
def test_inline_search_is_for_people_who_were_let_in(role: Role | None, act: Act) -> None:
    assert rule(update(Kind.INLINE), role).act is act


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/chat echo hi there", Said("chat", "echo hi there")),
        ("/Chat@My_Bot  x\ny", Said("chat", "x\ny", "My_Bot")),
        ("/stop", Said("stop")),
        ("//stop", None),
        ("stop", None),
        ("/", None),
        ("/a/b", None),
        ("/" + "a" * 33, None),
    ],
)
def test_a_command_is_read_as_it_is_typed(text: str, found: Said | None) -> None:
    assert said(text) == found


def test_twenty_a_minute_with_bursts_of_five_and_one_word_about_it(clock: Clock) -> None:
    watch = Flood(clock)
    assert [watch.rule(update()) for _ in range(5)] == [None] * 5
    assert watch.rule(update()) == Ruling(Act.REFUSE, Reason.TOO_FAST)
    assert watch.rule(update()) == Ruling(Act.DROP, Reason.TOO_FAST)
    assert watch.rule(update(sender=Sender("6"))) is None
    clock.now += 3.1
    assert watch.rule(update()) is None
    assert watch.rule(update()) == Ruling(Act.REFUSE, Reason.TOO_FAST)


@given(st.lists(st.sampled_from([0.0, 0.5, 2.0, 10.0]), max_size=100))
def test_nobody_gets_more_through_than_allowed(pauses: list[float]) -> None:
    clock = Clock()
    watch, taken = Flood(clock), []
    for pause in pauses:
        clock.now += pause
        if watch.rule(update()) is None:
            taken.append(clock.now)
    for start in taken:
        assert sum(start <= at < start + 60 for at in taken) <= flood.PER_MIN + flood.BURST


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (update(text="x" * 8193), Reason.TOO_LONG),
        (update(files=(Attachment("f", size=(20 << 20) + 1),)), Reason.TOO_LARGE),
    ],
)
def test_too_much_at_once_is_refused_with_a_reason(clock: Clock, asked, reason) -> None:
    assert Flood(clock).rule(asked) == Ruling(Act.REFUSE, reason)


def test_a_stranger_gets_one_line_a_day(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Flood(clock)
    assert watch.hello("a")
    assert not watch.hello("a")
    clock.now += flood.HELLO_S
    assert watch.hello("a")
    monkeypatch.setattr(flood, "PEOPLE_MAX", 3)
    assert [watch.hello(who) for who in "bcde"] == [True, True, False, False]


def test_who_somebody_is_does_not_depend_on_the_name() -> None:
    assert update(sender=Sender("5", "echo")).person == "tg:77:5"
    assert update().key == "tg:77:1"
