"""The node a command is about."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from aios_nb.client import RemoteClient, SiteClient
from aios_nb.errors import NotRunning
from aios_nb.home import Home, RunInfo

T = TypeVar("T")


def home_of(args: argparse.Namespace) -> Home:
    return Home(args.home)


def found(args: argparse.Namespace) -> RunInfo:
    """The running node that was meant; ``NotRunning`` says which there are."""
    return home_of(args).find(args.node)


@asynccontextmanager
async def site(run: RunInfo, home: Home) -> AsyncIterator[SiteClient]:
    """A connection to that node, which finds it again if it restarts."""

    def locate() -> RunInfo | None:
        try:
            return home.find(run.name)
        except NotRunning:
            return None

    client = await RemoteClient.connect(run, locate=locate)
    try:
        yield client
    finally:
        await client.close()


def talk_to(args: argparse.Namespace, work: Callable[[SiteClient], Awaitable[T]]) -> T:
    """What ``work`` makes of the node that was meant."""
    run, home = found(args), home_of(args)

    async def connected() -> T:
        async with site(run, home) as client:
            return await work(client)

    return asyncio.run(connected())
