"""Agents that people on Telegram talk to while bridge and node are killed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import aios_nb as aios

# A node keeps its log in memory; here it must outlive the node.
logging.basicConfig(level=logging.INFO)

PAUSE_S = 0.4
"""Longer than a bridge waits before it shows the beginning of a reply."""


@aios.agent(about="Says the same", access="network", idempotent=True)
async def parrot(text: str) -> str:
    return f"heard {text}, all of it"


@aios.agent(about="Says it slowly", access="network", idempotent=True)
async def writer(text: str) -> AsyncIterator[str]:
    yield f"heard {text}, and there is more to be said"
    await asyncio.sleep(PAUSE_S)
    yield f", which was {text}, all of it"
