"""What an agent answered, as people hold it in their hands."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from aios_nb import parts
from aios_nb.client.files import get_file
from aios_nb.envelope import FileRef
from aios_nb.errors import UsageError
from aios_nb.tilde import expanded

if TYPE_CHECKING:
    from aios_nb.site import Site


class ReplyFile(msgspec.Struct, frozen=True):
    """A file of a reply; ``read`` or ``save`` it."""

    ref: FileRef
    site: Any

    @property
    def name(self) -> str:
        return self.ref.name

    @property
    def mime(self) -> str:
        return self.ref.mime

    @property
    def size(self) -> int:
        return self.ref.size

    def read(self) -> bytes:
        content: bytes = self.site.run(self._read)
        return content

    async def read_async(self) -> bytes:
        content: bytes = await self.site.on_loop(self._read)
        return content

    async def _read(self) -> bytes:
        return await get_file(self.site.client, msgspec.to_builtins(self.ref))

    def save(self, where: str | Path = ".") -> Path:
        """Write it into a folder under its name, or under the name that is given.

        A file that is there is not overwritten.
        """
        content = self.read()
        path = expanded(where)
        if path.is_dir():
            path /= self.ref.name
        try:
            _write_new(path, content)
        except FileExistsError:
            raise UsageError(f"{path} exists", hint='another name: save("…")') from None
        except OSError as error:
            raise UsageError(
                f"{path} cannot be written: {error.strerror}", hint="save(FOLDER) or save(FILE)"
            ) from error
        return path

    def __repr__(self) -> str:
        return f"<{self.ref.name}, {self.ref.mime}, {self.ref.size} bytes>"


def _write_new(path: Path, content: bytes) -> None:
    """All of it or nothing: half a file would be in the way of the next try."""
    out = path.open("xb")
    try:
        with out:
            out.write(content)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


class Reply(parts.Reply):
    """An agent's answer: a ``str`` with ``data``, ``files``, ``conversation``; go on with ``ask``.

    ``status`` is ``done``, or ``input_required`` when the text is a question: then ``answer`` it;
    or ``accepted`` for what was asked with ``wait=False``: then ``wait`` for it.
    """

    files: tuple[ReplyFile, ...]  # type: ignore[assignment] # references that can be read
    conversation: str
    message_id: str
    reply_id: str
    status: str
    agent: str
    site: Site

    @classmethod
    def made(cls, result: dict[str, Any], agent: str, site: Site) -> Self:
        refs = msgspec.convert(result.get("files") or [], list[FileRef])
        reply = str.__new__(cls, result["text"])
        reply.data = result.get("data")
        reply.files = tuple(ReplyFile(ref, site) for ref in refs)
        reply.conversation = result["conversation"]
        reply.message_id = result["message_id"]
        reply.reply_id = result["reply_id"]
        reply.status = result["status"]
        reply.agent = agent
        reply.site = site
        return reply

    def ask(self, text: str, **options: Any) -> Reply:
        """The next message of the same conversation, to the same agent."""
        return self.site.ask(self.agent, text, conversation=self.conversation, **options)

    async def ask_async(self, text: str, **options: Any) -> Reply:
        return await self.site.ask_async(
            self.agent, text, conversation=self.conversation, **options
        )

    def wait(self) -> Reply:
        """The answer to what was asked with ``wait=False``, when it has come."""
        return self.site.run(self._wait, f"waiting for {self.agent}", self.message_id)

    async def wait_async(self) -> Reply:
        return await self.site.on_loop(self._wait)

    async def _wait(self) -> Reply:
        flow = self.site.client.notices("chat.stream", message_id=self.message_id, offset=0)
        try:
            return Reply.made(await flow.result(), self.agent, self.site)
        finally:
            flow.close()

    def answer(self, text: str) -> Reply:
        """What the agent asked for; gives what it says next."""
        return self.site.run(
            lambda: self.answer_async(text), f"waiting for {self.agent}", self.message_id
        )

    async def answer_async(self, text: str) -> Reply:
        if self.status != "input_required":
            raise UsageError("this reply asks nothing", hint="reply.ask(…) goes on")
        site = self.site
        result = await site.on_loop(
            lambda: site.client.call("chat.answer", message_id=self.message_id, text=text)
        )
        return Reply.made(result, self.agent, site)
