"""A reply that was shown while it was written: its cell does not show it once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aios_nb.notebook.show import reply as face
from aios_nb.notebook.show.agents import spoken
from aios_nb.notebook.show.live import has_page, take_back_prompt
from aios_nb.site import Reply


class Told(Reply):
    """What ``%aios ask`` gives back."""

    cell: int = -1
    """The cell that showed it."""
    took_s: float | None = None
    sent: Sequence[str] = ()
    """The names of the files that went with the question."""

    def show_again(self, shell: Any) -> None:
        """As the result of a cell: in full, unless that cell has just shown it."""
        from aios_nb.notebook.show.faces import cell_of

        if cell_of(shell).number == self.cell:
            if not has_page(shell) and not take_back_prompt():
                print(f"<reply of {spoken(self.agent)[0]}>")  # noqa: T201
            return
        shell.display_pub.publish(data=face.reply(self, self.took_s, sent=self.sent), metadata={})
