"""The errors that A2A itself defines; ours are translated by ``wire/translated.py``."""

from __future__ import annotations

from typing import Any

from aios_nb.wire.translated import for_a2a, info


class Refused(Exception):
    """An error of A2A: its JSON-RPC code and its reason."""

    def __init__(self, code: int, reason: str, message: str, **metadata: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.metadata = metadata


def task_not_found() -> Refused:
    """The same for a task of another caller, of another agent, and for none at all."""
    return Refused(-32001, "TASK_NOT_FOUND", "no such task")


def not_cancelable(state: str) -> Refused:
    return Refused(-32002, "TASK_NOT_CANCELABLE", "the task is over", state=state)


def no_push() -> Refused:
    return Refused(
        -32003,
        "PUSH_NOTIFICATION_NOT_SUPPORTED",
        "push notifications are not supported (subscribe to the task instead)",
    )


def unsupported(message: str, **metadata: str) -> Refused:
    return Refused(-32004, "UNSUPPORTED_OPERATION", message, **metadata)


def content_type(message: str) -> Refused:
    return Refused(-32005, "CONTENT_TYPE_NOT_SUPPORTED", message)


def version(message: str) -> Refused:
    return Refused(-32009, "VERSION_NOT_SUPPORTED", message)


def to_wire(problem: Exception) -> dict[str, Any]:
    """The JSON-RPC error object."""
    if isinstance(problem, Refused):
        data = [info(problem.reason, problem.metadata)]
        return {"code": problem.code, "message": problem.message, "data": data}
    code, message, data = for_a2a(problem)
    return {"code": code, "message": message, "data": data}
