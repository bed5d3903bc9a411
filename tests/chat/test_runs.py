"""A run as its listeners and its stopper see it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from aios_nb.chat import runs
from aios_nb.chat.exchange import Exchange
from aios_nb.errors import Cancelled
from tests.sites import TestSite

MakeSite = Callable[..., TestSite]


async def spoken(text: str) -> Any:
    for word in text.split():
        yield word
        for _ in range(3):
            await asyncio.sleep(0)  # a listener has its turn


def test_the_first_piece_comes_at_once_and_what_follows_comes_together(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "GATHER_S", 3600.0)
    site = make_site(spoken)
    deltas, result = site.stream(agent="spoken", text="one two three four")
    said = [delta["text"] for delta in deltas if delta["text"]]
    assert said == ["one", "twothreefour"]
    assert result["text"] == "onetwothreefour"


def test_a_run_that_is_stopped_before_its_first_step_ends(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Exchange._begin

    def begin_and_stop(self: Exchange, call: Any, place: Any) -> None:
        begin(self, call, place)
        call.runs[0].stop(Cancelled("cancelled"))

    monkeypatch.setattr(Exchange, "_begin", begin_and_stop)
    site = make_site(spoken)
    with pytest.raises(Cancelled):
        site.call("chat.send", agent="spoken", text="one")
