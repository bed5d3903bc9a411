"""Who am I, and how do updates reach me: getMe, getUpdates, webhooks."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from tests.telegram.botapi.errors import bad
from tests.telegram.botapi.methods.table import Asked, Said, method
from tests.telegram.botapi.settings import WEBHOOK_CONNECTIONS
from tests.telegram.botapi.webhooks import Target

SECRET = re.compile(r"[A-Za-z0-9_-]*")
LONGEST_SECRET = 256
PORTS = (443, 80, 88, 8443)


@method("getMe")
def get_me(asked: Asked) -> dict[str, Any]:
    return asked.bot.me()


@method("logOut", "close")
def log_out(_asked: Asked) -> bool:
    return True


@method("getUpdates")
async def get_updates(asked: Asked) -> list[dict[str, Any]]:
    args = asked.args
    return await asked.bot.updates.get(
        args.integer("offset"),
        args.integer("limit", 100),
        args.integer("timeout"),
        args.json("allowed_updates"),
        asked.alive,
    )


@method("setWebhook")
def set_webhook(asked: Asked) -> Said:
    args, bot = asked.args, asked.bot
    url = args.text("url")
    if not url:
        return _deleted(asked)
    _check_url(url, public_only=asked.world.settings.public_webhooks_only)
    secret = args.text("secret_token")
    if len(secret) > LONGEST_SECRET:
        raise bad("secret token is too long")
    if not SECRET.fullmatch(secret):
        raise bad("secret token contains unallowed characters")
    connections = args.integer("max_connections", WEBHOOK_CONNECTIONS)
    target = Target(
        url,
        secret,
        args.text("ip_address"),
        connections if 1 <= connections <= 100 else WEBHOOK_CONNECTIONS,
        "certificate" in args.uploads,
    )
    bot.updates.interrupt("terminated by setWebhook request")
    bot.updates.allow(args.json("allowed_updates"))
    if args.flag("drop_pending_updates"):
        bot.updates.forget_all()
    same = target == bot.webhook.target
    bot.webhook.set(target)
    return Said(True, "Webhook is already set" if same else "Webhook was set")


@method("deleteWebhook")
def delete_webhook(asked: Asked) -> Said:
    return _deleted(asked)


def _deleted(asked: Asked) -> Said:
    bot = asked.bot
    had_one = bool(bot.webhook.target.url)
    if asked.args.flag("drop_pending_updates"):
        bot.updates.forget_all()
    bot.webhook.set(Target())
    return Said(True, "Webhook was deleted" if had_one else "Webhook is already deleted")


@method("getWebhookInfo")
def get_webhook_info(asked: Asked) -> dict[str, Any]:
    return asked.bot.webhook.info()


def _check_url(url: str, *, public_only: bool) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise bad("bad webhook: invalid webhook URL specified") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise bad("bad webhook: invalid webhook URL specified")
    if public_only:
        if parts.scheme != "https":
            raise bad("bad webhook: An HTTPS URL must be provided for webhook")
        if (port or 443) not in PORTS:
            raise bad("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
