"""What a client is told, word by word, with the ids of the day taken out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aios_nb.client import Flow, SiteClient
from aios_nb.errors import AiosError, RpcError

_ID = re.compile(
    r"(?:token:|aios_)?(?:[a-z2-7]{32}|[cmrqsew][0-9a-f]{27}|\b[0-9a-f]{16}\b|[\w-]{43})"
)
_SHORT = re.compile(r"@[a-z2-7]{12}\b")
_URL = re.compile(r"http://127\.0\.0\.1:\d+")
_MOMENTARY = frozenset(
    {
        "at",
        "created_at",
        "updated_at",
        "last_at",
        "uptime_s",
        "seconds",
        "latency_ms",
        "record",
        "score",  # words alone are counted until the model is read
    }
)
"""Fields that are never the same twice: only whether they are there is told."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| UTC)?")


class Transcript:
    """Calls a client and writes down all that it says, errors too."""

    def __init__(self, client: SiteClient) -> None:
        self.client = client
        self.said: list[Any] = []
        self.methods: set[str] = set()
        self._ids: dict[str, str] = {}

    async def call(self, method: str, /, **params: Any) -> Any:
        """What the client gave; what it raised is written down and given too."""
        self.methods.add(method)
        try:
            got = await self.client.call(method, **params)
        except AiosError as error:
            self.error(method, error)
            return error
        self.note(method, got)
        return got

    async def stream(self, **params: Any) -> Any:
        """A whole reply: how its pieces add up, and its result."""
        async with self.flow("chat.stream", **params) as flow:
            text = ""
            try:
                async for piece in flow:
                    text += piece["text"]
                got = await flow.result()
            except AiosError as error:
                self.error("chat.stream", error)
                return error
        self.note("chat.stream", [text, got])
        return got

    @asynccontextmanager
    async def flow(self, method: str, /, **params: Any) -> AsyncIterator[Flow]:
        self.methods.add(method)
        flow = self.client.notices(method, **params)
        try:
            yield flow
        finally:
            flow.close()

    def error(self, about: str, error: AiosError) -> None:
        code = error.code if isinstance(error, RpcError) else None
        data = error.data if isinstance(error, RpcError) else None
        told = {"message": error.message, "hint": error.hint, "data": data, "str": str(error)}
        self.note(about, [type(error).__name__, code, told])

    def note(self, about: str, value: Any) -> None:
        self.said.append((about, self._plain(value)))

    def _plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                self._text(key): type(item).__name__ if key in _MOMENTARY else self._plain(item)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._plain(item) for item in value]
        if isinstance(value, str):
            return self._text(value)
        assert value is None or type(value) in {bool, int, float}, type(value)
        return value

    def _text(self, text: str) -> str:
        text = _ID.sub(lambda found: self._known(found[0]), _URL.sub("<url>", text))
        return _SHORT.sub("@<short>", _MOMENT.sub("<moment>", text))

    def _known(self, found: str) -> str:
        return self._ids.setdefault(found, f"<{len(self._ids)}>")
