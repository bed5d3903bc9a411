"""``chat``: the terminal chat. With a terminal it is a prompt; without one it reads lines."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aios_nb.cli import output
from aios_nb.cli.connect import home_of, talk_to
from aios_nb.cli.lines import Lines
from aios_nb.cli.reply import Asking
from aios_nb.cli.talk import Left, Talk, complain
from aios_nb.client import SiteClient
from aios_nb.errors import AiosError, NotRunning


def chat(args: argparse.Namespace) -> int:
    if output.is_tty(sys.stdin) and output.is_tty(sys.stdout):
        return talk_to(args, lambda client: _at_a_prompt(args, client))
    return talk_to(args, lambda client: _from_lines(args, client))


async def _from_lines(args: argparse.Namespace, client: SiteClient) -> int:
    """Each line is a question; 1 when any of them failed."""
    lines = Lines()

    async def ask_person(question: str) -> str | None:
        print(question, flush=True)
        return await lines.next()

    talk = Talk(
        client,
        Asking(client, ask_person=ask_person, live=False, save=args.save),
        agent=args.agent,
        deadline_s=args.deadline,
    )
    await talk.start(args.conversation)
    code = 0
    while (line := await lines.next()) is not None:
        try:
            await talk.line(line)
        except Left:
            break
        except NotRunning:
            raise
        except AiosError as error:
            complain(error)
            code = 1
        sys.stdout.flush()
    return code


async def _at_a_prompt(args: argparse.Namespace, client: SiteClient) -> int:
    from aios_nb.cli.prompt import Prompt

    prompt = Prompt(home_of(args).path)

    async def ask_person(question: str) -> str | None:
        print(output.Paint(sys.stdout)(question, "yellow"))
        said = await prompt.answer()
        if said is None:  # as with Ctrl-C during an answer: it is not wanted any more
            raise asyncio.CancelledError
        return said

    talk = Talk(
        client,
        Asking(client, ask_person=ask_person, save=args.save),
        agent=args.agent,
        deadline_s=args.deadline,
    )
    await talk.start(args.conversation)
    if args.conversation is None:
        output.note(f"talking to {talk.agent} on {client.name}; /help for help, Ctrl-D to leave")
    while True:
        try:
            line = await prompt.line(talk.agent, talk.names)
            if line is None:
                return 0
            await _unless_interrupted(talk, line)
        except Left:
            return 0
        except AiosError as error:
            complain(error)


async def _unless_interrupted(talk: Talk, line: str) -> None:
    """Ctrl-C ends what the line started, not the program."""
    work = asyncio.create_task(talk.line(line))
    with _on_interrupt(work):
        try:
            await work
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            output.note("stopped")


@contextmanager
def _on_interrupt(work: asyncio.Task[Any]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    loop.add_signal_handler(signal.SIGINT, work.cancel)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
