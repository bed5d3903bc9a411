"""Where a link may go, and addresses in running text."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

HREF_MAX_CHARS = 2000
_HREF = re.compile(r"(?:https?://[^\s/?#@\\]+(?:[/?#][!-~]*)?|mailto:[!-~]+@[!-~]+)", re.IGNORECASE)
_ADDRESS = re.compile(r"(?<![\w@/.:=-])https?://[^\s<>\"'`|\\^{}\[\]]{1,2000}+", re.IGNORECASE)
_LOOKS_LIKE = re.compile(
    r"(?:(?:https?://|www\.)([^\s/?#]+)|([\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2,}))(?:[/?#:]\S*)?",
    re.IGNORECASE,
)
_TRAILING = ".,;:!?*_~'\""


def allowed(href: str) -> bool:
    """Whether it is a web or mail address, in plain characters, without a name before its host."""
    return (
        len(href) <= HREF_MAX_CHARS
        and href.isascii()
        and _HREF.fullmatch(href) is not None
        and bool(target(href))
    )


def target(href: str) -> str:
    """Whom a link leads to: a host, or a mail address; "" if nobody can tell."""
    if href[:7].lower() == "mailto:":
        return href[7:].partition("?")[0]
    try:
        return urlsplit(href).hostname or ""
    except ValueError:
        return ""


def pretended(label: str, href: str) -> bool:
    """Whether the label is an address too, but of another host."""
    found = _LOOKS_LIKE.fullmatch(label.strip())
    if found is None:
        return False
    said = (found[1] or found[2]).lower().split(":")[0].removeprefix("www.")
    return said != target(href).removeprefix("www.")


def addresses(text: str) -> list[tuple[int, int]]:
    """Where web addresses begin and end in a text; the full stop after one is not part of it."""
    found: list[tuple[int, int]] = []
    if "://" not in text:
        return found
    for match in _ADDRESS.finditer(text):
        start, end = match.span()
        while end > start:
            last = text[end - 1]
            unbalanced = last == ")" and text.count(")", start, end) > text.count("(", start, end)
            if last not in _TRAILING and not unbalanced:
                break
            end -= 1
        found.append((start, end))
    return found
