"""The tables a person reads and the file a program reads."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from aios_nb._version import __version__
from aios_nb.bench.results import Result, Scenario
from aios_nb.envelope import now_iso

_PACKAGES = (
    "aiohttp", "msgspec", "cryptography", "uvloop", "numpy", "mcp", "fastmcp", "a2a-sdk", "uvicorn",
)  # fmt: skip
_MARK = {True: "met", False: "**missed**", None: ""}


class Outcome(msgspec.Struct, kw_only=True):
    """One scenario: what it showed, or why it cannot be believed."""

    name: str
    title: str
    target: str
    why: str
    seconds: float
    result: Result | None = None
    broken: str | None = None
    skipped: str | None = None

    @classmethod
    def of(
        cls, scenario: Scenario, seconds: float, found: Result | str, *, skipped: bool = False
    ) -> Outcome:
        """The outcome of a scenario: a result, or one line about what broke or is missing."""
        said = found if isinstance(found, str) else None
        return cls(
            name=scenario.name,
            title=scenario.title,
            target=scenario.target,
            why=scenario.why,
            seconds=seconds,
            result=found if isinstance(found, Result) else None,
            broken=None if skipped else said,
            skipped=said if skipped else None,
        )


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    versions = {"aios_nb": __version__, "sqlite": sqlite3.sqlite_version}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    load = os.getloadavg() if hasattr(os, "getloadavg") else None
    return {
        "at": now_iso(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": [round(value, 2) for value in load] if load else None,
        "python": platform.python_version(),
        "versions": versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def command(argv: Sequence[str]) -> str:
    """What to type to measure this again."""
    return shlex.join(["aios-nb", "bench", *argv])


def markdown(outcomes: Sequence[Outcome], facts: dict[str, Any], argv: Sequence[str]) -> str:
    """All tables, with what they were measured on and how to repeat them."""
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    loads = f", load {facts['load'][0]}" if facts.get("load") else ""
    parts = [
        "# Benchmarks",
        (
            f"Measured {facts['at']} on {facts['cores']} cores ({facts['processor']}{loads}), "
            f"{facts['system']}, Python {facts['python']}, {versions}."
        ),
        (
            f"Repeat with `{command(argv)}`. Trust the ratios: they compare windows of the same"
            " run; in brackets the lowest and highest round."
        ),
    ]
    for outcome in outcomes:
        parts.append(f"## {outcome.title} (`--only {outcome.name}`)")
        parts.append(f"{outcome.why} Target: {outcome.target}.")
        if outcome.broken is not None:
            parts.append(f"**Broken**: {outcome.broken}")
        if outcome.skipped is not None:
            parts.append(f"Skipped: {outcome.skipped}")
        if outcome.result is not None:
            parts.append(table(outcome.result))
            parts.extend(outcome.result.notes)
    return "\n\n".join(parts) + "\n"


def table(result: Result) -> str:
    """The rows under the columns that they use, in the order they came."""
    columns = list(dict.fromkeys(name for row in result.rows for name in row.figures))
    targets = any(row.target for row in result.rows)
    head = ["", *columns, *(["target", ""] if targets else [])]
    lines = [head, ["---", *["---:"] * len(columns), *(["---", "---"] if targets else [])]]
    for row in result.rows:
        cells = [row.line, *(row.figures.get(name, "") for name in columns)]
        lines.append([*cells, *([row.target, _MARK[row.met]] if targets else [])])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def summary(outcomes: Sequence[Outcome]) -> str:
    """One line: how many targets were met, which were missed, what broke."""
    rows = [row for outcome in outcomes if outcome.result for row in outcome.result.rows]
    judged = [row for row in rows if row.met is not None]
    missed = [row.line for row in judged if not row.met]
    broken = [outcome.name for outcome in outcomes if outcome.broken is not None]
    parts = [f"{len(judged) - len(missed)} of {len(judged)} targets met"]
    if missed:
        parts.append(f"missed: {'; '.join(missed)}")
    if skipped := [outcome.name for outcome in outcomes if outcome.skipped is not None]:
        parts.append(f"skipped: {', '.join(skipped)}")
    if broken:
        parts.append(f"broken: {', '.join(broken)}")
    return ". ".join(parts) + "."


def save(
    path: Path, outcomes: Sequence[Outcome], facts: dict[str, Any], argv: Sequence[str]
) -> None:
    """The raw windows as JSON at ``path``, and the tables beside it as Markdown."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {
        "command": command(argv),
        "implementation": sys.implementation.name,
        "machine": facts,
        "scenarios": outcomes,
    }
    path.write_bytes(msgspec.json.format(msgspec.json.encode(whole), indent=1))
    path.with_suffix(".md").write_text(markdown(outcomes, facts, argv), encoding="utf-8")
