"""What a message to the librarian wants: a folder, a question, both, or to know how it stands."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator

import msgspec

IsFolder = Callable[[str], bool]

MESSAGE_CHARS = 1000
"""What is read of a message; more would not make a question clearer."""


class Wish(enum.Enum):
    ASK = "ask"
    LOOK = "look"
    """In another folder."""
    FORGET = "forget"
    TELL = "tell"
    """What it can do and where it looks."""


class Said(enum.IntEnum):
    """What stood before a name: the less was said, the more it must look like a folder."""

    NOTHING = 0
    VERB = 1
    IN = 2
    FOLDER = 3


class Asked(msgspec.Struct, frozen=True):
    wish: Wish
    question: str = ""
    folder: str = ""


_TELL = re.compile(
    r"\W*(|help|hi|hello|hey|hallo|who are you|status|folder|library"
    r"|what (is|can) (this|you)\b.*|(what|which|where) (is )?(the |your |my )?(folder|library)\b.*"
    r"|where (do|are) you look(ing)?( in| now)?)\W*",
    re.IGNORECASE | re.DOTALL,
)
_FORGET = re.compile(r"\W*forget( (it|(the|this|that|my) (folder|library)))?\W*", re.IGNORECASE)
_LOOK = re.compile(
    r"\s*(?:please\s+|can you\s+|could you\s+)?"
    r"(?:(?P<sure>read|use|index|open|scan|browse|watch)|look|search|find|go)(?![\w'])"
    r"(?P<said>(?:\s+(?:(?P<into>in|into|inside|at|through|to)|the|my|all|of"
    r"|(?P<kind>folder|directory|dir|library)))*)"
    r"\s*:?\s+(?P<rest>\S.*?)\s*",
    re.IGNORECASE | re.DOTALL,
)
_WITHIN = re.compile(
    r"\s*(?P<question>.+?)\s+(?:in|inside|under|from)\s+(?:the\s+|my\s+)?(?:folder\s+|directory\s+)?"
    r"(?P<rest>(?:[~/\"']|\.{1,2}/).*?)\s*",
    re.IGNORECASE | re.DOTALL,
)
_QUOTED = re.compile(r"([\"'`])(?P<folder>.+?)\1(?P<rest>.*)", re.DOTALL)
_PATH = re.compile(r"(~[\w.-]*)?/|~[\w.-]*(\s|$)|\.{1,2}(/|$)")
_FOR = re.compile(
    r"[,;:]?\s+(?:and\s+)?(?:for|about|(?:find|look for|search for|show me|tell me)\b)\s*"
    r"|[,;:?]\s+",
    re.IGNORECASE,
)


def asked(message: str, is_folder: IsFolder) -> Asked:
    """What is wanted; ``is_folder`` says whether a text names a folder that is there."""
    text = message[:MESSAGE_CHARS].strip()
    if _TELL.fullmatch(text):
        return Asked(Wish.TELL)
    if _FORGET.fullmatch(text):
        return Asked(Wish.FORGET)
    look, within = _LOOK.fullmatch(text), _WITHIN.fullmatch(text)
    if look is not None:
        found = _folder(look["rest"], is_folder, _said(look))
    else:
        found = _folder(text, is_folder, Said.NOTHING)
    if found is None and within is not None:
        place = _folder(within["rest"], is_folder, Said.VERB)
        if place is not None and not place.question and is_folder(place.folder):
            found = Asked(Wish.LOOK, within["question"], place.folder)
    return found or Asked(Wish.ASK, text)


def _said(look: re.Match[str]) -> Said:
    if look["kind"]:
        return Said.FOLDER if look["sure"] or look["into"] else Said.VERB
    return Said.IN if look["into"] else Said.VERB


def _folder(text: str, is_folder: IsFolder, before: Said) -> Asked | None:
    """A folder at the start of a text, and the question behind it."""
    quoted = _QUOTED.fullmatch(text)
    named = quoted["folder"] if quoted else text
    is_path = _PATH.match(named) is not None
    if not is_path and before < Said.IN:
        return None
    if quoted is not None:
        if not (is_path or before is Said.FOLDER or is_folder(named)):
            return None
        ask = _FOR.match(quoted["rest"])
        return Asked(Wish.LOOK, _bare(quoted["rest"][ask.end() if ask else 0 :]), named)
    cuts = list(_cuts(text))
    for folder, question in cuts:
        if is_folder(folder):
            return Asked(Wish.LOOK, question, folder)
    folder, question = cuts[-1]
    if is_path:
        is_meant = before >= Said.VERB or " " not in text
    else:
        is_meant = before is Said.FOLDER and " " not in folder
    return Asked(Wish.LOOK, question, folder) if is_meant else None


def _cuts(text: str) -> Iterator[tuple[str, str]]:
    """Where a folder may end and a question begin, the longest folder first."""
    yield text, ""
    yield text.rstrip(" .,;:!?"), ""
    for found in reversed(list(_FOR.finditer(text))):
        yield text[: found.start()], _bare(text[found.end() :])


def _bare(question: str) -> str:
    return question.strip(" \t\n:,;")
