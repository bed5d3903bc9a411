"""``telegram start``, ``telegram pair`` and so on: the notebook's agents on a phone."""

from __future__ import annotations

from aios_bots.core.bridge import Code
from aios_bots.core.pairing import Role
from aios_bots.core.secret import TOKEN_ENV
from aios_nb.bridges import telegram as chosen
from aios_nb.bridges import thread
from aios_nb.bridges.bot import Bot, Card, meant
from aios_nb.errors import AiosError, NotRunning, UsageError
from aios_nb.home import Home
from aios_nb.notebook.commands import Call
from aios_nb.notebook.show.faces import cell_of
from aios_nb.notebook.show.progress import waiting
from aios_nb.notebook.show.results import Note, Status, Table
from aios_nb.people import bridges as words
from aios_nb.people.conversations import find_kept

_START = "%aios telegram start bridges it"
_NONE = "start one: %aios telegram start"


def start(call: Call) -> Status:
    """In a thread of its own: it works while cells run. Again is harmless."""
    node = call.node()
    home = _home(call)
    bot = chosen.bot(
        home,
        api_url=call["api_url"] or "",
        webhook=call["webhook"] or "",
        secret_env=call["secret_env"] or "",
        port=call["port"] or 0,
    )
    if node.run_info is None:
        raise NotRunning("the node stopped before it was ready", hint="%aios up starts it")
    with waiting(cell_of(call.shell), "saying hello to Telegram"):
        running, _ = thread.start(home, node.run_info, bot)
    if running.address != bot.address:
        raise UsageError(
            "the bridge runs already, and is reached otherwise", hint="%aios telegram stop first"
        )
    return _status(Bot(home, running.account))


def status(call: Call) -> Status:
    """That there is no bot is an answer too: Run All goes on."""
    try:
        return _status(_bot(call))
    except NotRunning as none:
        token = f"BotFather gives the token of one; put it into {TOKEN_ENV}"
        rows = [] if chosen.account(_home(call)) else [("first", token)]
        return Status("Telegram", none.message, "down", [*rows, ("next", _START)])


def _status(bot: Bot) -> Status:
    card, bridged = _card(bot), bot.is_bridged
    rows = [row for row in words.rows(card, bridged=bridged) if row[0] != "bridge"]
    here = thread.bridges.get(bot.account)
    if here is not None and not here.running and here.problem:
        rows.insert(0, ("problem", here.problem))
    if bridged and not card.people:
        rows.append(("next", "%aios telegram pair makes a code for your phone"))
    state = "starting" if bridged and card.status.trouble else "up" if bridged else "down"
    return Status(words.name_of(card), words.in_short(card, bridged=bridged), state, rows)


def pair(call: Call) -> Code:
    bot = _bot(call)
    if not bot.is_bridged:  # whose name is not known, so that there would be nothing to scan
        raise NotRunning("no bridge runs", hint=_NONE)
    role = Role(call["role"]) if call["role"] else None
    conversation = ""
    if call["conversation"]:
        node = call.node()
        conversation = node.run(lambda: find_kept(node.client, call["conversation"]))
    return bot.pair(role, call["agents"] or (), conversation)


def people(call: Call) -> Table:
    card = _card(_bot(call))
    return Table(
        f"{len(card.people)} paired with {words.name_of(card)}",
        f"%aios telegram {'unpair ID puts one out' if card.people else 'pair makes a code'}",
        words.PEOPLE_HEAD,
        words.people_rows(card.people),
    )


def tried(call: Call) -> Table:
    card = _card(_bot(call))
    return Table(
        f"What was tried at {words.name_of(card)}",
        "the newest first" if card.tried else "nothing yet",
        words.TRIED_HEAD,
        words.tried_rows(card.tried),
    )


def unpair(call: Call) -> Note:
    person = _bot(call).put_out(call["id"])
    return Note(f"{person.name or person.user_id} is let in no more")


def stop(call: Call) -> Note:
    """The bridge of this notebook, or of another program of the same user."""
    ended = thread.stop_all()
    if not ended:
        bot = _bot(call)
        if not bot.is_bridged:
            raise NotRunning("no bridge runs", hint=_NONE)
        bot.stop()
        with waiting(cell_of(call.shell), "waiting for the program that bridges the bot"):
            if not bot.has_ended():
                raise AiosError("the bridge does not stop", hint="see %aios telegram status")
    return Note("the bridge is stopped; what comes meanwhile waits at Telegram")


def _home(call: Call) -> Home:
    site = call.session.site()
    return Home(getattr(getattr(site, "settings", None), "home", None))


def _bot(call: Call) -> Bot:
    home = _home(call)
    here = [account for account, one in thread.bridges.items() if one.running]
    if len(here) == 1:
        return Bot(home, here[0])
    try:
        return meant(home, chosen.account(home))
    except NotRunning as error:
        raise NotRunning(error.message, hint=_NONE) from None


def _card(bot: Bot) -> Card:
    card = bot.card()
    if card is None:
        raise NotRunning("no bot is bridged here", hint=_NONE)
    return card
