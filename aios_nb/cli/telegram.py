"""``telegram``: a bot of yours beside a node, until Ctrl-C; and words for one that runs."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import sys

import msgspec

from aios_bots.core.bridge import Bridge
from aios_bots.core.pairing import Role
from aios_bots.core.secret import TokenFilter, guard_logs
from aios_nb.bridges import telegram as chosen
from aios_nb.bridges.bot import Bot, Card, meant
from aios_nb.bridges.serving import Serving
from aios_nb.cli import output
from aios_nb.cli.connect import found, home_of, talk_to
from aios_nb.errors import AiosError, NotRunning
from aios_nb.people import bridges as words
from aios_nb.people.conversations import find_kept


def run(args: argparse.Namespace) -> None:
    """Bridge the bot until a signal comes, or ``telegram stop``."""
    _show_log()
    home = home_of(args)
    bot = chosen.bot(
        home,
        api_url=args.api_url or "",
        webhook=args.webhook or "",
        secret_env=args.secret_env or "",
        port=args.port,
    )
    node = found(args)

    def up(bridge: Bridge) -> None:
        if args.json:
            line = {
                "account": bridge.adapter.account,
                "name": bridge.adapter.name,
                "node": node.name,
                "people": len(bridge.people()),
            }
            print(json.dumps(line), flush=True)
        else:
            _welcome(bridge, node.name)

    async def serve() -> None:
        serving = Serving(home, node, bot)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, serving.stop)
        await serving.serve(up)

    asyncio.run(serve())


def _show_log() -> None:
    guard_logs()
    shown = logging.StreamHandler()
    shown.addFilter(TokenFilter())
    shown.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    log = logging.getLogger("aios_bots")
    log.addHandler(shown)
    log.setLevel(logging.INFO)


def _welcome(bridge: Bridge, node: str) -> None:
    paint = output.Paint(sys.stdout)
    name = bridge.adapter.name
    bold = paint(f"@{name}" if name else f"bot {bridge.adapter.account}", "bold")
    print(f"{bold} bridges Telegram and the node {node}")
    if trouble := bridge.status().trouble:
        print(f"  {trouble}")
    print("  pair    aios-nb telegram pair        a code for a phone")
    print("  look    aios-nb telegram status")
    print(paint("Ctrl-C stops it.", "dim"), flush=True)


# Words for a bridge that runs --------------------------------------------------------------------


def pair(args: argparse.Namespace) -> None:
    bot = _bot(args)
    role = Role(args.role) if args.role else None
    if not bot.is_bridged:
        output.note("no bridge runs now; start it before the code is used: aios-nb telegram")
    conversation = ""
    if args.conversation:
        there = argparse.Namespace(home=args.home, node=_card(bot).node)
        conversation = talk_to(there, lambda client: find_kept(client, args.conversation))
    code = bot.pair(role, _names(args.agents), conversation)
    if args.json:
        told = {"code": code.code, "link": code.link, "expires_s": int(code.expires_s)}
        output.show_json({**told, "role": code.role.value})
        return
    if code.link and output.is_tty(sys.stdout):
        print(words.qr_lines(code.link))
    print(*words.about_code(code), sep="\n")


def people(args: argparse.Namespace) -> None:
    card = _card(_bot(args))
    if args.json:
        output.show_json({"people": msgspec.to_builtins(card.people)})
    elif card.people:
        output.table(words.PEOPLE_HEAD, words.people_rows(card.people))
    else:
        output.note("nobody is paired; make a code: aios-nb telegram pair")


def tried(args: argparse.Namespace) -> None:
    card = _card(_bot(args))
    if args.json:
        output.show_json({"tried": msgspec.to_builtins(card.tried)})
    elif card.tried:
        output.table(words.TRIED_HEAD, words.tried_rows(card.tried))
    else:
        output.note("nothing yet")


def unpair(args: argparse.Namespace) -> None:
    person = _bot(args).put_out(args.user)
    if args.json:
        output.show_json(msgspec.to_builtins(person))
    else:
        print(f"{person.user_id} is let in no more")


def status(args: argparse.Namespace) -> None:
    bot = _bot(args)
    card, bridged = _card(bot), bot.is_bridged
    if args.json:
        state = "running" if bridged else "stopped"
        output.show_json({**msgspec.to_builtins(card.status), "node": card.node, "state": state})
        return
    print(output.Paint(sys.stdout)(words.name_of(card), "bold"))
    for label, said in words.rows(card, bridged=bridged):
        print(f"  {label:10}{said}")


def stop(args: argparse.Namespace) -> None:
    bot = _bot(args)
    if not bot.is_bridged:
        raise NotRunning("no bridge runs", hint="start one: aios-nb telegram")
    bot.stop()
    if not bot.has_ended():
        raise AiosError("the bridge does not stop", hint="see aios-nb telegram status")
    if args.json:
        output.show_json({"account": bot.account, "state": "stopped"})
    else:
        print("stopped")


def _bot(args: argparse.Namespace) -> Bot:
    home = home_of(args)
    return meant(home, chosen.account(home))


def _card(bot: Bot) -> Card:
    card = bot.card()
    if card is None:
        raise NotRunning("no bot is bridged here", hint="start one: aios-nb telegram")
    return card


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]
