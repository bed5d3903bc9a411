"""``python -m tests.telegram.botapi --port P``: the server by hand.

Prints what a bot needs to know, then each line typed is a message from Ada to the bot; what she
sees is printed. ``!label`` presses that button, ``?words`` searches inline.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from functools import partial

from tests.telegram.botapi.messages import Message
from tests.telegram.botapi.people import Person
from tests.telegram.botapi.record import Line
from tests.telegram.botapi.server import BotApi


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.telegram.botapi", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--token", default="", help="the bot's token; made up if not given")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with (
        BotApi(port=options.port, token=options.token) as api,
        contextlib.suppress(KeyboardInterrupt),
    ):
        ada = api.person("Ada", "ada")
        _say(f"base_url  {api.base_url}\ntoken     {api.bot.token}\nAda       {ada.id}")
        threading.Thread(target=_show, args=(api,), daemon=True).start()
        for line in sys.stdin:
            _do(api, ada, line.strip())
        threading.Event().wait()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _do(api: BotApi, ada: Person, line: str) -> None:
    if line.startswith("!"):
        messages = list(ada.chat().messages.values())
        found = [one for one in messages if line[1:] in one.buttons]
        last: Message | None = found[-1] if found else None
        if last:
            ada.presses(last, line[1:])
        else:
            _say("no such button")
    elif line.startswith("?"):
        query = ada.searches(line[1:])
        with contextlib.suppress(TimeoutError):
            api.wait(lambda: query.answer)
        _say(", ".join(result.get("title", "?") for result in query.results))
    elif line:
        ada.says(line)


def _is_longer(lines: list[Line], than: int) -> bool:
    return len(lines) > than


def _show(api: BotApi) -> None:
    shown = 0
    while True:
        with contextlib.suppress(TimeoutError):
            api.wait(partial(_is_longer, api.record.lines, shown))
        for seen in api.record.lines[shown:]:
            _say(f"{seen.who} {seen.what}: {seen.text}")
            shown += 1


if __name__ == "__main__":
    main()
