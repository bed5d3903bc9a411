"""Every error a person or a program can meet, in one tree.

::

    AiosError
    ├── UsageError          a bad name, option or argument; nothing was done
    ├── HomeError           $AIOS_HOME or a file in it cannot be used
    ├── NameTaken           another running node holds this name
    ├── NotRunning          no node answers (or several do, and none was named)
    ├── ConnectionLost      the link broke in the middle of a call, which may have run
    ├── Impostor            the program on that port is not the node it should be
    ├── RecordError         bytes that are not a valid signed record
    │   └── UnknownRecord     a type or version of record this program does not know
    └── RpcError            errors that travel: each has a JSON-RPC code
        ├── ParseError        -32700
        ├── InvalidRequest    -32600
        ├── MethodNotFound    -32601
        ├── InvalidParams     -32602
        ├── InternalError     -32603
        ├── NoSuchAgent       -32001
        ├── AgentFailed       -32002
        ├── DeadlinePassed    -32003
        ├── Cancelled         -32004
        ├── Busy              -32005
        ├── NotAllowed        -32006
        ├── TooLarge          -32007
        └── Unreachable       -32008

An error is one sentence (what happened) and, where it helps, a hint (what to do).
"""

from __future__ import annotations

from typing import Any, ClassVar, Self


class AiosError(Exception):
    """Base of all errors raised on purpose by this package."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(AiosError):
    """What was asked for cannot be meant; nothing was done."""


class HomeError(AiosError):
    """The home folder, or a file in it, cannot be used."""


class NameTaken(AiosError):
    """Another program holds this name, or bridges this bot."""


class NotRunning(AiosError):
    """No node to talk to, or no way to tell which."""


class ConnectionLost(AiosError):
    """The link to the node broke before the answer; ``message_id`` makes asking again safe."""

    def __init__(
        self, message: str, *, hint: str | None = None, message_id: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.message_id = message_id


class Impostor(AiosError):
    """The program that answered could not prove to be the expected node."""


class RecordError(AiosError):
    """Bytes that are not a valid signed record."""


class UnknownRecord(RecordError):
    """A record of a type or version that this program does not know; to be dropped and counted."""


class RpcError(AiosError):
    """An error that travels over JSON-RPC; ``data`` carries ids and details."""

    code: ClassVar[int] = -32000
    what_to_do: ClassVar[str | None] = None
    """The hint that travels when whoever raised it had none."""

    def __init__(self, message: str, *, hint: str | None = None, **data: Any) -> None:
        super().__init__(message, hint=hint)
        self.data: dict[str, Any] = data

    def to_wire(self) -> dict[str, Any]:
        """The JSON-RPC error object."""
        data = dict(self.data)
        hint = self.hint or self.what_to_do
        if hint:
            data["hint"] = hint
        wire: dict[str, Any] = {"code": self.code, "message": self.message}
        if data:
            wire["data"] = data
        return wire


class ParseError(RpcError):
    code = -32700


class InvalidRequest(RpcError):
    code = -32600


class MethodNotFound(RpcError):
    code = -32601
    what_to_do = "PROTOCOL.md lists the methods"


class InvalidParams(RpcError):
    code = -32602
    what_to_do = "PROTOCOL.md lists what each method takes"


class InternalError(RpcError):
    code = -32603


class NoSuchAgent(RpcError):
    """No agent of that name, or none this caller may call."""

    code = -32001


class AgentFailed(RpcError):
    """The agent raised, or its run was cut (``data.status``, ``data.ran``)."""

    code = -32002
    what_to_do = "the log of its node has the details"


class DeadlinePassed(RpcError):
    code = -32003
    what_to_do = "ask with a longer deadline_s"


class Cancelled(RpcError):
    code = -32004
    what_to_do = "send it again under a new message_id if it is still wanted"


class Busy(RpcError):
    """Try again after ``data.retry_after_s``; nothing was taken."""

    code = -32005

    def __init__(
        self, message: str, *, hint: str | None = None, retry_after_s: float = 1.0, **data: Any
    ) -> None:
        super().__init__(message, hint=hint, retry_after_s=retry_after_s, **data)


class NotAllowed(RpcError):
    code = -32006
    what_to_do = "the owner of this node may do it"


class TooLarge(RpcError):
    code = -32007
    what_to_do = "send less, or send it as a file"


class Unreachable(RpcError):
    """No way to the node of an agent (``data.reason``); nothing ran."""

    code = -32008
    WHAT_TO_DO: ClassVar[dict[str, str]] = {
        "left": "it was stopped; ask again when it is up",
        "no address": "link to it: aios-nb up --join URL#NODEID",
        "no answer": "try again later; `aios-nb peers` shows who is there",
        "refused": "its owner may have blocked this node, or it is in another network",
    }
    """By reason, for people."""

    @classmethod
    def node_of(cls, agent: str, reason: str, **data: Any) -> Self:
        """The same words wherever it is met."""
        hint = cls.WHAT_TO_DO.get(reason, cls.WHAT_TO_DO["no answer"])
        verb = "refuses the link" if reason == "refused" else "could not be reached"
        return cls(f"the node of {agent} {verb}", hint=hint, reason=reason, **data)


_BY_CODE: dict[int, type[RpcError]] = {cls.code: cls for cls in RpcError.__subclasses__()}


def from_wire(error: dict[str, Any]) -> RpcError:
    """The error that a JSON-RPC error object stands for."""
    data = dict(error.get("data") or {})
    hint = data.pop("hint", None)
    cls = _BY_CODE.get(error.get("code", 0), RpcError)
    found = cls(
        str(error.get("message", "unknown error")), hint=None if hint is None else str(hint)
    )
    found.data.update(data)  # not as arguments: another program chose these names
    if cls is RpcError:
        found.data.setdefault("code", error.get("code"))
    return found
