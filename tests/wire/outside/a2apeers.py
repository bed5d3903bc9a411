"""An A2A agent of others for tests: the public SDK on a real socket, and one who asks it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from a2a.helpers.proto_helpers import (
    new_data_part,
    new_message,
    new_raw_part,
    new_task_from_user_message,
    new_text_message,
    new_text_part,
    new_url_part,
)
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from aios_nb.blobs import BlobStore
from aios_nb.config import Limits
from aios_nb.envelope import FileRef, Outcome, Seen, Sender, Task, new_id
from aios_nb.errors import Cancelled
from aios_nb.store import Store
from aios_nb.wire.outside import Outsiders

WAIT_S = 30
CALLER = "owner@" + "a" * 32


class Worker(AgentExecutor):
    """Does what the text says."""

    def __init__(self) -> None:
        self.heard: list[RequestContext] = []
        self.working = asyncio.Event()
        self.go_on = asyncio.Event()
        self.stopped = asyncio.Event()
        self.own_url = ""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.heard.append(context)
        text = context.get_user_input()
        word = text.partition(" ")[0]
        if word == "message":
            await event_queue.enqueue_event(
                new_text_message("at once", context_id=context.context_id)
            )
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await getattr(self, f"do_{word}", self.do_echo)(updater, context, text)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.stopped.set()
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    async def do_echo(self, updater: TaskUpdater, context: RequestContext, text: str) -> None:
        await updater.start_work(new_text_message("thinking"))
        await updater.add_artifact([new_text_part(f"you said {text}")])
        await updater.complete()

    async def do_pieces(self, updater: TaskUpdater, context: RequestContext, text: str) -> None:
        await updater.start_work()
        for number, piece in enumerate(("one ", "two ", "three")):
            await updater.add_artifact(
                [new_text_part(piece)], "only", append=number > 0, last_chunk=number == 2
            )
        await updater.complete(new_text_message("that was all"))

    async def do_everything(self, updater: TaskUpdater, context: RequestContext, text: str) -> None:
        await updater.add_artifact([new_text_part("here")])
        await updater.add_artifact([new_data_part({"sum": 4})])
        await updater.add_artifact(
            [new_raw_part(b"a,b\n", media_type="text/csv", filename="../t.csv")]
        )
        await updater.add_artifact(
            [new_url_part(f"{self.own_url}/notes.txt", filename="notes.txt")]
        )
        await updater.add_artifact(
            [new_url_part("https://example.com/out.txt", filename="out.txt")]
        )
        await updater.complete()

    async def do_asks(self, updater: TaskUpdater, context: RequestContext, text: str) -> None:
        if len(self.heard) == 1 or context.current_task is None:
            await updater.requires_input(new_text_message("which colour?"))
        else:
            await updater.add_artifact([new_text_part(f"painted {text}")])
            await updater.complete()

    async def do_slow(self, updater: TaskUpdater, context: RequestContext, text: str) -> None:
        await updater.start_work()
        await updater.add_artifact([new_text_part("first ")], "a")
        self.working.set()
        await self.go_on.wait()
        await updater.add_artifact([new_text_part("last")], "a", append=True, last_chunk=True)
        await updater.complete()

    async def do_fails(self, updater: TaskUpdater, context: RequestContext, text: str) -> None:
        await updater.failed(new_text_message("out of\x1b[31m paint"))

    async def do_rejects(self, updater: TaskUpdater, context: RequestContext, text: str) -> None:
        await updater.reject(new_text_message("not my job"))

    async def do_auth(self, updater: TaskUpdater, context: RequestContext, text: str) -> None:
        await updater.requires_auth(new_text_message("sign in"))

    async def do_note(self, updater: TaskUpdater, context: RequestContext, text: str) -> None:
        await updater.start_work(new_text_message("all I say is said on the way"))
        await updater.complete()

    async def do_final(self, updater: TaskUpdater, context: RequestContext, text: str) -> None:
        await updater.complete(new_message([new_text_part("said in the end")]))


class Agent:
    """A running server with one agent."""

    def __init__(self, url: str, worker: Worker, card: AgentCard) -> None:
        self.url = url
        self.worker = worker
        self.card = card
        self.requests: list[tuple[str, dict[str, str]]] = []


def card_for(url: str, *, streaming: bool = True, **more: Any) -> AgentCard:
    fields: dict[str, Any] = {
        "name": "Painter",
        "description": "Paints what it is told.",
        "version": "1.2",
        "supported_interfaces": [
            AgentInterface(url=f"{url}/a2a", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        "capabilities": AgentCapabilities(streaming=streaming),
        "default_input_modes": ["text/plain"],
        "default_output_modes": ["text/plain"],
        "skills": [
            AgentSkill(
                id="p", name="Paint", description="Any colour", tags=["art"], examples=["red wall"]
            )
        ],
    }
    return AgentCard(**{**fields, **more})


@contextlib.asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[str]:
    """Serve an ASGI app on loopback; its URL."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None
    server.capture_signals = contextlib.nullcontext
    work = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:  # noqa: ASYNC110 - it has no event for this
            await asyncio.sleep(0.005)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        server.force_exit = True
        await work
        listener.close()


@contextlib.asynccontextmanager
async def agent(
    change: Callable[[AgentCard], Any] | None = None, at: str | None = None, **card: Any
) -> AsyncIterator[Agent]:
    """A server of the public SDK. ``change`` is done to its card; ``at`` is where it says it is."""
    logging.getLogger("a2a").setLevel(logging.CRITICAL)
    worker = Worker()
    inner: list[ASGIApp] = []
    made: list[Agent] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            made[0].requests.append((scope["path"], headers))
            if scope["path"] == "/notes.txt":
                head = {"type": "http.response.start", "status": 200, "headers": []}
                await send(head)
                await send({"type": "http.response.body", "body": b"my notes"})
                return
        await inner[0](scope, receive, send)

    async with serving(app) as url:
        the_card = card_for(at or url, **card)
        if change is not None:
            the_card = change(the_card) or the_card
        worker.own_url = url
        handler = DefaultRequestHandler(
            agent_executor=worker, task_store=InMemoryTaskStore(), agent_card=the_card
        )
        routes = [*create_agent_card_routes(the_card), *create_jsonrpc_routes(handler, "/a2a")]
        inner.append(Starlette(routes=routes))
        made.append(Agent(url, worker, the_card))
        yield made[0]


class Cable:
    """A way to a server that can be cut."""

    def __init__(self) -> None:
        self.url = ""
        self._ends: set[asyncio.StreamWriter] = set()
        self._to: tuple[str, int] = ("", 0)

    def lead_to(self, url: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._to = (host, int(port))

    def cut(self) -> None:
        """Every connection that is open breaks; new ones work."""
        for end in tuple(self._ends):
            end.transport.abort()

    async def carry(self, near_in: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        far_in, far_out = await asyncio.open_connection(*self._to)
        ends = {near_out, far_out}
        self._ends |= ends

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while piece := await source.read(65536):
                    sink.write(piece)
                    await sink.drain()
            with contextlib.suppress(OSError):
                sink.close()

        await asyncio.gather(pump(near_in, far_out), pump(far_in, near_out))
        self._ends -= ends


@contextlib.asynccontextmanager
async def cable() -> AsyncIterator[Cable]:
    made = Cable()
    server = await asyncio.start_server(made.carry, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        made.cut()
        server.close()
        await server.wait_closed()


class Listener:
    """Who asks: hears what comes, and answers questions. Is a ``ports.Run``."""

    messages = ()
    stranger = False
    patient = False

    def __init__(self, answers: Sequence[str] = ()) -> None:
        self.heard: list[str] = []
        self.notes: list[str] = []
        self.asked: list[str] = []
        self.answers = list(answers)
        self.cancelled = False
        self.begun = False
        self.hears = asyncio.Event()

    seconds_left = 60.0

    @property
    def length(self) -> int:
        return sum(map(len, self.heard))

    def begin(self) -> None:
        self.begun = True

    def delta(self, text: str) -> None:
        if self.cancelled:
            raise Cancelled("over")
        self.heard.append(text)
        self.hears.set()

    def progress(self, note: str, fraction: float | None) -> None:
        self.notes.append(note)

    async def call(self, agent: str, text: str, **_: Any) -> Outcome:
        raise NotImplementedError

    async def search(self, words: str, limit: int) -> Sequence[Any]:
        raise NotImplementedError

    async def ask_user(self, question: str, question_id: str | None = None) -> str:
        self.asked.append(question)
        return self.answers.pop(0)


class Memory(dict[str, str]):
    """Is a ``ports.ContextMemory``."""

    async def put(self, conversation: str, context: str) -> None:
        self[conversation] = context


class House:
    """A node's file store and its way to programs of others."""

    def __init__(self, blobs: BlobStore, outside: Outsiders) -> None:
        self.blobs = blobs
        self.outside = outside
        self.memory = Memory()

    async def meet(self, url: str, **more: Any) -> tuple[Any, Seen]:
        met = await self.outside.meet(url, **{"local": True, **more})
        return met, await met.look()

    async def ask(
        self,
        url: str,
        text: str,
        run: Listener | None = None,
        *,
        conversation: str = "c1",
        caller: str = CALLER,
        files: Sequence[FileRef] = (),
        data: Any = None,
    ) -> Outcome:
        met, seen = await self.meet(url)
        message = new_id("m")
        task = Task(
            "painter@" + "a" * 32, text, message, new_id("r"), conversation,
            Sender("me", "human"), caller, data, tuple(files),
        )  # fmt: skip
        carrier = met.carrier(seen, self.memory)
        return await carrier.carry(task, run or Listener())


def in_house(tmp_path: Path, work: Callable[[House], Awaitable[Any]]) -> Any:
    """Run a test that has a file store and a way out."""

    async def main() -> Any:
        store = Store.open(tmp_path / "a.db")
        blobs = BlobStore(tmp_path / "blobs", store, Limits())
        outside = Outsiders(blobs, Limits())
        try:
            async with asyncio.timeout(WAIT_S):
                return await work(House(blobs, outside))
        finally:
            await outside.close()
            await store.close()

    return asyncio.run(main())
