"""The parameters of a call, however they were sent: query, form, multipart or JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.telegram.botapi.errors import ApiError, bad


@dataclass(frozen=True)
class Upload:
    """A file that came with a call."""

    name: str
    mime: str
    data: bytes = field(repr=False)


class Args:
    """Parameters by name; reading one as what it is not is the caller's error."""

    def __init__(self, values: dict[str, Any], uploads: dict[str, Upload] | None = None) -> None:
        self.values = {name: value for name, value in values.items() if value is not None}
        self.uploads = uploads or {}

    def has(self, name: str) -> bool:
        return name in self.values or name in self.uploads

    def text(self, name: str) -> str:
        value = self.values.get(name, "")
        if isinstance(value, bool):
            return str(value).lower()
        return value if isinstance(value, str) else json.dumps(value)

    def integer(self, name: str, default: int = 0) -> int:
        value = self.text(name).strip()
        if not value:
            return default
        try:
            return int(value)
        except ValueError:
            raise bad(f"invalid {name} specified") from None

    def flag(self, name: str) -> bool:
        return self.text(name).strip().lower() in {"true", "yes", "1"}

    def json(self, name: str) -> Any:
        """A JSON-serialised parameter; None if there is none."""
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        if not value.strip():
            return None
        try:
            return json.loads(value)
        except ValueError:
            raise bad(f"can't parse {name.replace('_', ' ')} JSON object") from None


async def read_args(request: web.Request) -> Args:
    """What came with a request."""
    values: dict[str, Any] = dict(request.query)
    uploads: dict[str, Upload] = {}
    if request.content_type == "application/json":
        body = await request.read()
        try:
            given = json.loads(body) if body else {}
        except ValueError:
            raise bad("can't parse JSON object") from None
        if not isinstance(given, dict):
            raise bad("JSON object expected")
        values |= given
    elif request.content_type == "multipart/form-data":
        try:
            form = await request.post()
        except web.HTTPRequestEntityTooLarge:
            raise ApiError(413) from None
        for name, value in form.items():
            if isinstance(value, web.FileField):
                data = value.file.read()
                value.file.close()
                uploads[name] = Upload(value.filename, value.content_type, data)
            else:
                values[name] = value if isinstance(value, str) else bytes(value).decode()
    elif request.method == "POST":
        values |= dict(await request.post())
    return Args(values, uploads)
