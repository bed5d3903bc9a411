"""A Bot API server, and the two client libraries that talk to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.telegram.botapi import BotApi, Person, Settings
from tests.telegram.clients import LIBRARIES, Client, connect


@pytest.fixture
def botapi() -> Iterator[BotApi]:
    """A Bot API server whose pauses are short."""
    with BotApi(settings=Settings(conflict_pause_s=0.2, webhook_retry_s=0.05)) as api:
        yield api


@pytest.fixture(params=LIBRARIES)
def client(
    request: pytest.FixtureRequest, botapi: BotApi, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    """The bot of the server, in each library."""
    # Else python-telegram-bot warns at each RetryAfter that it will be a timedelta one day.
    monkeypatch.setenv("PTB_TIMEDELTA", "true")
    client = connect(request.param, botapi)
    yield client
    client.close()


@pytest.fixture
def ada(botapi: BotApi) -> Person:
    """Somebody who has opened the bot's chat; the bot was told and has forgotten it."""
    ada = botapi.person("Ada", "ada_l")
    ada.starts()
    botapi.run(botapi.bot.updates.forget_all)
    return ada
