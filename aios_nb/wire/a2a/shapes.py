"""The JSON of A2A 1.0, as far as it is used here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from aios_nb.errors import InvalidParams
from aios_nb.wire.jsonrpc import ABSENT, NOT_JSON

VERSION = "1.0"
Text = Annotated[str, Meta(min_length=1)]
HistoryLength = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
PAGE_MOST = 100


class State(StrEnum):
    UNSPECIFIED = "TASK_STATE_UNSPECIFIED"
    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    REJECTED = "TASK_STATE_REJECTED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"

    @property
    def is_final(self) -> bool:
        return self in _FINAL


_FINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELED, State.REJECTED})


class Shape(msgspec.Struct, rename="camel", omit_defaults=True):
    """Base: what is not there is left out, and what nobody here knows is passed over."""


class Part(Shape):
    """One of text, bytes, an address or data."""

    text: str | None = None
    raw: str | None = None
    """Base64."""
    url: str | None = None
    data: Any | UnsetType = UNSET
    metadata: dict[str, Any] | None = None
    filename: str | None = None
    media_type: str | None = None


class Message(Shape):
    message_id: Text
    role: Literal["ROLE_USER", "ROLE_AGENT"]
    parts: Annotated[list[Part], Meta(min_length=1)]
    context_id: str | None = None
    task_id: str | None = None
    metadata: dict[str, Any] | None = None


class Status(Shape):
    state: State
    message: Message | None = None
    timestamp: str | None = None


class Artifact(Shape):
    artifact_id: str
    parts: list[Part]
    name: str | None = None


class Task(Shape):
    id: str
    context_id: str
    status: Status
    artifacts: list[Artifact] | None = None
    history: list[Message] | None = None

    def with_history(self, length: int | None) -> Task:
        """The same with the last so many messages; None: all there are."""
        if length is None or self.history is None:
            return self
        kept = self.history[-length:] if length else None
        return msgspec.structs.replace(self, history=kept)


class StatusUpdate(Shape):
    task_id: str
    context_id: str
    status: Status


class ArtifactUpdate(Shape):
    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False


class Told(Shape):
    """What SendMessage gives, and each event of a stream: one of these."""

    task: Task | None = None
    message: Message | None = None
    status_update: StatusUpdate | None = None
    artifact_update: ArtifactUpdate | None = None


# Requests --------------------------------------------------------------------------------


class Configuration(Shape):
    history_length: HistoryLength | None = None
    return_immediately: bool | None = None
    task_push_notification_config: Any = None


class Send(Shape):
    message: Message
    configuration: Configuration | None = None

    @property
    def waits(self) -> bool:
        return self.configuration is None or not self.configuration.return_immediately

    @property
    def history_length(self) -> int | None:
        return None if self.configuration is None else self.configuration.history_length


class TaskRef(Shape):
    id: Text
    history_length: HistoryLength | None = None


class ListTasks(Shape):
    context_id: str | None = None
    status: State | None = None
    page_size: Annotated[int, Meta(ge=1, le=PAGE_MOST)] | None = None
    page_token: str | None = None
    history_length: HistoryLength | None = None
    status_timestamp_after: str | None = None
    include_artifacts: bool | None = None


class Anything(Shape):
    """Of methods that are refused whatever they say."""


S = TypeVar("S", bound=Shape)
_SHAPES = (Part, Message, Configuration, Send, TaskRef, ListTasks, Anything)
_DECODE: Mapping[type[Shape], Callable[[bytes], Any]] = {
    shape: msgspec.json.Decoder(shape).decode for shape in _SHAPES
}
_CAMEL = {
    field.name: field.encode_name
    for shape in _SHAPES
    for field in msgspec.structs.fields(shape)
    if field.name != field.encode_name
}
_SNAKE = re.compile(rb'"(?:%b)"\s*:' % b"|".join(name.encode() for name in _CAMEL))
_THEIR_OWN = frozenset({"data", "metadata"})
"""What a client puts in here has names of its own."""


def read(shape: type[S], raw: Raw) -> S:
    """The params of a request. Raises ``InvalidParams``.

    The names may also be those of the protocol's definition (``history_length``): its JSON
    mapping allows both, and its test kit uses them.
    """
    given = b"{}" if raw is ABSENT else bytes(raw)
    try:
        if _SNAKE.search(given) is None:
            return cast("S", _DECODE[shape](given))
        return msgspec.convert(_renamed(msgspec.json.decode(given)), shape)
    except msgspec.ValidationError as problem:
        raise InvalidParams(_complaint(problem)) from None
    except NOT_JSON:
        raise InvalidParams("params are nested too deeply") from None


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {
        _CAMEL.get(name, name): item if name in _THEIR_OWN else _renamed(item)
        for name, item in value.items()
    }
    # Where both were sent, the proper one holds.
    return {**found, **{name: found[name] for name in value if name in found}}


def _complaint(problem: Exception) -> str:
    """What msgspec says, without its marks; it quotes no values."""
    return str(problem).replace("`", "").replace("$.", "").replace("Object", "params")[:200]
