"""The MCP Inspector's command line: it lists and calls in each era, as its users do."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from conformance.nodes import Running
from conformance.scoreboard import Row, Scoreboard
from conformance.tools import Ended, Tools

ERAS = ("legacy", "auto", "modern")
LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
OK, UNREACHABLE, FAILED = 0, 4, 5
CLOSED_PORT = "http://127.0.0.1:9/mcp"
"""The port of `discard`, which nothing serves any more."""
LOAD_CALLS = 300
LOAD = ("--load", "--load-concurrency", "20", "--load-requests", str(LOAD_CALLS))
JSON = ("--format", "json", "-q")
SAID_CHARS = 200


class Inspector:
    """Calls a node with the Inspector and writes down what came."""

    def __init__(self, tools: Tools, board: Scoreboard) -> None:
        self._tools = tools
        self._board = board

    def fixtures(self, running: Running) -> None:
        """What the suite calls is there: some of its scenarios pass when it is not."""
        from aios_nb.wire.fixtures.mcp import tool_names

        row = self._board.row("Fixtures of the suite, listed to anyone")
        ended = self._tools.inspector(
            running.mcp, "--transport", "http", "--method", "tools/list", *JSON
        )
        listed = {tool["name"] for tool in _result(ended).get("tools", ())}
        for name in sorted(tool_names()):
            row.add(name, None if name in listed else "not listed")

    def lists(self, running: Running) -> None:
        """All lists, in the three ways to agree on an era."""
        row = self._board.row("Inspector, lists in three eras")
        for era in ERAS:
            for method, key in LISTS.items():
                ended = self._tools.inspector(
                    *_at(running), "--protocol-era", era, "--method", method, *JSON
                )
                row.add(f"{method} {era}", _empty(ended, key))

    def calls(self, running: Running) -> None:
        """Calls, and the exit codes that scripts rely on."""
        row = self._board.row("Inspector, calls")
        call = ("--method", "tools/call", "--tool-name")
        for era in ERAS:
            said = ("--tool-arg", "agent=echo", "--tool-arg", "text=hello", "--protocol-era", era)
            self._expect(row, f"agent_send {era}", OK, "hello", running, *call, "agent_send", *said)
            read = ("--method", "resources/read", "--uri", "node://status", "--protocol-era", era)
            self._expect(row, f"resources/read {era}", OK, "version", running, *read)
            prompt = ("--method", "prompts/get", "--prompt-name", "find_agent_for")
            task = ("--prompt-args", "task=adding numbers", "--protocol-era", era)
            self._expect(row, f"prompts/get {era}", OK, "adding numbers", running, *prompt, *task)
        self._expect(row, "no such tool", FAILED, "", running, *call, "nope")
        nobody = ("agent_send", "--tool-arg", "agent=nobody", "--tool-arg", "text=hello")
        self._expect(row, "no such agent", FAILED, "", running, *call, *nobody)
        strict = ("--method", "tools/list", "--strict")
        self._expect(row, "schemas every client can read", OK, "", running, *strict)
        ended = self._tools.inspector(CLOSED_PORT, "--transport", "http", "--method", "tools/list")
        row.add("nobody there", None if ended.code == UNREACHABLE else f"exit {ended.code}")

    def load(self, running: Running) -> None:
        """Twenty callers at a time, and not one error."""
        row = self._board.row(f"Inspector, {LOAD_CALLS} calls by 20 callers")
        ended = self._tools.inspector(
            *_at(running), "--method", "tools/call", "--tool-name", "agents_list", *LOAD, *JSON
        )
        told = _result(ended)
        row.add("agents_list", None if told.get("ok") == LOAD_CALLS else _said(ended))
        if told:
            row.remarks.append(f"{told['throughput']:.0f} calls/s, {told['errors']} errors")

    def stdio(self, running: Running) -> None:
        """The bridge that programs start which know no URL."""
        row = self._board.row("Inspector, stdio")
        home = f"AIOS_HOME={running.home}"
        command = ("-e", home, sys.executable, "-m", "aios_nb", "stdio")
        for era in ERAS:
            ended = self._tools.inspector(
                *command, "--method", "tools/list", "--protocol-era", era, *JSON
            )
            row.add(f"tools/list {era}", _empty(ended, "tools"))
        said = ("--tool-name", "agent_send", "--tool-arg", "agent=echo", "--tool-arg", "text=hello")
        ended = self._tools.inspector(*command, "--method", "tools/call", *said)
        good = ended.code == OK and "hello" in ended.out
        row.add("agent_send", None if good else _said(ended))

    def _expect(
        self, row: Row, name: str, code: int, words: str, running: Running, *args: str
    ) -> None:
        ended = self._tools.inspector(*_at(running), *args)
        good = ended.code == code and words in ended.out
        row.add(name, None if good else _said(ended))


def _at(running: Running) -> Sequence[str]:
    token = f"Authorization: Bearer {running.token}"
    return (running.mcp, "--transport", "http", "--header", token)


def _empty(ended: Ended, key: str) -> str | None:
    """What is wrong with a list; None: something is in it."""
    return None if ended.code == OK and _result(ended).get(key) else _said(ended)


def _result(ended: Ended) -> dict[str, Any]:
    try:
        result: dict[str, Any] = json.loads(ended.out)["result"]
    except (ValueError, KeyError):
        return {}
    return result


def _said(ended: Ended) -> str:
    words = " ".join((ended.err or ended.out).split())
    return f"exit {ended.code}: {words[-SAID_CHARS:]}"
