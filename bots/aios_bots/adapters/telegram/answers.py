"""What a Bot API server answers, and why there may be no answer.

Servers differ: the status, ``error_code`` and ``description`` say the same thing, and any of them
may be missing. So all are read, and what follows from them is decided in one place.
"""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from aios_bots.core.secret import scrubbed
from aios_nb.richtext import one_line

OK_BELOW = 300
WORDS_MAX_CHARS = 300
PAUSE_S = 5.0
"""For a server that wants a pause and does not say which."""
PAUSE_MAX_S = 86_400.0
_RETRY = re.compile(r"retry (?:after|in) (\d+)", re.IGNORECASE)
_BY_PREFIX = {
    "bad request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not found": 404,
    "conflict": 409,
    "too many requests": 429,
    "internal server error": 500,
}


class Lost(Exception):
    """No answer. ``sent``: the server may have the call all the same."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Refused(Exception):
    """The answer is no."""

    def __init__(
        self,
        code: int,
        words: str = "",
        *,
        pause_s: float = 0.0,
        moved_to: str = "",
        spoken: bool = True,
    ) -> None:
        super().__init__(f"{words} ({code})" if words else str(code))
        self.code = code
        self.words = words
        """In small letters, without what everybody knows from the code."""
        self.pause_s = pause_s
        self.moved_to = moved_to
        self.spoken = spoken
        """False: not in the words of a Bot API; a proxy's page, or an unknown call."""

    def says(self, *parts: str) -> bool:
        return any(part in self.words for part in parts)

    @property
    def broke(self) -> bool:
        """The server failed on its own, so nobody knows how far it got."""
        return self.code >= 500 or self.code in {0, 408}  # noqa: PLR2004 - HTTP's own


class _Reply(msgspec.Struct):
    ok: bool = False
    result: msgspec.Raw = msgspec.Raw(b"null")
    description: Any = None
    error_code: Any = None
    parameters: Any = None


def result_of(status: int, body: bytes, retry_after: str = "") -> bytes:
    """The result as JSON. Raises ``Refused``."""
    try:
        reply = msgspec.json.decode(body, type=_Reply)
    except msgspec.MsgspecError:
        # A success that cannot be read may still have been one.
        code = 0 if status < OK_BELOW else status
        raise Refused(code, spoken=False, pause_s=_pause(code, retry_after, "")) from None
    if status < OK_BELOW and reply.ok:
        return bytes(reply.result)
    words = _words(reply.description)
    code = _code(status, reply, words)
    given = reply.parameters if isinstance(reply.parameters, dict) else {}
    moved = given.get("migrate_to_chat_id")
    raise Refused(
        code,
        words.split(": ", 1)[-1] if words.split(": ", 1)[0] in _BY_PREFIX else words,
        pause_s=_pause(code, given.get("retry_after") or retry_after, words),
        moved_to=str(moved) if isinstance(moved, int) else "",
        spoken=bool(words),
    )


def _words(described: Any) -> str:
    """What the server said, for people: without a token, in small letters."""
    if not isinstance(described, str):
        return ""
    return one_line(scrubbed(described), WORDS_MAX_CHARS).removeprefix("[Error]: ").lower()


def _code(status: int, reply: _Reply, words: str) -> int:
    if isinstance(reply.error_code, int) and reply.error_code >= OK_BELOW:
        return reply.error_code
    if status >= OK_BELOW:
        return status
    return _BY_PREFIX.get(words.partition(":")[0], 400)


def _pause(code: int, given: Any, words: str) -> float:
    if code != 429:  # noqa: PLR2004 - HTTP's own
        return 0.0
    try:
        asked = float(given)
    except (TypeError, ValueError):
        found = _RETRY.search(words)
        asked = float(found[1]) if found else PAUSE_S
    if math.isnan(asked):
        asked = PAUSE_S
    return min(max(asked, 0.1), PAUSE_MAX_S)
