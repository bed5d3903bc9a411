"""Coming in: codes, and what somebody is told who has just been let in."""

from __future__ import annotations

from aios_bots.core.commands import said
from aios_bots.core.desk import house
from aios_bots.core.desk.refusals import USED_CODE, WRONG_CODE
from aios_bots.core.desk.visit import Visit
from aios_bots.core.model import Incoming
from aios_bots.core.pairing import Answer, Offer, code_of, digest_of

NOT_HEARD = "code not heard"
WRONG = "wrong code"
"""In the audit; a bridge that starts again counts those of the last hour."""


async def pair_how(visit: Visit, _: str) -> None:
    """``/pair`` alone, by who is in already."""
    visit.say("Send the code with it, such as: /pair ABCD-EFGH")


async def pair(visit: Visit) -> Offer | None:
    """``/pair CODE`` or ``/start CODE``, by anybody in a private chat; gives what it brought."""
    command = said(visit.incoming.text)
    typed = command.rest if command is not None else ""
    offer = await _taken(visit, typed)
    if offer is None:
        return None
    people = visit.office.store.people
    visit.person = people.get(visit.incoming.sender.id)
    if visit.person is None:  # put out again in this very moment
        return None
    await house.welcome(visit)
    return offer


async def _taken(visit: Visit, typed: str) -> Offer | None:
    """The offer of a code, and the person let in for it; None: they were told, or nothing is."""
    incoming, office = visit.incoming, visit.office
    people, user = office.store.people, incoming.sender.id
    before = _used_before(visit, typed)
    if before is not None and people.get(user) is not None:
        return _once_more(visit, before)
    answer, offer = office.pairing.redeem(
        incoming.place.account, incoming.person, incoming.chat_kind, typed, people.offers()
    )
    if answer is Answer.SILENT:
        await _not_heard(visit)
        return None
    if offer is None or not await people.admit(offer, user, incoming.sender.name, visit.key):
        await _wrong(visit)
        return None
    person = people.get(user)
    role = person.role.value if person is not None else ""
    await people.note(incoming.person, "paired", f"{role} {visit.name} {' '.join(offer.agents)}")
    return offer


def _used_before(visit: Visit, typed: str) -> Offer | None:
    """The offer of a code that this person has used."""
    code = code_of(typed)
    if code is None or not visit.private:
        return None
    incoming: Incoming = visit.incoming
    digest = digest_of(incoming.place.account, code)
    return visit.office.store.people.taken(digest, incoming.sender.id)


def _once_more(visit: Visit, used: Offer) -> Offer | None:
    """The same update may come again, after its code was used by it; a later one gets nothing.

    Who says it again may have been taken out since of where it led.
    """
    if used.used_in == visit.key:
        return used
    visit.say(USED_CODE)
    return None


async def _not_heard(visit: Visit) -> None:
    """Once an hour for each person: the owner is to see other lines too."""
    people, who = visit.office.store.people, visit.incoming.person
    lately = people.audit(50, NOT_HEARD, visit.office.clock() - 3600)
    if all(line.who != who for line in lately):
        await people.note(who, NOT_HEARD)


async def _wrong(visit: Visit) -> None:
    await visit.office.store.people.note(visit.incoming.person, WRONG, visit.name)
    visit.say(WRONG_CODE)


async def conversation_by_code(visit: Visit, typed: str) -> str | None:
    """``/join CODE`` by who is in already: where it leads. None: that is no code.

    '' if it leads nowhere, and the person was told. Rights stay as they are.
    """
    if code_of(typed) is None:
        return None
    incoming, office = visit.incoming, visit.office
    people = office.store.people
    before = _used_before(visit, typed)
    if before is not None:
        again = _once_more(visit, before)
        return again.conversation if again is not None else ""
    answer, offer = office.pairing.redeem(
        incoming.place.account, incoming.person, incoming.chat_kind, typed, people.offers()
    )
    if answer is Answer.SILENT:
        await _not_heard(visit)
        if not visit.private:
            visit.say("Please send codes to me in a private chat.")
    elif offer is not None and not offer.conversation:
        visit.say("That code leads to no conversation. /pair CODE takes what it gives.")
    elif offer is None or not await people.use(offer, incoming.sender.id, visit.key):
        await _wrong(visit)
    else:
        await people.note(incoming.person, "joined by code", offer.conversation)
        return offer.conversation
    return ""
