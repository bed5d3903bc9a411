"""A task as it goes on: our deltas and questions as A2A's events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import msgspec

from aios_nb.envelope import now_iso
from aios_nb.errors import RpcError
from aios_nb.ports import Notices
from aios_nb.wire.a2a.parts import told
from aios_nb.wire.a2a.shapes import (
    Artifact,
    ArtifactUpdate,
    Part,
    State,
    Status,
    StatusUpdate,
    Task,
    Told,
)
from aios_nb.wire.a2a.tasks import agent_message, over, place_of

Events = AsyncIterator[Told]
Stream = Callable[[int, str], Awaitable[Notices]]
"""``chat.stream`` of the task from a code point on, beyond a question that is known."""
Rest = Callable[[Mapping[str, Any]], Awaitable[list[Part]]]
"""What an answer has besides its text."""


async def follow(
    task: Task, stream: Stream, rest: Rest, question: str, *, to_the_end: bool
) -> Events:
    """The task, then its answer from the first character on, however late one comes.

    Ends with the task; or, unless ``to_the_end``, with a question, which the client answers by a
    new message. ``question`` is one it knows already.
    """
    place = place_of(task.id)
    answer = _Answer(task)
    yield Told(task=task)
    while True:
        notices = await stream(answer.length, question)
        try:
            async for delta in notices:
                for event in answer.pieces(delta):
                    yield event
            result = msgspec.to_builtins(await notices.result())
        except RpcError as error:
            status = over(error)
            if status is None:
                raise
            yield _changed(task, status)
            return
        finally:
            notices.close()
        if result["status"] != "input_required":
            break
        question = result["question"]
        asked = agent_message(place, question, result["text"])
        yield _changed(task, Status(State.INPUT_REQUIRED, asked, now_iso()))
        if not to_the_end:
            return
    for event in answer.end(result["reply_id"], result["text"], await rest(result)):
        yield event
    yield _changed(task, Status(State.COMPLETED, timestamp=now_iso()))


async def once(task: Task) -> Events:
    """A task to which nothing more happens."""
    yield Told(task=task)


class _Answer:
    """An answer on its way: one artifact, piece by piece."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._id = ""
        self._pieces: list[str] = []
        self._at_work = task.status.state is State.WORKING
        """The client knows that it has begun."""
        self.length = 0
        """Code points sent so far."""

    def pieces(self, delta: Any) -> list[Told]:
        """What a delta of ours is."""
        events = []
        if delta.progress:
            place = place_of(self._task.id)
            note = agent_message(place, f"{delta.reply_id}.{self.length}", delta.progress)
            events.append(_changed(self._task, Status(State.WORKING, note, now_iso())))
        elif delta.text and not delta.done and not self._at_work:
            events.append(_changed(self._task, Status(State.WORKING, timestamp=now_iso())))
        if delta.text:
            self._id = delta.reply_id
            part = Part(text=delta.text, media_type="text/plain")
            events.append(self._update([part], append=bool(self._pieces)))
            self._pieces.append(delta.text)
            self.length += len(delta.text)
        self._at_work = self._at_work or bool(events)
        return events

    def end(self, reply_id: str, text: str, rest: list[Part]) -> list[Told]:
        """What is still to be said when it is all there."""
        self._id = reply_id
        if "".join(self._pieces) != text:  # it said one thing and answered another
            return [self._update([*told(text, None), *rest], append=False, last=True)]
        if not rest and not self._pieces:
            return []
        parts = rest or [Part(text="", media_type="text/plain")]
        return [self._update(parts, append=bool(self._pieces), last=True)]

    def _update(self, parts: list[Part], *, append: bool, last: bool = False) -> Told:
        task = self._task
        artifact = Artifact(self._id, parts)
        update = ArtifactUpdate(task.id, task.context_id, artifact, append, last)
        return Told(artifact_update=update)


def _changed(task: Task, status: Status) -> Told:
    return Told(status_update=StatusUpdate(task.id, task.context_id, status))
