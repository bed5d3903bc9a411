"""Telegram, by its Bot API: the only rooms that know python-telegram-bot."""

from aios_bots.adapters.telegram.adapter import Telegram
from aios_bots.adapters.telegram.webhook import Webhook

__all__ = ["Telegram", "Webhook"]
