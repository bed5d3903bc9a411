"""The libraries' own ways to run a bot: their polling loops, and what people see of it."""

from __future__ import annotations

import asyncio

import aiogram
from telegram import Update
from telegram.ext import ApplicationBuilder, ContextTypes, MessageHandler, filters
from telegram.request import HTTPXRequest

from tests.telegram.clients import PLAIN, Aiogram


def test_an_application_of_python_telegram_bot_echoes(botapi, ada):
    async def echo(update: Update, _context: ContextTypes.DEFAULT_TYPE) -> None:
        await update.effective_message.reply_text(update.effective_message.text.upper())

    async def main() -> None:
        app = (
            ApplicationBuilder()
            .token(botapi.bot.token)
            .base_url(botapi.base_url)
            .base_file_url(botapi.base_file_url)
            .request(HTTPXRequest(httpx_kwargs=PLAIN))
            .get_updates_request(HTTPXRequest(httpx_kwargs=PLAIN))
            .build()
        )
        app.add_handler(MessageHandler(filters.TEXT, echo))
        async with app:
            await app.start()
            await app.updater.start_polling()
            for text in ("one", "two"):
                ada.says(text)
            await botapi.until(lambda: ada.chat().texts()[-1:] == ["TWO"])
            await app.updater.stop()
            await app.stop()

    asyncio.run(main())
    assert sorted(ada.chat().texts()) == sorted(["/start", "one", "two", "ONE", "TWO"])
    assert not botapi.bot.updates.pending
    assert botapi.record.counts["deleteWebhook"] == 1


def test_a_dispatcher_of_aiogram_echoes(botapi, ada):
    client = Aiogram(botapi, botapi.bot.token)
    dispatcher = aiogram.Dispatcher()

    @dispatcher.message()
    async def echo(message: aiogram.types.Message) -> None:
        await message.answer(message.text.upper())

    polling = client.begin(
        dispatcher.start_polling(client.bot, handle_signals=False, close_bot_session=False)
    )
    ada.says("one")
    botapi.wait(lambda: ada.chat().texts()[-1:] == ["ONE"])
    client.run(dispatcher.stop_polling())
    polling.result(30)
    client.close()
