"""One question and its answer on a terminal: streamed, answered when it asks back, cancelled."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from aios_nb.cli.output import Paint, is_tty, note
from aios_nb.cli.saving import save_files
from aios_nb.client import Flow, SiteClient
from aios_nb.envelope import new_id
from aios_nb.errors import AiosError, UsageError
from aios_nb.people.layout import size
from aios_nb.people.patience import Patience
from aios_nb.people.values import (
    data_lines,
    is_table,
    is_table_alone,
    says_nothing,
    says_the_same,
)
from aios_nb.people.written import Written
from aios_nb.richtext import one_line, plain

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_FRAMES = "|/-\\"
_FRAME_S = 0.1
_SAY_SECONDS_AFTER = 30
"""Frames without an answer, after which the spinner also counts the seconds."""
_CANCEL_WAIT_S = 5.0
_ERASE_LINE = "\r\x1b[K"

AskPerson = Callable[[str], Awaitable[str | None]]
"""Puts an agent's question to the person; None when there is nobody to ask."""


class Spinner:
    """Something that moves until the first word comes. Silent where it would be noise."""

    def __init__(self, *, on: bool) -> None:
        self._task = asyncio.create_task(self._spin()) if on else None
        self._shown = False

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        if self._shown:
            self._shown = False
            print(_ERASE_LINE, end="", flush=True)

    async def _spin(self) -> None:
        utf8 = sys.stdout.encoding.lower().replace("-", "") == "utf8"
        frames = _FRAMES if utf8 else _ASCII_FRAMES
        count = 0
        while True:
            await asyncio.sleep(_FRAME_S)  # first: a quick answer needs no spinner
            waited = f" {count * _FRAME_S:.0f} s" if count > _SAY_SECONDS_AFTER else ""
            print(f"\r{frames[count % len(frames)]}{waited}", end="", flush=True)
            self._shown = True
            count += 1


class Asking:
    """Asks one agent one thing and shows what comes back."""

    def __init__(
        self,
        client: SiteClient,
        *,
        ask_person: AskPerson,
        live: bool | None = None,
        quiet: bool = False,
        save: Path | None = None,
    ) -> None:
        self._client = client
        self._ask_person = ask_person
        self._live = is_tty(sys.stdout) if live is None else live
        """Show the answer while it is written."""
        self._quiet = quiet
        self._save = save
        self._paint = Paint(sys.stdout)

    async def __call__(
        self,
        agent: str,
        text: str,
        *,
        conversation: str | None = None,
        files: Sequence[dict[str, Any]] = (),
        deadline_s: float | None = None,
    ) -> dict[str, Any]:
        """The result of the exchange. When this is cancelled, so is the agent's run."""
        message_id = new_id("m")
        params: dict[str, Any] = {"agent": agent, "text": text, "message_id": message_id}
        if conversation is not None:
            params["conversation"] = conversation
        if files:
            params["files"] = list(files)
        if deadline_s is not None:
            params["deadline_s"] = deadline_s
        try:
            result = await self._until_done(params)
        except asyncio.CancelledError:
            await self._cancel(message_id)
            raise
        await self._show_rest(result)
        return result

    async def _until_done(self, params: dict[str, Any]) -> dict[str, Any]:
        written = Written(on=self._live and not self._quiet)
        agent = params["agent"]
        while True:
            flow = self._client.notices("chat.stream", **params)
            result = await self._listen(flow, agent, written)
            if result["status"] != "input_required":
                break
            written.end_line()
            said = await self._ask_person(plain(result["text"]))
            if said is None:
                await self._cancel(result["message_id"])
                raise UsageError(
                    f"the agent asks: {one_line(result['text'])}",
                    hint="run this in a terminal to answer it",
                )
            await self._client.call(
                "chat.answer", message_id=result["message_id"], text=said, wait=False
            )
            params = {"message_id": result["message_id"], "offset": len(written.raw)}
        if not (is_table_alone(result["text"], result["data"]) and written.is_blank):
            written.finish(result["text"])
            if not self._live and not self._quiet and result["text"]:
                print(plain(result["text"]).rstrip("\n"))
        return result

    async def _listen(self, flow: Flow, agent: str, written: Written) -> dict[str, Any]:
        spinner = Spinner(on=written.on)
        patience = Patience(
            self._client, agent, lambda said: written.interject(said, note), on=written.on
        )
        try:
            async for delta in flow:
                patience.heard()
                if delta["text"]:
                    if not written.holds(delta["text"]):
                        await spinner.stop()
                    written.add(delta["text"])
            result: dict[str, Any] = await flow.result()
        except BaseException:
            await spinner.stop()
            written.end_line()
            raise
        else:
            await spinner.stop()
            return result
        finally:
            flow.close()
            await patience.stop()

    async def _cancel(self, message_id: str) -> None:
        # The person wants out: whether the node could still be told must not hold them up.
        with suppress(AiosError, TimeoutError):
            async with asyncio.timeout(_CANCEL_WAIT_S):
                await self._client.call("chat.cancel", message_id=message_id)

    async def _show_rest(self, result: dict[str, Any]) -> None:
        saved = []
        if result["files"] and self._save is not None:
            saved = await save_files(self._client, result["files"], self._save)
        if self._quiet:
            return
        data = result["data"]
        if not says_nothing(data) and (is_table(data) or not says_the_same(result["text"], data)):
            print("\n".join(data_lines(data)))
        for path in saved:
            print(f"saved {path}", file=sys.stderr)
        if not saved:
            for file in result["files"]:
                line = f"[{one_line(file['name'])}, {size(file['size'])}: --save DIR keeps it]"
                print(self._paint(line, "dim"), file=sys.stderr)
