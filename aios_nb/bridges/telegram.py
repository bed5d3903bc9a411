"""A bot on Telegram from what its owner chose: the token, the server, polling or a webhook."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aios_bots.core.secret import TOKEN_ENV, Secret, load
from aios_nb.errors import UsageError
from aios_nb.home import Home

if TYPE_CHECKING:
    from aios_bots.adapters.telegram import Telegram, Webhook

API_ENV = "AIOS_TELEGRAM_API"
TOKEN_FILE = "telegram.token"  # noqa: S105 - where it may be
WEBHOOK_PORT = 8443
"""Where we listen on loopback if the address says no port."""


def token(home: Home, environ: Mapping[str, str] = os.environ) -> Secret:
    """The bot's token, from the environment or from the home's file."""
    file = home.path / TOKEN_FILE
    if environ.get(TOKEN_ENV) or file.exists():
        return load(environ, file)
    raise UsageError(
        "there is no bot token",
        hint=f"BotFather gives one; put it into {TOKEN_ENV}, or alone into {_short(file)}"
        " with mode 600",
    )


def account(home: Home, environ: Mapping[str, str] = os.environ) -> str:
    """The id of the bot that is meant; empty if no token says so."""
    if environ.get(TOKEN_ENV) or (home.path / TOKEN_FILE).exists():
        return token(home, environ).account
    return ""


def bot(
    home: Home,
    *,
    api_url: str = "",
    webhook: str = "",
    secret_env: str = "",
    port: int = 0,
    environ: Mapping[str, str] = os.environ,
) -> Telegram:
    """The bot, not connected yet. ``UsageError`` for what cannot be meant."""
    from aios_bots.adapters.telegram import Telegram

    hook = _webhook(webhook, secret_env, port, environ)
    url = api_url or environ.get(API_ENV, "")
    return Telegram(token(home, environ), api_url=url, webhook=hook)


def _webhook(url: str, secret_env: str, port: int, environ: Mapping[str, str]) -> Webhook | None:
    from aios_bots.adapters.telegram import Webhook

    if not url:
        if secret_env or port:
            raise UsageError("that is for a webhook only", hint="say which: --webhook URL")
        return None
    if secret_env and not environ.get(secret_env):
        raise UsageError(f"{secret_env} is not set", hint="it should hold the webhook's secret")
    try:
        chosen = port or urlsplit(url).port or WEBHOOK_PORT
    except ValueError:
        raise UsageError(f"{url[:80]} is no address for a webhook") from None
    secret = environ.get(secret_env, "") if secret_env else ""
    return Webhook(url=url, port=chosen, secret=secret).checked()


def _short(path: Path) -> str:
    """As people write it."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
