"""Bots to measure: ``python -m aios_nb.bench.bots KIND URL``, with the token in the environment.

``fast`` is our bridge without a pace, beside the node of this home. ``bare`` is the shortest bot
that can be written with aiohttp: it says what it hears, and forgets everything when it ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

import aiohttp

from aios_nb.home import Home

POLL_S = 25


async def fast(url: str) -> None:
    """A bridge as ``aios-nb telegram`` starts it, that calls as fast as it can."""
    from aios_bots.adapters.telegram import Telegram
    from aios_bots.core.bridge import Bridge
    from aios_bots.core.pacing import Rates
    from aios_bots.core.secret import TOKEN_ENV, Secret
    from aios_bots.core.store import BotStore
    from aios_nb.bridges.bot import Bot
    from aios_nb.bridges.tokens import voices_at

    no_pace = Rates(
        all_per_s=100_000, private_per_s=1e6, private_burst=1000, group_per_min=1_000_000
    )
    home = Home()
    adapter = Telegram(Secret(os.environ[TOKEN_ENV]), api_url=url)
    bot = Bot(home, adapter.account)
    with bot.claimed():
        store = BotStore.open(bot.db, bot.account)
        voices = await voices_at(home.find(None), bot, f"{adapter.platform}:{bot.account}:")
        bridge = Bridge(adapter, store, voices, bot.box, rates=no_pace)
        work = asyncio.create_task(bridge.run())
        try:
            await bridge.up.wait()
            await _until_told()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            await adapter.close()
            await voices.close()
            await store.close()


async def bare(url: str) -> None:
    """Echo, one task for each message."""
    base = f"{url}{os.environ['TELEGRAM_BOT_TOKEN']}"
    tasks: set[asyncio.Task[None]] = set()
    async with aiohttp.ClientSession() as session:

        async def answer(chat: int, text: str) -> None:
            body = {"chat_id": chat, "text": text}
            async with session.post(f"{base}/sendMessage", data=body) as reply:
                await reply.read()

        async def poll() -> None:
            offset = 0
            while True:
                asked = {"offset": offset, "timeout": POLL_S}
                async with session.post(f"{base}/getUpdates", data=asked) as reply:
                    updates = (await reply.json())["result"]
                for update in updates:
                    offset = update["update_id"] + 1
                    said = update["message"]
                    task = asyncio.create_task(answer(said["chat"]["id"], said["text"]))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)

        work = asyncio.create_task(poll())
        try:
            await _until_told()
        finally:
            for task in (work, *tasks):
                task.cancel()
            await asyncio.gather(work, *tasks, return_exceptions=True)


async def _until_told() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print(json.dumps({"ready": True}), flush=True)
    await stop.wait()


if __name__ == "__main__":
    asyncio.run({"fast": fast, "bare": bare}[sys.argv[1]](sys.argv[2]))
