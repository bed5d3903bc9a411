"""What others wrote, cut and cleaned for whoever reads it through MCP: data, never markup."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from aios_nb.richtext import one_line, plain

ABOUT_CHARS = 400
TITLE_CHARS = 120
TAGS = 8

encode = msgspec.json.Encoder().encode


def line(text: str, most: int = ABOUT_CHARS) -> str:
    """One line of it, at most so long."""
    return _line(text[: 4 * most], most)  # cut first: what is remembered stays small


@functools.lru_cache(maxsize=4096)
def _line(text: str, most: int) -> str:
    said = one_line(text)
    return said if len(said) <= most else said[: most - 1].rstrip() + "…"


def agent_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """One agent in few words: who, what for, whether it is there."""
    told: dict[str, Any] = {
        "agent": row["id"],
        "about": line(row["about"] or row["title"]),
        "live": row["live"],
        "verified": row["verified"],
    }
    if row["tags"]:
        told["tags"] = [line(tag, 40) for tag in row["tags"][:TAGS]]
    if row.get("source"):
        told["source"] = row["source"]
    if row.get("changed"):
        told["changed"] = True
    return told


def agent_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [agent_row(row) for row in rows]


def card(told: Mapping[str, Any]) -> dict[str, Any]:
    """A card as its agent's node gives it, every word of it cleaned."""
    said = told["card"]
    return {
        "agent": said["id"],
        "title": line(said["title"], TITLE_CHARS),
        "about": plain(said["about"][: 4 * ABOUT_CHARS]),
        "tags": [line(tag, 40) for tag in said["tags"][:32]],
        "examples": [line(example) for example in said["examples"][:16]],
        "version": line(str(said["version"]), 40),
        "access": said["access"],
        "streams": said["streams"],
        "verified": told["verified"],
    }


def message(row: Mapping[str, Any]) -> dict[str, Any]:
    """One row of a conversation."""
    told: dict[str, Any] = {
        "seq": row["seq"],
        "kind": row["kind"],
        "sender": row["sender"]["id"],
        "text": plain(row["text"]),
        "at": row["at"],
    }
    for name in ("status", "data", "files", "ref"):
        if row.get(name):
            told[name] = row[name]
    return told
