"""What a message to the librarian wants: a folder, a question, both, or to know how it stands."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator

import msgspec

IsFolder = Callable[[str], bool]


class Wish(enum.Enum):
    ASK = "ask"
    LOOK = "look"
    """In another folder."""
    FORGET = "forget"
    TELL = "tell"
    """What it can do and where it looks."""


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
    if _TELL.fullmatch(message):
        return Asked(Wish.TELL)
    if _FORGET.fullmatch(message):
        return Asked(Wish.FORGET)
    text = message.strip()
    look = _LOOK.fullmatch(text)
    if look is not None:
        named = bool(look["kind"] and (look["sure"] or look["into"]))
        if (found := _folder(look["rest"], is_folder, named=named)) is not None:
            return found
    elif (found := _folder(text, is_folder, named=False)) is not None:
        return found
    within = _WITHIN.fullmatch(text)
    if within is not None:
        found = _folder(within["rest"], is_folder, named=False)
        if found is not None and not found.question and is_folder(found.folder):
            return Asked(Wish.LOOK, within["question"], found.folder)
    return Asked(Wish.ASK, text)


def _folder(text: str, is_folder: IsFolder, *, named: bool) -> Asked | None:
    """A folder at the start of a text, and the question behind it; ``named``: it was called one."""
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None and (
        named or is_folder(quoted["folder"]) or _PATH.match(quoted["folder"])
    ):
        rest = quoted["rest"]
        ask = _FOR.match(rest)
        return Asked(Wish.LOOK, _bare(rest[ask.end() :] if ask else rest), quoted["folder"])
    cuts = list(_cuts(text))
    for folder, question in cuts:
        if is_folder(folder):
            return Asked(Wish.LOOK, question, folder)
    folder, question = cuts[-1]
    if _PATH.match(text) or (named and " " not in folder):
        return Asked(Wish.LOOK, question, folder)
    return None


def _cuts(text: str) -> Iterator[tuple[str, str]]:
    """Where a folder may end and a question begin, the longest folder first."""
    yield text, ""
    yield text.rstrip(" .,;:!?"), ""
    for found in reversed(list(_FOR.finditer(text))):
        yield text[: found.start()], _bare(text[found.end() :])


def _bare(question: str) -> str:
    return question.strip(" \t\n:,;")
