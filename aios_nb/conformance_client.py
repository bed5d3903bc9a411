"""The client that the public MCP suite starts: a node that adds the server and talks to it.

``python -m aios_nb.conformance_client URL``; the suite says in the environment which tools to call,
if that matters to it. Nothing here speaks MCP: what is tried is what a person would use.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from aios_nb.client import SiteClient
from aios_nb.config import Settings
from aios_nb.errors import AiosError
from aios_nb.node import Node

CONTEXT = "MCP_CONFORMANCE_CONTEXT"
"""JSON of the suite: ``toolCalls`` [{name, arguments}], when a scenario wants certain ones."""
LEAVE_OUT = "; - "
"""A question with this in it has a default, or can be left out: ``-`` does."""


def main(url: str) -> None:
    """Add the server at that address to a node of its own, and call each of its tools."""
    with tempfile.TemporaryDirectory(prefix="aios-conformance-") as home:
        settings = Settings(name="client", home=Path(home), gossip=False, dht=False)
        with Node(settings).start() as node:
            node.run(lambda: visit(node.client, url))


async def visit(client: SiteClient, url: str) -> None:
    """A tool that fails is told, and the next one called: a server may have broken ones."""
    added = await client.call("hub.add", address=url, kind="mcp", local=True, name="suite")
    for tool, arguments in wanted() or dict.fromkeys(added["tools"]).items():
        try:
            said = await client.call("chat.send", agent="suite", text=tool, data=arguments)
            while said["status"] == "input_required":
                told = answer(said["text"])
                said = await client.call("chat.answer", message_id=said["message_id"], text=told)
        except AiosError as problem:
            sys.stderr.write(f"{tool}: {problem}\n")


def wanted() -> list[tuple[str, dict[str, Any]]]:
    """The calls that the suite asks for; none: it does not mind."""
    context = msgspec.json.decode(os.environ.get(CONTEXT, "{}"))
    return [(call["name"], call["arguments"]) for call in context.get("toolCalls", ())]


def answer(question: str) -> str:
    """What a person in a hurry says."""
    if LEAVE_OUT in question:
        return "-"
    return "5" if "number" in question or "integer" in question else "yes"


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and the URL
        sys.exit("usage: python -m aios_nb.conformance_client URL")
    try:
        main(sys.argv[1])
    except AiosError as problem:
        sys.exit(str(problem))
