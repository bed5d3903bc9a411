"""``ask``: one question, its answer shown as it is written, and given back."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from aios_nb.client import put_file
from aios_nb.envelope import new_id
from aios_nb.errors import AiosError, UsageError
from aios_nb.notebook.commands import Call
from aios_nb.notebook.parser import perhaps_words
from aios_nb.notebook.show.faces import cell_of
from aios_nb.notebook.show.stage import Stage, ended, stage
from aios_nb.notebook.show.told import Told
from aios_nb.parts import File
from aios_nb.people.conversations import find
from aios_nb.people.patience import Patience
from aios_nb.site import Site, cancel


def ask(call: Call) -> Told:
    """The reply. An agent that asks back ends it too: the reply then says how to answer."""
    if not (call["text"] or "").strip():
        raise UsageError("nothing to ask", hint="%aios ask AGENT TEXT, or %%aios ask AGENT")
    files = _files(call)
    sent = [file.name for file in files]
    node, began = call.node(), time.monotonic()
    told = node.run(lambda: _asked(node, call, files, stage(call.shell, call["agent"], sent)))
    told.sent = sent
    told.cell = cell_of(call.shell).number
    told.took_s = time.monotonic() - began
    return told


def _files(call: Call) -> list[File]:
    try:
        return [File(name) for name in call["file"]]
    except UsageError as error:  # `what does --file do` names none
        raise perhaps_words(error, call.command) from error


async def _asked(site: Site, call: Call, files: list[File], shown: Stage) -> Told:
    client = site.client
    params: dict[str, Any] = {"agent": call["agent"], "text": call["text"]}
    params["message_id"] = message_id = new_id("m")
    if call["conversation"]:
        params["conversation"] = await find(client, call["conversation"])
    if call["deadline"]:
        params["deadline_s"] = call["deadline"]
    if files:
        params["files"] = [
            await put_file(client, file.content, file.name, file.mime) for file in files
        ]
    flow = client.notices("chat.stream", **params)
    playing = asyncio.create_task(shown.play())
    patience = Patience(client, call["agent"], lambda said: shown.take("", said), stop="■")
    try:
        async for piece in flow:
            patience.heard()
            shown.take(piece["text"], piece.get("progress"))
        result = await flow.result()
    except asyncio.CancelledError:
        # Whoever asked was interrupted: the work is not wanted any more.
        await asyncio.shield(_stopped(playing, shown, "stopped"))
        await asyncio.shield(cancel(client, message_id))
        raise
    except AiosError:
        await _stopped(playing, shown, "failed")
        raise
    finally:
        flow.close()
        await patience.stop()
    await ended(playing)
    told = Told.made(result, call["agent"], site)
    await asyncio.to_thread(shown.finish, told)
    return told


async def _stopped(playing: asyncio.Task[None], shown: Stage, why: str) -> None:
    await ended(playing)
    await asyncio.to_thread(shown.stop, why)
