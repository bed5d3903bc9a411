"""Servers of others to compare with: ``python -m aios_nb.bench.others KIND [JSON]``.

``fastmcp`` offers one tool, ``agents_list``, whose result is the JSON. ``a2a`` is an agent on the
A2A SDK that gives back what it was sent, as a task with an artifact; ``a2a-message`` does it in the
shortest way there is, without a task. All are served by uvicorn, as their own pages show it.
"""

from __future__ import annotations

import importlib
import json
import logging
import socket
import sys
import threading
from typing import Any

from aios_nb.bench.tokens import AGENT_PATH

_A2A = ("a2a", "starlette", "sse_starlette", "uvicorn")
NEEDS = {"fastmcp": ("fastmcp", "uvicorn"), "a2a": _A2A, "a2a-message": _A2A}
"""Modules that each kind imports."""


def fastmcp_app(result: dict[str, Any]) -> Any:
    """A FastMCP server that takes both eras at ``/mcp``."""
    server = importlib.import_module("fastmcp").FastMCP("other")

    async def agents_list(cursor: str | None = None) -> dict[str, Any]:
        """The agents of this node."""
        del cursor
        return result

    server.tool(agents_list)
    return server.http_app(path="/mcp")


def a2a_app(*, tasks: bool) -> Any:
    """An agent that echoes, with its tasks in memory."""
    from a2a.helpers import new_task_from_user_message, new_text_message
    from a2a.server.agent_execution import AgentExecutor, RequestContext
    from a2a.server.events import EventQueue
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.routes import create_jsonrpc_routes
    from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
    from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, Role
    from starlette.applications import Starlette

    class Echo(AgentExecutor):
        async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
            text = context.get_user_input()
            message, task_id, context_id = context.message, context.task_id, context.context_id
            if not tasks or message is None or task_id is None or context_id is None:
                await event_queue.enqueue_event(new_text_message(text, role=Role.ROLE_AGENT))
                return
            await event_queue.enqueue_event(new_task_from_user_message(message))
            task = TaskUpdater(event_queue, task_id, context_id)
            await task.add_artifact([Part(text=text)])
            await task.complete()

        async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
            raise NotImplementedError

    card = AgentCard(
        name="echo",
        description="Gives back what it was sent",
        version="1.0",
        skills=[AgentSkill(id="echo", name="echo", description="Echoes", tags=["echo"])],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        supported_interfaces=[
            AgentInterface(
                url=f"http://127.0.0.1{AGENT_PATH}",
                protocol_binding="JSONRPC",
                protocol_version="1.0",
            )
        ],
    )
    handler = DefaultRequestHandler(Echo(), InMemoryTaskStore(), card)
    return Starlette(routes=create_jsonrpc_routes(handler, AGENT_PATH))


def serve(app: Any) -> None:
    """Serve until it is told to stop, or nobody holds the other end of its input."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                print(json.dumps({"url": url}), flush=True)

    # proto: with 0 asyncio leaves Nagle's algorithm on
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    server = Server(uvicorn.Config(app, log_level="warning", access_log=False, backlog=512))

    def parent_gone() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=parent_gone, daemon=True).start()
    server.run([listener])


def main(kind: str, result: str = "{}") -> None:
    app = fastmcp_app(json.loads(result)) if kind == "fastmcp" else a2a_app(tasks=kind == "a2a")
    logging.disable(logging.INFO)  # it writes a line for each session
    serve(app)


if __name__ == "__main__":
    main(*sys.argv[1:])
