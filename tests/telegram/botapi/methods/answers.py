"""Answers to presses and inline queries."""

from __future__ import annotations

from typing import Any

from tests.telegram.botapi.errors import bad
from tests.telegram.botapi.keyboards import inline_only
from tests.telegram.botapi.methods.table import Asked, formatted, method
from tests.telegram.botapi.settings import CALLBACK_ANSWER_UNITS, TEXT_UNITS
from tests.telegram.botapi.texts import units

MOST_RESULTS = 50
LONGEST_ID_BYTES = 64


@method("answerCallbackQuery")
def answer_callback_query(asked: Asked) -> bool:
    args = asked.args
    text = args.text("text")
    if units(text) > CALLBACK_ANSWER_UNITS:
        raise bad("MESSAGE_TOO_LONG")
    answer = {"text": text, "show_alert": args.flag("show_alert"), "url": args.text("url")}
    asked.world.answer(asked.bot, "callback_query", args.text("callback_query_id"), answer)
    return True


@method("answerInlineQuery")
def answer_inline_query(asked: Asked) -> bool:
    args = asked.args
    results = args.json("results")
    if not isinstance(results, list):
        raise bad("can't parse inline query results JSON object")
    if len(results) > MOST_RESULTS:
        raise bad("RESULTS_TOO_MUCH")
    answer = {
        "results": [_result(result) for result in results],
        "is_personal": args.flag("is_personal"),
        "cache_time": args.integer("cache_time", 300),
        "next_offset": args.text("next_offset"),
        "button": args.json("button"),
    }
    if len({result["id"] for result in results}) < len(results):
        raise bad("RESULT_ID_DUPLICATE")
    if len(answer["next_offset"].encode()) > LONGEST_ID_BYTES:
        raise bad("NEXT_OFFSET_INVALID")
    asked.world.answer(asked.bot, "inline_query", args.text("inline_query_id"), answer)
    return True


def _result(result: Any) -> dict[str, Any]:
    if not isinstance(result, dict):
        raise bad("can't parse inline query result: Object expected")
    for name in ("type", "id"):
        if not isinstance(result.get(name), str):
            raise bad(f"can't parse inline query result: Can't find field \"{name}\"")
    if not 1 <= len(result["id"].encode()) <= LONGEST_ID_BYTES:
        raise bad("RESULT_ID_INVALID")
    kept: dict[str, Any] = {**result}
    if result["type"] == "article":
        if not result.get("title"):
            raise bad("ARTICLE_TITLE_EMPTY")
        content = result.get("input_message_content")
        if not isinstance(content, dict) or not content.get("message_text"):
            raise bad("message text is empty")
        said = formatted(
            str(content["message_text"]),
            str(content.get("parse_mode") or ""),
            content.get("entities"),
            TEXT_UNITS,
            "MESSAGE_TOO_LONG",
        )
        kept["input_message_content"] = {**content, "_text": said}
    return {**kept, "reply_markup": inline_only(result.get("reply_markup"))}
