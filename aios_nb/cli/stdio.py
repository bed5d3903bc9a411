"""``stdio``: this user's node as an MCP server for programs that start one by a command."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from collections.abc import Coroutine
from typing import Any

from aios_nb.cli.connect import home_of
from aios_nb.cli.relay.pipes import Notes, Pipes
from aios_nb.cli.relay.relay import Relay
from aios_nb.cli.relay.whereabouts import Whereabouts

GRACE_S = 30.0
"""For what was asked before the client closed its end, as in ``printf … | aios-nb stdio``. A client
that wants no answers any more sends a signal, or has closed its other end too."""


def stdio(args: argparse.Namespace) -> int:
    """Relay until the client closes its end or a signal comes."""
    logging.getLogger("aios_nb").addHandler(Notes())
    return asyncio.run(_relayed(args))


async def _relayed(args: argparse.Namespace) -> int:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    pipes = Pipes()
    nodes = Whereabouts(home_of(args), args.node)
    try:
        if not await _within(nodes.there(), ended):
            return 0
        relay = Relay(nodes, pipes.say)
        try:
            if await _within(_take_all(pipes, relay), ended, pipes.closed):
                pipes.watch()
                await _within(relay.answered(GRACE_S), ended, pipes.closed)
        finally:
            await relay.close()
    finally:
        await nodes.close()
    return 0


async def _take_all(pipes: Pipes, relay: Relay) -> None:
    async for line in pipes.lines():
        await relay.take(line)


async def _within(work: Coroutine[Any, Any, Any], *ends: asyncio.Event) -> bool:
    """Whether it was done before one of these came; raises what it raises."""
    task = asyncio.ensure_future(work)
    waits = [asyncio.ensure_future(end.wait()) for end in ends]
    await asyncio.wait((task, *waits), return_when=asyncio.FIRST_COMPLETED)
    done = task.done()
    for each in (task, *waits):
        each.cancel()
    await asyncio.gather(task, *waits, return_exceptions=True)
    if done:
        task.result()
    return done
