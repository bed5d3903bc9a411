"""``ask``: one question, from the command line or a pipe."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aios_nb.cli import output
from aios_nb.cli.connect import talk_to
from aios_nb.cli.lines import Lines
from aios_nb.cli.reply import Asking
from aios_nb.client import SiteClient, put_file
from aios_nb.config import Limits
from aios_nb.envelope import FILES_PER_MESSAGE, TEXT_LIMIT_BYTES
from aios_nb.errors import UsageError
from aios_nb.people.conversations import find


def ask(args: argparse.Namespace) -> None:
    text = question(args.text)
    contents = _read_files(args.file)

    async def work(client: SiteClient) -> dict[str, Any]:
        named = args.conversation
        conversation = None if named is None else await find(client, named)
        files = [await put_file(client, *content) for content in contents]
        asking = Asking(client, ask_person=_ask_person, quiet=args.json, save=args.save)
        return await asking(
            args.agent, text, conversation=conversation, files=files, deadline_s=args.deadline
        )

    result = talk_to(args, work)
    if args.json:
        output.show_json(result)


def question(words: Sequence[str]) -> str:
    """The text on the command line; from standard input when it is ``-`` or a pipe alone."""
    if words and list(words) != ["-"]:
        # Bytes that the shell's locale could not read may well be UTF-8.
        return " ".join(words).encode(errors="surrogateescape").decode(errors="replace")
    if not words and output.is_tty(sys.stdin):
        raise UsageError("nothing to ask", hint="aios-nb ask AGENT TEXT, or a pipe")
    raw = sys.stdin.buffer.read(TEXT_LIMIT_BYTES + 1)
    if len(raw) > TEXT_LIMIT_BYTES:
        raise UsageError("a question may have 1 MB at most", hint="send it with --file")
    text = raw.decode(errors="replace").rstrip("\n")
    if not text.strip():
        raise UsageError("nothing to ask: the input is empty")
    return text


def _read_files(paths: Sequence[Path]) -> list[tuple[bytes, str, str]]:
    from aios_nb.blobs import guess_mime

    limit = Limits().file_bytes
    if len(paths) > FILES_PER_MESSAGE:
        raise UsageError(f"at most {FILES_PER_MESSAGE} files go with one message")
    contents = []
    for path in paths:
        try:
            with path.open("rb") as file:
                content = file.read(limit + 1)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from error
        if len(content) > limit:
            raise UsageError(f"{path} has more than {limit >> 20} MB")
        contents.append((content, path.name, guess_mime(path.name)))
    return contents


async def _ask_person(question: str) -> str | None:
    if not (output.is_tty(sys.stdin) and output.is_tty(sys.stderr)):
        return None
    print(f"{question}\n> ", end="", file=sys.stderr, flush=True)
    return await Lines().next()
