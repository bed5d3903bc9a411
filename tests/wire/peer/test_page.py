"""The numbers of the page on peer links are those of the code, so that others can write a node."""

from __future__ import annotations

import re
from pathlib import Path

from aios_nb.config import Limits
from aios_nb.wire.connection import STALL_S
from aios_nb.wire.peer import accept, frames, links, pace, pulse

PAGE = (Path(__file__).parents[3] / "PROTOCOL.md").read_text()
PART = PAGE.split("\n## Peer link\n")[1].split("\n## ")[0]


def said(pattern: str) -> tuple[str, ...]:
    found = re.search(pattern, PART, re.DOTALL)
    assert found, pattern
    return found.groups()


def test_the_page_gives_the_times_of_the_code():
    assert said(r"heard nothing for (\d+) s sends a ping, and gives the link up after (\d+) s") == (
        f"{pulse.PING_AFTER_S:g}",
        f"{pulse.SILENCE_S:g}",
    )
    assert said(r"reads nothing for (\d+) s") == (f"{STALL_S:g}",)
    assert said(r"`idle` after (\d+) s") == (f"{links.IDLE_S:g}",)
    assert said(r"takes (\d+) s at most") == (f"{Limits().hello_wait_s:g}",)


def test_the_page_gives_the_sizes_of_the_code():
    assert said(r"sealed frame has (\d+) bytes") == (str(frames.FRAME_BYTES),)
    assert said(r"(\d+) bytes before R has checked M3") == (str(accept.DOOR_BYTES),)
    assert said(r"(\d+) for `credit`, (\d+) for `frame` and `message`") == (
        str(frames.CREDIT_BYTES_MIN),
        str(frames.FRAME_BYTES_MIN),
    )
    assert frames.MESSAGE_BYTES_MIN == frames.FRAME_BYTES_MIN
    assert said(r"At most (\d+) messages are under way in pieces") == (str(frames.PIECED_MAX),)
    assert said(r"more than (\d+) notifications at work") == (str(Limits().ws_calls),)
    assert pace.STRANGERS_SHARE == 0.5


def test_the_page_lists_every_type_of_frame():
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", PART, re.MULTILINE)
    assert rows == [(str(int(kind)), kind.name.lower()) for kind in frames.Kind]
