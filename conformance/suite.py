"""The public suite: what it requires, and what its checks say, not only how it exits."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance.nodes import Running
from conformance.scoreboard import Scoreboard
from conformance.tools import Ended, Tools

LEGACY = "2025-11-25"
MODERN = "2026-07-28"

ORDINARY = {
    LEGACY: (
        "server-initialize",
        "ping",
        "tools-list",
        "tools-call-error",
        "server-sse-multiple-streams",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    ),
    MODERN: (
        "tools-list",
        "tools-call-error",
        "resources-list",
        "prompts-list",
        "sep-2164-resource-not-found",
        "dns-rebinding-protection",
        "caching",
        "http-header-validation",
        "input-required-result-unsupported-methods",
        "input-required-result-ignore-extra-params",
    ),
}
"""What a node passes as it is, without the suite's own tools, resources and prompts."""

CLIENT = f"{sys.executable} -m aios_nb.conformance_client"
OAUTH = "auth/"
"""Scenarios of OAuth, which our client does not speak: it sends the token it was given."""

SAID_CHARS = 200


class Suite:
    """Runs scenarios and writes down what they gave."""

    def __init__(self, tools: Tools, results: Path, board: Scoreboard) -> None:
        self._tools = tools
        self._results = results
        self._board = board

    def everything(self, running: Running, revision: str) -> None:
        """All that a revision requires of a server."""
        row = self._board.row(f"MCP {revision}, server, everything required")
        into = self._results / f"required-{revision}"
        ended = self._tools.suite(
            "server", "--url", running.mcp, "--requirements", revision, "-o", str(into)
        )
        required, others = self._listed(revision, "Server scenarios")
        for name in required:
            row.add(name, _problem(into, f"server-{name}"))
        if ended.code != 0 and row.is_good:
            row.add("the suite itself", f"exit {ended.code}: {_last_line(ended)}")
        checks = sum(len(_checks(into, f"server-{name}", "SUCCESS")) for name in required)
        passed = sum(_problem(into, f"server-{name}") is None for name in others)
        row.remarks.append(f"{checks} checks; not scored: {passed} of {len(others)}")
        warnings = sum(len(_checks(into, f"server-{name}", "WARNING")) for name in required)
        if warnings:
            row.remarks.append(f"{warnings} warnings")

    def as_it_is(self, running: Running, revision: str) -> None:
        """The part that needs none of the suite's fixtures."""
        row = self._board.row(f"MCP {revision}, ordinary node")
        into = self._results / f"ordinary-{revision}"
        for name in ORDINARY[revision]:
            self._tools.suite(
                *("server", "--url", running.mcp, "--scenario", name),
                *("--spec-version", revision, "-o", str(into)),
            )
            row.add(name, _problem(into, f"server-{name}"))
        checks = sum(len(_checks(into, f"server-{name}", "SUCCESS")) for name in ORDINARY[revision])
        row.remarks.append(f"{checks} checks")

    def our_client(self, revision: str) -> None:
        """What a revision requires of a client that is given its token."""
        row = self._board.row(f"MCP {revision}, our client")
        required, _ = self._listed(revision, "Client scenarios")
        into = self._results / f"client-{revision}"
        for name in required:
            if name.startswith(OAUTH):
                continue
            ended = self._tools.suite(
                *("client", "--command", CLIENT, "--scenario", name),
                *("--spec-version", revision, "-o", str(into)),
            )
            problem = _problem(into, name)
            if problem is None and ended.code != 0:
                problem = f"exit {ended.code}: {_last_line(ended)}"
            row.add(name, problem)
        row.remarks.append(f"without {sum(name.startswith(OAUTH) for name in required)} of OAuth")

    def _listed(self, revision: str, section: str) -> tuple[Sequence[str], Sequence[str]]:
        """The names that count, and those of the same role that are only reported."""
        role = "[server]" if section.startswith("Server") else "[client]"
        required, others = [], []
        heading = ""
        for line in self._tools.suite("list", "--requirements", revision).out.splitlines():
            if not line.startswith(" ") and line.strip():
                heading = line
            elif (name := line.strip().removeprefix("- ")) == line.strip():
                continue
            elif heading.startswith(section):
                required.append(name)
            elif name.endswith(role):
                others.append(name.removesuffix(role).strip())
        return required, others


def _checks(into: Path, name: str, status: str | None = None) -> list[dict[str, Any]]:
    """The checks of a scenario, or those that ended so; none: it did not run."""
    # A name may be the beginning of another one: what follows it is a date.
    found = sorted(into.glob(f"{name}-20[0-9][0-9]-*/checks.json"))
    checks = json.loads(found[-1].read_text()) if found else []
    return [check for check in checks if status in (None, check["status"])]


def _problem(into: Path, name: str) -> str | None:
    """Why a scenario does not count as passed. One without a passed check proves nothing."""
    if not _checks(into, name):
        return "did not run"
    if failed := _checks(into, name, "FAILURE"):
        said = failed[0].get("errorMessage") or failed[0]["description"]
        return f"{len(failed)} checks failed; {failed[0]['id']}: {said[:SAID_CHARS]}"
    return None if _checks(into, name, "SUCCESS") else "nothing was checked"


def _last_line(ended: Ended) -> str:
    said = [line for line in (ended.out + ended.err).splitlines() if line.strip()]
    return said[-1] if said else "nothing was said"
