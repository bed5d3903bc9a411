"""The same message again: joins the call under way, or gets what became of it."""

from __future__ import annotations

from collections.abc import Mapping

from aios_nb.access import Principal
from aios_nb.chat.callers import Callers
from aios_nb.chat.calls import Call, Request, check_same_as_logged, read_note
from aios_nb.chat.endings import Ended, read_end
from aios_nb.chat.log import DuplicateCall, Log
from aios_nb.chat.reading import Reader
from aios_nb.chat.runs import Run
from aios_nb.errors import Busy, InvalidParams

Key = tuple[int, str]
"""The caller's number and the message id."""
RECENT_RUNS = 1000
"""Runs that are found by their reply's id after they ended."""


class Repeats:
    """Finds a caller's earlier calls."""

    def __init__(
        self, log: Log, reader: Reader, callers: Callers, under_way: Mapping[Key, Call]
    ) -> None:
        self._log = log
        self._reader = reader
        self._callers = callers
        self._calls = under_way
        self._recent: dict[str, Key] = {}

    def remember(self, reply_id: str, key: Key) -> None:
        """This run has just ended."""
        self._recent[reply_id] = key
        if len(self._recent) > RECENT_RUNS:
            del self._recent[next(iter(self._recent))]

    def repeat_of(self, call: Call, request: Request) -> list[Ended]:
        """For a call refused as a duplicate: what became of the first one."""
        if not isinstance(call.refusal, DuplicateCall):
            raise call.refusal or Busy("not stored")
        return self.ended(call.key, request)

    def knows(self, principal: Principal, message_id: str) -> bool:
        """Whether this caller used this id before."""
        number = self._callers.known(principal.id)
        return number is not None and (
            (number, message_id) in self._calls or self._log.has_call(number, message_id)
        )

    def by_reply(self, principal: Principal, reply_id: str) -> Run | list[Ended] | None:
        """A run of this caller by its reply's id: under way, or over not long ago."""
        for call in self._calls.values():
            for run in call.runs:
                if run.task.reply_id == reply_id and run.principal.id == principal.id:
                    return run
        key = self._recent.get(reply_id)
        if key is None or key[0] != self._callers.known(principal.id):
            return None
        return [end for end in self.ended(key, None) if end.reply_id == reply_id]

    def find(self, principal: Principal, message_id: str) -> Call | list[Ended]:
        """A caller's earlier call, under way or over."""
        number = self._callers.known(principal.id)
        if number is not None:
            call = self._calls.get((number, message_id))
            if call is not None:
                return call
            if self._log.has_call(number, message_id):
                return self.ended((number, message_id), None)
        raise InvalidParams(f"no such message: {message_id}", hint="ids are per caller")

    def ended(self, key: Key, request: Request | None) -> list[Ended]:
        """How the runs of a stored call ended, if the repeat says the same as it did."""
        number, message_id = key
        found = self._reader.call(number, message_id)
        if found is None:
            raise InvalidParams(
                f"message id {message_id} is taken in this conversation",
                hint="use a new message_id for a new message",
            )
        n, event, blob = found
        if event is None:
            raise InvalidParams(f"message {message_id} was in a conversation that is deleted")
        note = read_note(blob)
        if request is not None:
            check_same_as_logged(request, event, note)
            asked = request.conversation
            if asked is not None and asked.id != event.conversation:
                raise InvalidParams(f"message id {message_id} is in another conversation")
        conversation = self._log.get(event.conversation)
        known_as = event.conversation if conversation is None else conversation.known_as
        return [
            read_end(
                event,
                known_as,
                plan.reply_id,
                plan.agent,
                self._reader.outcome(n, event.seq, plan.reply_id),
            )
            for plan in note.runs
        ]
