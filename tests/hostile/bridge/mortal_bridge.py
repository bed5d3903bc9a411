"""``python mortal_bridge.py STAGE NTH …``: ``aios-nb telegram …`` that kills itself at a stage.

SIGKILL from within is the only way to die between two lines of the program, every time. With the
stage ``never`` it lives on. It calls as fast as it can: a test cannot wait for Telegram's pace.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from aios_bots.adapters.telegram import Telegram
from aios_bots.core.bridge import Bridge
from aios_bots.core.inbox import Inbox
from aios_bots.core.model import Op
from aios_bots.core.outbox import Outbox
from aios_bots.core.pacing import Rates
from aios_bots.core.showing import Showing
from aios_nb.bridges import serving
from aios_nb.cli import main

FAST = Rates(all_per_s=100_000, private_per_s=1e6, private_burst=1000, group_per_min=1_000_000)
Count = Callable[..., int]


def die_in(
    owner: type, name: str, nth: int, count: Count = lambda *_: 1, *, after: bool = False
) -> None:
    """Die where ``name`` is called, before it does its work or after, when it was often enough."""
    real = getattr(owner, name)
    seen = 0

    async def mortal(self: Any, *args: Any, **more: Any) -> Any:
        nonlocal seen
        seen += count(*args)
        last = seen >= nth and count(*args) > 0
        if last and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = await real(self, *args, **more)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, mortal)


def is_send(out: Any, *_: Any) -> int:
    return int(out.op is Op.SEND)


STAGES: dict[str, Callable[[int], None]] = {
    "never": lambda _: None,
    "fetched": lambda nth: die_in(Inbox, "add", nth, len),
    "stored": lambda nth: die_in(Inbox, "add", nth, len, after=True),
    "posted": lambda nth: die_in(Showing, "reply_begun", nth),
    "sending": lambda nth: die_in(Telegram, "call", nth, is_send),
    "sent": lambda nth: die_in(Outbox, "sent", nth, is_send),
}
"""After the fetch, after the store, after the post, before the send, after it and not recorded."""

if __name__ == "__main__":
    serving.Bridge = functools.partial(Bridge, rates=FAST)  # type: ignore[misc,assignment]
    STAGES[sys.argv[1]](int(sys.argv[2]))
    sys.exit(main(["telegram", *sys.argv[3:]]))
