"""What changes or answers something said before; each once, by the id of the update."""

from __future__ import annotations

from typing import Any

from aios_bots.core.desk.visit import Visit
from aios_bots.core.questions import Question
from aios_bots.core.store import Shown


def _once(visit: Visit, event_id: str = "", *, who: bool = True) -> dict[str, Any]:
    """By whom, and under which id: the same again is the same event."""
    said: dict[str, Any] = {"event_id": event_id or visit.key}
    return {**said, "sender": visit.incoming.person} if who else said


async def edit(visit: Visit, shown: Shown, text: str) -> None:
    await visit.client.call(
        "chat.edit",
        conversation=shown.conversation,
        message_id=shown.event_id,
        text=text,
        **_once(visit, who=False),
    )


async def react(visit: Visit, shown: Shown, reaction: str) -> None:
    await visit.client.call(
        "chat.react",
        conversation=shown.conversation,
        message_id=shown.event_id,
        reaction=reaction,
        **_once(visit),
    )


async def answer(visit: Visit, question: Question, text: str, event_id: str) -> None:
    await visit.client.call(
        "chat.answer",
        message_id=question.request,
        text=text,
        question=question.question,
        wait=False,
        **_once(visit, event_id),
    )
