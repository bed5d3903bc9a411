"""What an A2A agent says of a task: its events, its states, and how it ended."""

from __future__ import annotations

import msgspec

from aios_nb.envelope import Status
from aios_nb.errors import AgentFailed, Cancelled, NotAllowed, RpcError
from aios_nb.wire.a2a.shapes import State
from aios_nb.wire.outside.parts import Artifact, Part, text_of

ENDS = frozenset(state for state in State if state.is_final)
WAITS = frozenset({State.INPUT_REQUIRED, State.AUTH_REQUIRED})


class TheirMessage(msgspec.Struct, rename="camel"):
    message_id: str = ""
    context_id: str = ""
    role: str = ""
    parts: list[Part] = []


class TaskStatus(msgspec.Struct):
    state: str = ""
    message: TheirMessage | None = None
    timestamp: str = ""


class TheirTask(msgspec.Struct, rename="camel"):
    id: str
    context_id: str = ""
    status: TaskStatus = msgspec.field(default_factory=TaskStatus)
    artifacts: list[Artifact] = []
    history: list[TheirMessage] = []


class StatusUpdate(msgspec.Struct, rename="camel"):
    task_id: str
    context_id: str = ""
    status: TaskStatus = msgspec.field(default_factory=TaskStatus)


class ArtifactUpdate(msgspec.Struct, rename="camel"):
    task_id: str
    artifact: Artifact
    context_id: str = ""
    append: bool = False


class Said(msgspec.Struct, rename="camel"):
    task: TheirTask | None = None
    message: TheirMessage | None = None
    status_update: StatusUpdate | None = None
    artifact_update: ArtifactUpdate | None = None


def question_of(status: TaskStatus) -> str:
    """What tells one question from another."""
    said = status.message
    if said is not None and said.message_id:
        return said.message_id
    return f"{status.timestamp} {text_of(said.parts) if said else ''}"


def bad_end(state: str, said: str) -> RpcError:
    """An end that is not a good one, in our words."""
    why = f": {said}" if said else ""
    if state == State.CANCELED:
        return Cancelled(f"it was cancelled over there{why}")
    if state == State.AUTH_REQUIRED:
        return NotAllowed(
            f"it wants a sign-in first{why}",
            hint="give its token in an environment variable: aios-nb hub add URL --token-env NAME",
        )
    if state == State.REJECTED:
        return AgentFailed(f"it does not take this{why}", hint="ask it in another way", ran="no")
    return AgentFailed(f"it failed{why}", hint="its owner may know more", ran="yes")


def cut(why: str) -> AgentFailed:
    """Nobody knows what became of it."""
    return AgentFailed(
        f"what became of it is not known: {why}",
        hint="it may have done part of its work; send it again if that is safe",
        status=Status.INTERRUPTED.value,
        ran="unknown",
    )
