"""The agents that a benchmark talks to, for ``aios-nb up --agents``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aios_nb as aios
from aios_nb.bench.tokens import chunk


@aios.agent(about="Gives back what it was sent, on the node's loop")
async def bench_echo(text: str) -> str:
    return text


@aios.agent(about="Gives back what it was sent, from a thread")
def bench_thread(text: str) -> str:
    return text


@aios.agent(about="Streams as many tokens as the first word says, marked with the second")
async def bench_stream(text: str) -> AsyncIterator[str]:
    count, salt = text.split()
    for number in range(int(count)):
        yield chunk(salt, number)
        await asyncio.sleep(0)
