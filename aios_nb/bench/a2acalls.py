"""What an A2A client sends to an agent, and what must come back. No I/O."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from aios_nb.bench.calls import Rpc, quoted
from aios_nb.bench.spec import Target

HEADERS = (("A2A-Version", "1.0"),)
_COMPLETED = "TASK_STATE_COMPLETED"


class Part(msgspec.Struct):
    text: str = ""


class Said(msgspec.Struct):
    """A message, or one artifact of a task."""

    parts: list[Part] = []


class Status(msgspec.Struct):
    state: str = ""


class Task(msgspec.Struct):
    status: Status = msgspec.field(default_factory=Status)
    artifacts: list[Said] = []


class Sent(msgspec.Struct):
    """An agent answers with a message, or with a task that it has worked on."""

    message: Said | None = None
    task: Task | None = None


class Answer(msgspec.Struct):
    jsonrpc: str = ""
    id: int | str | None = None
    result: Sent | None = None
    error: Any = None


_decode = msgspec.json.Decoder(Answer).decode


class SendMessage(Rpc):
    """One message, and the agent's whole answer to it."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.concurrency)
        self._run = secrets.token_hex(6).encode()  # message ids are remembered across connections

    def body(self, slot: int, number: int, task: bytes) -> bytes:
        del slot
        return (
            b'{"jsonrpc":"2.0","id":%d,"method":"SendMessage","params":{"message":{'
            b'"messageId":"%b.%d","role":"ROLE_USER","parts":[{"text":"%b"}]}}}'
            % (number, self._run, number, task)
        )

    def reply(self, slot: int, body: bytes) -> str | None:
        try:
            answer = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return f"not an answer to SendMessage: {quoted(body)}"
        sent = answer.result
        if sent is None or answer.jsonrpc != "2.0":
            return f"no result: {quoted(body)}"
        if answer.id != self._id[slot]:
            return f"the reply to another call: id {answer.id}, not {self._id[slot]}"
        pieces = [sent.message] if sent.message else []
        if sent.task is not None:
            if sent.task.status.state != _COMPLETED:
                return f"a task that is not done: {sent.task.status.state}"
            pieces = sent.task.artifacts
        text = "".join(part.text for piece in pieces for part in piece.parts)
        if text != self._text[slot]:
            return f"another text: {quoted(text.encode())}"
        return None
