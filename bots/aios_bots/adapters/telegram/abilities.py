"""What a server can do, as far as it has shown. Few calls are required; the rest may be missing."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from aios_bots.adapters.telegram.answers import Refused
from aios_bots.core.adapter import Caps

REQUIRED = frozenset(
    ("getMe", "getUpdates", "sendMessage", "editMessageText", "answerCallbackQuery", "setWebhook")
)
BROKEN_S = 300.0
"""A call that only breaks is left alone for so long."""
BROKEN_TIMES = 2
"""What may have been an accident is one; twice in a row it is the call."""
_EFFECT = frozenset(("sendPhoto", "sendDocument"))
_NO_SUCH = frozenset((404, 405, 501))
_NO_METHOD = ("unknown method", "no such method", "method not found", "not implemented")
_THINGS = ("chat", "message", "user", "file", "query", "thread", "topic")
_WORDS = {
    "sendChatAction": "it does not show that somebody is typing",
    "setMessageReaction": "reactions are not shown",
    "deleteMessage": "messages are not deleted",
    "sendDocument": "files are not sent",
    "sendPhoto": "pictures are sent as files",
    "editMessageText": "replies come when they are finished",
    "setMyCommands": "there is no menu of commands",
    "answerInlineQuery": "searching from other chats does not work",
    "getFile": "files that people send are not read",
}


class Abilities:
    """Remembers which calls a server does not know."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._absent: dict[str, float] = {}
        self._broke: dict[str, int] = {}

    def has(self, method: str) -> bool:
        until = self._absent.get(method)
        if until is not None and until <= self._clock():
            del self._absent[method]
            return True
        return until is None

    def worked(self, method: str) -> None:
        self._broke.pop(method, None)

    def refused(self, method: str, why: Refused) -> bool:
        """Whether this means that the server does not know the call."""
        if _is_unknown(why):
            if method in REQUIRED and method != "editMessageText":
                return False
            self._absent[method] = float("inf")
            return True
        if why.code < 500 or method in REQUIRED:  # noqa: PLR2004 - HTTP's own
            return False
        self._broke[method] = times = self._broke.get(method, 0) + 1
        if _may_be_accident(method, why) and times < BROKEN_TIMES:
            return False
        self._absent[method] = self._clock() + BROKEN_S
        return True

    @property
    def caps(self) -> Caps:
        return msgspec.structs.replace(
            Caps(),
            edits=self.has("editMessageText"),
            files=self.has("sendDocument"),
            typing=self.has("sendChatAction"),
            reactions=self.has("setMessageReaction"),
        )

    @property
    def lines(self) -> list[str]:
        """For the owner, what is missing."""
        return [
            f"this server has no {method}: {_WORDS.get(method, 'the bridge does without')}"
            for method in sorted(self._absent)
            if self._absent[method] > self._clock()
        ]


def _is_unknown(why: Refused) -> bool:
    """Whether the call was not found, and not what it was about."""
    if why.says("method", "not implemented"):
        return why.code in _NO_SUCH or why.says(*_NO_METHOD)
    return why.code in _NO_SUCH and (why.words in {"", "not found"} or not why.says(*_THINGS))


def _may_be_accident(method: str, why: Refused) -> bool:
    """Whether the server may know the call, which may even have had its effect.

    A server says why it failed, and a proxy answers with its own codes. What is left is a server
    that has no such call and does not say so well.
    """
    return why.spoken or (why.code != 500 and method in _EFFECT)  # noqa: PLR2004 - HTTP's own
