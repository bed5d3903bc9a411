"""Text from agents and strangers, made safe to show.

``plain`` is for terminals and logs: what is left is what a person sees. An escape sequence could
repaint the screen or fill the clipboard, a bidi mark could turn a name around, and a character
without width could hide words from the reader.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|[\]PX^_][^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC with their end
    r"|[ -/]*[0-~]"  # two-character escapes
    r")"
    r"|\x9b[0-?]*[ -/]*[@-~]"  # the same with 8-bit openers
    r"|[\x90\x98\x9d\x9e\x9f][^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)"
)
_OPEN_ESCAPE = re.compile(
    r"(?:\x1b\[[0-?]*[ -/]*|\x9b[0-?]*[ -/]*"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x80-\x9f]*\x1b?"
    r"|\x1b[ -/]*)\Z"
)
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f"  # C0 without tab and line ends, DEL, C1
    "\u00ad\u034f\u061c\u180e\u200b\u200e\u200f"  # soft hyphen, joiners of nothing, direction marks
    "\u202a-\u202e\u2060-\u206f"  # bidi overrides and isolates, invisible operators
    "\ufeff\ufff9-\ufffb\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"  # tags and spare selectors: text that only programs see
)
# Persian, Hindi and composed emoji need the joiners; between Latin letters they only hide.
_LONE_JOINER = re.compile(
    "(?<![^\x00-\u02ff\u200c\u200d])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\u02ff])"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_JOINERS = "\u200c\u200d"

HELD_MAX_CHARS = 4096
"""A stream lets an escape sequence through, without its opener, that stays open for longer."""
_TOO_LONG = f"{{{HELD_MAX_CHARS}}}"
_ENDLESS = re.compile(
    rf"(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])(?=[^\x07\x1b\x80-\x9f]{_TOO_LONG})"
    rf"|(?:\x1b\[|\x9b)(?=[ -?]{_TOO_LONG})"
    rf"|\x1b(?=[ -/]{_TOO_LONG})"
)


def plain(text: str) -> str:
    """The text without anything that a terminal obeys or a reader cannot see."""
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPE.sub("", text)
    text = _LINE_END.sub("\n", text)
    text = _UNSEEN.sub("", text)
    text = _LONE_JOINER.sub("", text)
    return _SURROGATE.sub("\ufffd", text)


def one_line(text: str, most: int | None = None) -> str:
    """``plain`` text with every run of white space as one space.

    ``most``: characters of it. What is far behind them is not even looked at: to clean a text
    takes time, and strangers choose how long theirs is.
    """
    if most is None:
        return " ".join(plain(text).split())
    return " ".join(plain(text[: 4 * most]).split())[:most]


class PlainStream:
    """``plain`` for text that comes in pieces; how it was cut makes no difference."""

    def __init__(self) -> None:
        self._open = ""
        """An escape sequence whose end is not here yet."""
        self._undecided = ""
        """A carriage return or joiner: what follows says what it is."""
        self._before = ""
        """The last character that was let through: a joiner may join it to the next one."""

    def feed(self, piece: str) -> str:
        """What of the text so far is new and may be shown."""
        text = self._open + piece
        if len(text) > HELD_MAX_CHARS:
            text = _ENDLESS.sub("\0", text)  # not nothing: what is left must not grow together
        opening = _OPEN_ESCAPE.search(text)
        cut = opening.start() if opening else len(text)
        self._open = text[cut:]
        return self._decide(text[:cut])

    def end(self) -> str:
        """What was held back."""
        held, self._open = self._open, ""
        shown = self._decide(held)
        held, self._undecided = self._undecided, ""
        return shown + plain(held.strip(_JOINERS))

    def _decide(self, text: str) -> str:
        if not self._undecided and text.isascii() and text.isprintable():
            self._before = text[-1:] or self._before
            return text
        text = self._undecided + _ESCAPE.sub("", text)
        last = "\r" if text.endswith("\r") else ""
        text = _UNSEEN.sub("", _LINE_END.sub("\n", text.removesuffix(last)))
        sure = text.rstrip(_JOINERS)
        self._undecided = text[len(sure) :][:1] + last  # of several joiners only the first counts
        shown = _LONE_JOINER.sub("", self._before + sure)[len(self._before) :]
        self._before = shown[-1:] or self._before
        return _SURROGATE.sub("\ufffd", shown)
