"""Each ``Outgoing`` as a call of the Bot API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from aios_bots.adapters.telegram import outcomes
from aios_bots.adapters.telegram.abilities import Abilities
from aios_bots.adapters.telegram.answers import Lost, Refused
from aios_bots.adapters.telegram.attachments import safe_name
from aios_bots.adapters.telegram.reading import INLINE
from aios_bots.core.adapter import Absent, CallError, Content, Impossible
from aios_bots.core.model import Attachment, Button, Hit, Op, Outgoing, Place, Span, SpanKind
from aios_nb.richtext import one_line

if TYPE_CHECKING:
    from aios_bots.adapters.telegram.line import Line

DOWNLOAD_MAX_BYTES = 20 << 20
PHOTO_MAX_BYTES = 10 << 20
ENTITIES_MAX = 100
DATA_MAX_BYTES = 64
LABEL_MAX_CHARS = 64
ANSWER_MAX_CHARS = 200
HITS_MAX = 50
HITS_KEPT_S = 5
"""How long the app may show what a search found without asking again."""
TEXT_MAX_CHARS = 4096
_NO_PREVIEW = {"is_disabled": True}
"""To show a preview the app fetches the address: a way out for what an agent knows."""
_STYLES = {
    SpanKind.BOLD: "bold",
    SpanKind.ITALIC: "italic",
    SpanKind.STRIKE: "strikethrough",
    SpanKind.LINK: "text_link",
    SpanKind.CODE: "code",
    SpanKind.PRE: "pre",
    SpanKind.QUOTE: "blockquote",
}
_PICTURES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")


class Calls:
    """Makes the calls of one bot."""

    def __init__(self, line: Line, abilities: Abilities) -> None:
        self._line, self._abilities = line, abilities
        self._ways = {
            Op.SEND: self._send,
            Op.EDIT: self._edit,
            Op.DELETE: self._delete,
            Op.TYPING: self._type,
            Op.REACT: self._react,
            Op.ANSWER: self._answer,
        }

    async def make(self, out: Outgoing, content: Content) -> str:
        """The id of the message that it made or changed. Raises a ``CallError``."""
        try:
            if out.op is Op.SEND and (out.files or out.as_file):
                return await self._send_file(out, content)
            return await self._ways[out.op](out)
        except (Lost, Refused) as failure:
            error = outcomes.call_error(failure, out)
        raise error from None

    async def ask(self, method: str, params: dict[str, Any], **how: Any) -> bytes:
        """A call that a server may not know: then ``Absent``."""
        if not self._abilities.has(method):
            raise Absent(f"this server has no {method}")
        try:
            result = await self._line.ask(method, params, **how)
        except Refused as refused:
            if self._abilities.refused(method, refused):
                raise Absent(f"this server has no {method}") from None
            raise
        self._abilities.worked(method)
        return result

    # Messages

    async def _send(self, out: Outgoing) -> str:
        if not out.text:
            raise Impossible("there is nothing to say")
        text = {"text": out.text, "link_preview_options": _NO_PREVIEW}
        params = {**_where(out.place), **text, **_entities(out, "entities"), **_extras(out)}
        return await self._sent("sendMessage", params)

    async def _sent(self, method: str, params: dict[str, Any]) -> str:
        try:
            return _message_id(await self.ask(method, params))
        except Refused as refused:
            if "reply_parameters" not in params or not outcomes.is_reply_gone(refused):
                raise
        without = {name: value for name, value in params.items() if name != "reply_parameters"}
        return _message_id(await self.ask(method, without))

    async def _send_file(self, out: Outgoing, content: Content) -> str:
        if len(out.files) > 1:
            raise Impossible("one file for each call")
        params = {**_where(out.place), **_extras(out)}
        if out.as_file:
            data, name = out.text.encode("utf-8", "replace"), safe_name(out.as_file, "text.txt")
        else:
            file = out.files[0]
            data, name = await content(file), safe_name(file.name, "file")
            if out.text:
                params |= {"caption": out.text, **_entities(out, "caption_entities")}
        if not data:
            raise Impossible("the file is empty")
        if len(data) > self._abilities.caps.file_bytes:
            raise Impossible("the file is too large for Telegram")
        if _is_picture(data) and not out.as_file:
            try:
                return await self._sent(
                    "sendPhoto", {**params, "photo": self._line.file(data, name)}
                )
            except Absent:
                pass
            except Refused as refused:
                if not outcomes.is_no_photo(refused):
                    raise
        return await self._sent("sendDocument", {**params, "document": self._line.file(data, name)})

    async def _edit(self, out: Outgoing) -> str:
        where = {"chat_id": out.place.chat, "message_id": _number(out.target)}
        keys = _keyboard(out.buttons)
        try:
            if not out.text:
                await self.ask("editMessageReplyMarkup", {**where, **keys})
                return out.target
            text = {"text": out.text, "link_preview_options": _NO_PREVIEW}
            try:
                await self.ask(
                    "editMessageText", {**where, **text, **_entities(out, "entities"), **keys}
                )
            except Refused as refused:
                if not outcomes.is_caption(refused):
                    raise
                caption = {"caption": out.text, **_entities(out, "caption_entities")}
                await self.ask("editMessageCaption", {**where, **caption, **keys})
        except Refused as refused:
            if not outcomes.is_same(refused):
                raise
        return out.target

    async def _delete(self, out: Outgoing) -> str:
        params = {"chat_id": out.place.chat, "message_id": _number(out.target)}
        try:
            await self.ask("deleteMessage", params)
        except Refused as refused:
            if not outcomes.is_gone_already(refused):
                raise
        return out.target

    async def _react(self, out: Outgoing) -> str:
        emoji = out.text.replace("\ufe0f", "")  # Telegram names its hearts without it
        reaction = [{"type": "emoji", "emoji": emoji}] if emoji else []
        await self.ask(
            "setMessageReaction",
            {
                "chat_id": out.place.chat,
                "message_id": _number(out.target),
                "reaction": reaction,
            },
        )
        return out.target

    async def _type(self, out: Outgoing) -> str:
        await self.ask("sendChatAction", {**_where(out.place), "action": "typing"})
        return ""

    # Answers

    async def _answer(self, out: Outgoing) -> str:
        if out.target.startswith(INLINE):
            params = {
                "inline_query_id": out.target.removeprefix(INLINE),
                "results": _results(out.data),
                "is_personal": True,
                "cache_time": HITS_KEPT_S,
            }
            await self.ask("answerInlineQuery", params)
            return ""
        answer: dict[str, Any] = {"callback_query_id": out.target}
        if out.text:
            answer["text"] = _cut(out.text, ANSWER_MAX_CHARS)
            answer["show_alert"] = out.alert
        await self.ask("answerCallbackQuery", answer)
        return ""

    # Files in

    async def fetch(self, file: Attachment) -> bytes:
        """A file that came in, of 20 MB at most. Raises a ``CallError``."""
        out = Outgoing(key="", place=Place("", ""), op=Op.TYPING)
        try:
            if file.size > DOWNLOAD_MAX_BYTES:
                raise _too_large()
            found = msgspec.json.decode(await self.ask("getFile", {"file_id": file.ref}))
            path = found.get("file_path") if isinstance(found, dict) else None
            size = found.get("file_size") if isinstance(found, dict) else None
            if isinstance(size, int) and size > DOWNLOAD_MAX_BYTES:
                raise _too_large()
            return await self._line.download(_safe_path(path), DOWNLOAD_MAX_BYTES)
        except (Lost, Refused) as failure:
            too_large = isinstance(failure, Refused) and failure.code == 413  # noqa: PLR2004
            error = _too_large() if too_large else outcomes.call_error(failure, out)
        raise error from None


def _too_large() -> CallError:
    return Impossible(f"the file is larger than {DOWNLOAD_MAX_BYTES >> 20} MB")


def _safe_path(path: Any) -> str:
    """A path below the server's files, and nowhere else."""
    if not isinstance(path, str) or not path:
        raise Impossible("the server does not say where the file is")
    parts = path.split("/")
    if path.startswith("/") or "\\" in path or ".." in parts or "://" in path:
        raise Impossible("the server keeps the file where we do not look")
    return quote(path, safe="/")


def _where(place: Place) -> dict[str, Any]:
    """The chat, and the topic: without it, everything falls into the general one."""
    if not place.topic:
        return {"chat_id": place.chat}
    return {"chat_id": place.chat, "message_thread_id": _number(place.topic)}


def _extras(out: Outgoing) -> dict[str, Any]:
    extras = _keyboard(out.buttons)
    if out.reply_to:
        number = _number(out.reply_to)
        reply = {"message_id": number, "allow_sending_without_reply": True}
        extras["reply_parameters"] = reply
    if out.silent:
        extras["disable_notification"] = True
    return extras


def _keyboard(rows: tuple[tuple[Button, ...], ...]) -> dict[str, Any]:
    shown = [
        [
            {"text": _cut(button.label, LABEL_MAX_CHARS), "callback_data": button.data}
            for button in row
        ]
        for row in rows
        if row
    ]
    if any(len(button.data.encode()) > DATA_MAX_BYTES for row in rows for button in row):
        raise Impossible("a button carries 64 bytes at most")
    return {"reply_markup": {"inline_keyboard": shown}} if shown else {}


def _entities(out: Outgoing, field: str) -> dict[str, Any]:
    shown = [entity for span in out.spans if (entity := _entity(span))]
    return {field: shown[:ENTITIES_MAX]} if shown else {}


def _entity(span: Span) -> dict[str, Any] | None:
    entity: dict[str, Any] = {
        "type": _STYLES[span.kind],
        "offset": span.offset,
        "length": span.length,
    }
    if span.kind is SpanKind.LINK:
        if not span.arg.lower().startswith(("http://", "https://")):
            return None  # tg:// opens people and payments
        entity["url"] = span.arg
    elif span.kind is SpanKind.PRE and span.arg:
        entity["language"] = span.arg
    return entity


def _results(hits: str) -> list[dict[str, Any]]:
    try:
        found = msgspec.json.decode(hits or "[]", type=list[Hit])
    except msgspec.MsgspecError:
        raise Impossible("no list of hits") from None
    return [
        {
            "type": "article",
            "id": hit.id,
            "title": one_line(hit.title, 100) or "…",
            "description": one_line(hit.about, 200),
            "input_message_content": {
                "message_text": _cut(hit.text or hit.title, TEXT_MAX_CHARS) or "…",
                "link_preview_options": _NO_PREVIEW,
            },
        }
        for hit in found[:HITS_MAX]
    ]


def _is_picture(data: bytes) -> bool:
    """By what it is, not by what it is called."""
    return data.startswith(_PICTURES) and len(data) <= PHOTO_MAX_BYTES


def _message_id(result: bytes) -> str:
    """The id, if the server says one: the call has had its effect in any case."""
    found = msgspec.json.decode(result)
    number = found.get("message_id") if isinstance(found, dict) else None
    return str(number) if isinstance(number, (int, str)) and not isinstance(number, bool) else ""


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Impossible("there is no such message") from None


def _cut(text: str, most: int) -> str:
    """At most so many UTF-16 units."""
    if len(text) <= most and text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass")[: 2 * most].decode("utf-16-le", "ignore")
