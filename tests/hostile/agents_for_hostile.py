"""Agents that leave a trace on the disk before they answer, for nodes that will be killed."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from pathlib import Path
from typing import Any

import aios_nb as aios

# A node keeps its log in memory; here it must outlive the node.
logging.basicConfig(level=logging.INFO)

TRACE = os.environ.get("TRACE_FILE", os.devnull)
PAUSE_S = 0.2


def leave_trace(text: str) -> None:
    """One line, in one write, so that it is there whole or not at all."""
    fd = os.open(TRACE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, f"{text}\n".encode())
    finally:
        os.close(fd)


@aios.agent(about="Counts, on the node's loop")
async def counter(text: str) -> str:
    leave_trace(text)
    return f"counted {text}"


@aios.agent(about="Counts, in a thread")
def threaded(text: str) -> str:
    leave_trace(text)
    return f"counted {text}"


@aios.agent(about="Counts, then takes its time")
async def slow(text: str) -> str:
    leave_trace(text)
    await asyncio.sleep(PAUSE_S)
    return f"counted {text}"


@aios.agent(about="Counts, then waits for the file it was told")
def held(text: str) -> str:
    leave_trace(text)
    while not Path(text).exists():
        time.sleep(PAUSE_S / 4)
    return f"counted {text}"


@aios.agent(about="Counts, and may be asked again", idempotent=True)
async def again(text: str) -> str:
    leave_trace(text)
    await asyncio.sleep(PAUSE_S)
    return f"counted {text}"


@aios.agent(about="Counts, and holds the whole node up for so many seconds")
async def blocker(text: str) -> str:
    leave_trace(text)
    time.sleep(float(text))  # noqa: ASYNC251 - as a cell that holds the interpreter does
    return f"counted {text}"


@aios.agent(about="Asks the agent whose id it is told")
async def passes_on(text: str, ctx: Any) -> str:
    leave_trace(text)
    return str(await ctx.call(text, "from another agent"))
