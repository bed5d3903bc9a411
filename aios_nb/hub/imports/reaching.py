"""How a program of others is reached: with which token, at which address, and let go again."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from aios_nb.errors import UsageError
from aios_nb.hub.imports.agent import ImportedAgent
from aios_nb.hub.imports.entry import Address, Options
from aios_nb.ports import Outsider

log = logging.getLogger("aios_nb.hub")

CLOSE_S = 5.0


def ways(address: Address, options: Options) -> dict[str, Any]:
    """How ``Outside`` is told to reach it. Raises ``UsageError`` if the token is not there."""
    if options.token_env is None:
        return {"local": options.local}
    token = os.environ.get(options.token_env, "")
    if not token:
        raise UsageError(
            f"the node has no variable {options.token_env} in its environment",
            hint="set it where the node is started, then try again",
        )
    extra: Mapping[str, str] = (
        {"Authorization": f"Bearer {token}"}
        if isinstance(address, str)
        else {options.token_env: token}
    )
    return {"local": options.local, "headers" if isinstance(address, str) else "env": extra}


def found_at(outsider: Outsider) -> Address:
    """Where it really is."""
    address = outsider.address
    return address if isinstance(address, str) else tuple(address)


def netloc(url: str) -> str:
    """The host and port of a URL, to compare; nothing for what is none."""
    try:
        host = urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:  # no URL; who fetches it says so
        return ""
    return host.replace("localhost", "127.0.0.1")


async def let_go(agent: ImportedAgent) -> None:
    """End what there is of a way to it."""
    if agent.outsider is not None:
        await closed(agent.outsider)


async def closed(outsider: Outsider) -> None:
    """End its sessions and processes, whatever it thinks of that."""
    try:
        async with asyncio.timeout(CLOSE_S):
            await outsider.close()
    except Exception:  # it is let go of anyway
        log.exception("closing an import")
