"""Agents as a user would write them, for the command line to host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aios_nb as aios

print("printed while loading")  # noqa: T201


@aios.agent(about="Says every word on its own", tags=["words", "slow"])
def spell(text: str) -> Iterator[str]:
    for word in text.split():
        yield f"{word} "


@aios.agent(about="Begins and never ends")
async def forever(_text: str) -> AsyncIterator[str]:
    yield "begun"
    await asyncio.Event().wait()


@aios.agent(about="Always breaks")
def breaks(_text: str) -> str:
    raise ValueError("inner secret")


@aios.agent(about="Asks back")
def asks(_text: str, ctx: Any) -> str:
    return f"hello {ctx.ask_user('What is your name?')}"


@aios.agent(about="Answers with a table")
def table(_text: str) -> dict[str, Any]:
    return {"columns": ["city", "n"], "rows": [["Rome", 1], ["東京", 2]]}


@aios.agent(about="Answers with a file")
def file(text: str) -> aios.File:
    return aios.File(text.encode(), name="../note.txt")


@aios.agent(about="Counts the bytes it is sent")
def weigh(_text: str, ctx: Any) -> str:
    return " ".join(f"{one.name}:{len(ctx.read(one))}" for one in ctx.files)


@aios.agent(about="Tries to \x1b[31mrepaint\x1b[0m your screen")
def hostile(_text: str) -> str:
    return "\x1b]0;owned\x07\x1b[31mred\x1b[0m \u202eabc"


@aios.agent(about="Prints")
def loud(_text: str) -> str:
    print("printed while running")  # noqa: T201
    return "done"


@aios.agent(about="Answers with a DataFrame")
def frame(text: str) -> Any:
    import pandas as pd

    count = int(text) if text.isdigit() else 2
    return pd.DataFrame({"city": ["Rome"] * count, "n": range(count)})


@aios.agent
def silent(_text: str) -> str:
    return ""
