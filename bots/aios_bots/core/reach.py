"""Whether an app can be reached at all, guessed from how calls end.

One call that breaks says little: its chat waits a little and tries again, and no other chat waits
with it. When calls to several chats break and none is answered, the line is down: then one call at
a time is tried, with growing pauses, and the first answer lets everything go.
"""

from __future__ import annotations

from collections.abc import Callable

DOWN_CHATS = 3
"""So many chats without an answer in between mean that it is not the chat."""
PAUSE_S = 0.5
CHAT_PAUSE_MAX_S = 5.0
DOWN_PAUSE_MAX_S = 15.0


def pause(tries: int, most: float = CHAT_PAUSE_MAX_S) -> float:
    """Seconds to wait after so many failures in a row."""
    return min(PAUSE_S * float(1 << min(max(tries, 1) - 1, 16)), most)


class Reach:
    """The line to one app, on a given clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failing: set[str] = set()
        self._pauses = 0
        self._until = 0.0
        self._trying = False

    @property
    def down(self) -> bool:
        return self._pauses > 0

    def answered(self) -> bool:
        """The app said something; gives whether the line was down until now."""
        was_down = self.down
        self._failing.clear()
        self._pauses, self._trying = 0, False
        return was_down

    def failed(self, chat: str) -> bool:
        """A call to that chat had no answer; gives whether the line is down from now on."""
        self._failing.add(chat)
        now = self._clock()
        if len(self._failing) < DOWN_CHATS or (self.down and not self._trying):
            return False  # or one that was on its way when the line went down
        self._pauses += 1
        self._trying = False
        self._until = now + pause(self._pauses, DOWN_PAUSE_MAX_S)
        return self._pauses == 1

    def wait(self) -> float | None:
        """Seconds until a call may be made, 0 for now; None while the one that is tried is out."""
        if not self.down:
            return 0.0
        return None if self._trying else max(0.0, self._until - self._clock())

    def trying(self) -> None:
        """A call is made now: while the line is down, the only one."""
        self._trying = self.down

    def tried(self) -> None:
        """The call that was tried is over, and said nothing about the line."""
        self._trying = False

    def hurry(self) -> None:
        """There is a sign that the app can be reached: the next try is now."""
        self._until = self._clock()
