"""The tokens by which a bridge speaks at a node: made once, kept for the bot, one pair a node.

What a bridge opened at a node is seen by its tokens only, so they stay the same across restarts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import msgspec

from aios_bots.core.voices import Keys, Voices, new_keys
from aios_nb.bridges.bot import Bot
from aios_nb.client import RemoteClient
from aios_nb.errors import HomeError, NotAllowed, NotRunning
from aios_nb.home import RunInfo
from aios_nb.private import read_private, replace_private

_MAX_BYTES = 256 << 10


async def voices_at(run: RunInfo, bot: Bot, prefix: str) -> Voices:
    """The connections of a bridge to that node, which find it again when it restarts."""
    kept = _kept(bot)
    keys = kept.get(run.node_id)
    if keys is not None:
        try:
            return await _connected(run, bot, keys)
        except NotAllowed:  # the node has a new database, or its owner revoked them
            pass
    keys = await _made(run, prefix)
    replace_private(bot.keys, msgspec.json.encode({**kept, run.node_id: keys}))
    return await _connected(run, bot, keys)


def _kept(bot: Bot) -> dict[str, Keys]:
    try:
        content = read_private(bot.keys, limit_bytes=_MAX_BYTES)
        return msgspec.json.decode(content, type=dict[str, Keys])
    except FileNotFoundError:
        return {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HomeError(f"{bot.keys} cannot be read", hint="move it away") from error


async def _made(run: RunInfo, prefix: str) -> Keys:
    owner = await RemoteClient.connect(run)
    try:
        return await new_keys(owner, prefix)
    finally:
        await owner.close()


async def _connected(run: RunInfo, bot: Bot, keys: Keys) -> Voices:
    locate = _finder(run, bot)
    made: list[RemoteClient] = []
    async with contextlib.AsyncExitStack() as closing:
        for token in (keys.owner, keys.others, ""):  # the last is the owner, by the run file
            client = await RemoteClient.connect(run, token=token, locate=locate)
            closing.push_async_callback(client.close)
            made.append(client)
        closing.pop_all()
    return Voices(*made)


def _finder(run: RunInfo, bot: Bot) -> Callable[[], RunInfo | None]:
    def locate() -> RunInfo | None:
        try:
            return bot.home.find(run.name)
        except NotRunning:
            return None

    return locate
