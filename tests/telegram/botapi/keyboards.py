"""Keyboards under messages: what is accepted, and what a person can press."""

from __future__ import annotations

from typing import Any

from tests.telegram.botapi.errors import ApiError, bad
from tests.telegram.botapi.settings import CALLBACK_DATA_BYTES

ACTIONS = (
    "url",
    "callback_data",
    "web_app",
    "login_url",
    "switch_inline_query",
    "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat",
    "copy_text",
    "callback_game",
    "pay",
)
MOST_BUTTONS = 100
SCHEMES = ("http://", "https://", "tg://")


def checked_markup(markup: Any) -> dict[str, Any] | None:
    """The reply markup as it is kept, or why it is refused."""
    if markup is None or markup == "":
        return None
    if not isinstance(markup, dict):
        raise bad("object expected as reply markup")
    if "inline_keyboard" in markup:
        return _inline(markup["inline_keyboard"])
    if "keyboard" in markup:
        for row in _rows(markup["keyboard"], "keyboard"):
            for button in row:
                text = button if isinstance(button, str) else button.get("text")
                if not text:
                    raise bad("can't parse keyboard button: Can't find field \"text\"")
    elif markup and not (markup.get("remove_keyboard") or markup.get("force_reply")):
        raise bad("can't parse reply keyboard markup JSON object")
    return markup or None


def inline_only(markup: Any) -> dict[str, Any] | None:
    """As above, for edits, which can have no other kind."""
    kept = checked_markup(markup)
    if kept and "inline_keyboard" not in kept:
        raise bad("inline keyboard expected")
    return kept


def shown(markup: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a message carries: inline keyboards only, the others are the phone's affair."""
    return markup if markup and markup.get("inline_keyboard") else None


def _inline(keyboard: Any) -> dict[str, Any] | None:
    rows = [[_button(button) for button in row] for row in _rows(keyboard, "inline keyboard")]
    rows = [row for row in rows if row]
    if sum(map(len, rows)) > MOST_BUTTONS:
        raise bad("REPLY_MARKUP_TOO_LONG")
    return {"inline_keyboard": rows} if rows else None


def _rows(keyboard: Any, what: str) -> list[list[Any]]:
    if not isinstance(keyboard, list):
        raise _wrong(f'Field "{what.replace(" ", "_")}" must be of type Array')
    for row in keyboard:
        if not isinstance(row, list):
            raise _wrong(f"{what} row must be of type Array")
    return keyboard


def _button(button: Any) -> dict[str, Any]:
    if not isinstance(button, dict):
        raise _wrong("Button must be of type Object")
    text = button.get("text")
    if not isinstance(text, str):
        raise _wrong('Can\'t find field "text"')
    if not text.strip():
        raise bad("BUTTON_TEXT_INVALID")
    actions = [name for name in ACTIONS if button.get(name) is not None]
    if not actions:
        raise _wrong("Text buttons are unallowed in the inline keyboard")
    if len(actions) > 1:
        raise bad("BUTTON_TYPE_INVALID")
    if "callback_data" in actions:
        size = len(str(button["callback_data"]).encode())
        if not 1 <= size <= CALLBACK_DATA_BYTES:
            raise bad("BUTTON_DATA_INVALID")
    if "url" in actions:
        url = str(button["url"])
        if not (url.startswith(SCHEMES) or "." in url) or " " in url:
            raise bad(f"inline keyboard button URL '{url}' is invalid: Wrong HTTP URL")
    return dict(button)


def _wrong(why: str) -> ApiError:
    return bad(f"can't parse inline keyboard button: {why}")
