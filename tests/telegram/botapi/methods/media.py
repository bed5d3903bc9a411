"""Files up and down: sendPhoto, sendDocument and their kin, sendMediaGroup, getFile."""

from __future__ import annotations

import secrets
from typing import Any

from tests.telegram.botapi.args import Upload
from tests.telegram.botapi.errors import ApiError, bad
from tests.telegram.botapi.files import Stored
from tests.telegram.botapi.methods.sending import send
from tests.telegram.botapi.methods.table import Asked, formatted, method
from tests.telegram.botapi.settings import CAPTION_UNITS
from tests.telegram.botapi.texts import Text

TOO_LONG = "message caption is too long"
KINDS = ("photo", "document", "voice", "audio", "video", "animation")


def _sender(kind: str) -> None:
    @method(f"send{kind.title()}")
    def send_file(asked: Asked) -> dict[str, Any]:
        chat = asked.chat()
        stored = _file(asked, kind, asked.args.text(kind), asked.args.uploads.get(kind))
        said = asked.formatted("caption", "caption_entities", CAPTION_UNITS, TOO_LONG)
        media = stored.field(duration=asked.args.integer("duration"))
        return send(asked, chat, media=media, caption=said if said.text else None).json()


for _kind in KINDS:
    _sender(_kind)


@method("sendMediaGroup")
def send_media_group(asked: Asked) -> list[dict[str, Any]]:
    chat = asked.chat()
    group = asked.args.json("media")
    if not isinstance(group, list):
        raise bad("can't parse media JSON object")
    if not 2 <= len(group) <= 10:
        raise bad("group send failed" if group else "there are no messages to send")
    number = str(secrets.randbelow(10**17))
    return [
        send(asked, chat, media=media, caption=said, extra={"media_group_id": number}).json()
        for media, said in files_of_group(asked, group)
    ]


@method("getFile")
def get_file(asked: Asked) -> dict[str, Any]:
    return asked.world.files.link(asked.args.text("file_id"))


@method("getUserProfilePhotos")
def get_user_profile_photos(_asked: Asked) -> dict[str, Any]:
    return {"total_count": 0, "photos": []}


def files_of_group(asked: Asked, group: list[Any]) -> list[tuple[dict[str, Any], Text | None]]:
    """The media field and the caption of each InputMedia."""
    found = []
    for one in group:
        if not isinstance(one, dict) or one.get("type") not in KINDS:
            raise bad("can't parse InputMedia: type must be non-empty")
        stored = _file(asked, one["type"], str(one.get("media", "")), None)
        said = formatted(
            str(one.get("caption") or ""),
            str(one.get("parse_mode") or ""),
            one.get("caption_entities"),
            CAPTION_UNITS,
            TOO_LONG,
        )
        found.append((stored.field(), said if said.text else None))
    return found


def _file(asked: Asked, kind: str, given: str, upload: Upload | None) -> Stored:
    """A file that came along, one that is known by its id, or one to be fetched."""
    files = asked.world.files
    if given.startswith("attach://"):
        upload = asked.args.uploads.get(given.removeprefix("attach://"))
    if upload:
        return files.upload(kind, upload.data, upload.name, upload.mime)
    if not given or given.startswith("attach://"):
        raise bad(f"there is no {kind} in the request")
    if given.startswith(("http://", "https://")):
        raise _not_fetched()
    stored = files.find(given)
    if stored.kind != kind:
        raise bad(f"can't use file of type {stored.kind.title()} as {kind.title()}")
    return stored


def _not_fetched() -> ApiError:
    """This server fetches nothing: it lives without a network."""
    return bad("failed to get HTTP URL content")
