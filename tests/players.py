"""Agents that do one thing each: for tests of what clients are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any


async def spell(text: str) -> AsyncIterator[str]:
    """Says one word after another."""
    for word in text.split():
        yield f"{word} "
        await asyncio.sleep(0)


def breaks(_text: str) -> str:
    """Always breaks."""
    raise ValueError("broken")


async def forever(_text: str) -> AsyncIterator[str]:
    """Begins and never ends."""
    yield "begun"
    await asyncio.Event().wait()


async def asks(_text: str, ctx: Any) -> str:
    """Asks back."""
    return f"hello {await ctx.ask_user('who?')}"


def weigh(_text: str, ctx: Any) -> dict[str, Any]:
    """Weighs files."""
    return {"sizes": [len(ctx.read(file)) for file in ctx.files]}
