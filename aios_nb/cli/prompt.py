"""The prompt of the terminal chat: editing, history, completion."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth

from aios_nb.cli.talk import COMMANDS
from aios_nb.richtext import one_line

HISTORY_FILE = "chat_history"
HISTORY_MAX_BYTES = 1 << 20


class Prompt:
    """Asks for one line (or several) at a time."""

    def __init__(self, home: Path) -> None:
        self._words = _Words()
        self._session: PromptSession[str] = PromptSession(
            history=_history(home / HISTORY_FILE),
            completer=self._words,
            complete_while_typing=True,
            key_bindings=_keys(),
            multiline=True,
            prompt_continuation=lambda width, _number, _wrapped: " " * (width - 2) + "· ",
            color_depth=ColorDepth.MONOCHROME if os.environ.get("NO_COLOR") else None,
            reserve_space_for_menu=4,
        )

    async def line(self, agent: str, names: Sequence[str]) -> str | None:
        """What was typed; None when the person is done. Ctrl-C only clears the line."""
        self._words.names = names
        while True:
            try:
                return await self._session.prompt_async(_before(f"{one_line(agent)}> "))
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None

    async def answer(self) -> str | None:
        """The reply to an agent's question; None to give up."""
        try:
            return await self._session.prompt_async(_before("answer> "))
        except (KeyboardInterrupt, EOFError):
            return None


def _before(text: str) -> FormattedText:
    # As data: a name can carry no markup of prompt_toolkit.
    return FormattedText([("bold fg:ansicyan", text)])


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


class _Words(Completer):
    """``/commands`` at the start of a line, ``@names`` anywhere."""

    names: Sequence[str] = ()

    def get_completions(self, document: Document, _: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        word = before.split()[-1] if before and not before[-1].isspace() else ""
        if word.startswith("@"):
            for name in self.names:
                if name.startswith(word[1:]):
                    yield Completion(f"@{name} ", start_position=-len(word), display=name)
        elif word.startswith("/") and before == word:
            for name, about in COMMANDS.items():
                if name.startswith(word):
                    yield Completion(name, start_position=-len(word), display_meta=about)


def _history(path: Path) -> History:
    """What was typed before, for this user's eyes only; forgotten where it cannot be kept."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            os.fchmod(file.fileno(), 0o600)
            kept = file.read()
            if len(kept) > HISTORY_MAX_BYTES:
                # The newer half, from the start of an entry on: each begins with a `#` line.
                start = kept.find(b"\n#", len(kept) // 2)
                file.seek(0)
                file.truncate()
                file.write(kept[start:] if start >= 0 else b"")
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
