"""The machine: Python, packages, clock, what the system lets us see."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from aios_nb.people.checks import Check, fail, ok, warn

PYTHON_MIN = (3, 11)
NOT_BEFORE_UNIX = 1_767_225_600
"""The start of 2026: a clock before that would date every record into the past."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_NUMBERS = re.compile(r"\d+")
_BOUND = re.compile(r"(>=|==|<)\s*([0-9.]+)")
_TCP_TABLE = Path("/proc/net/tcp")


def machine() -> Iterator[Check]:
    """Every check of this machine."""
    yield python()
    yield packages()
    yield lab()
    yield clock(time.time())
    yield uid_rule()


def python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < PYTHON_MIN:
        return fail("python", f"Python {version} is too old", "install Python 3.11 or newer")
    return ok("python", f"Python {version} at {sys.executable}")


def packages() -> Check:
    """Whether what we depend on is there, in a version we can use."""
    try:
        wanted = importlib.metadata.requires("aios-nb") or []
        fix = "pip install --upgrade aios-nb"
    except importlib.metadata.PackageNotFoundError:
        return warn(
            "packages", "aios-nb runs from its source, not installed", "pip install -e '.[lab]'"
        )
    core = [line for line in wanted if "extra ==" not in line]
    wrong = [said for line in core if (said := _missing(line))]
    if wrong:
        return fail("packages", f"{', '.join(wrong)}", fix)
    return ok("packages", f"all {len(core)} packages are there")


def _missing(requirement: str) -> str | None:
    found = _NAME.match(requirement)
    if found is None:
        return None
    try:
        have = importlib.metadata.version(found[0])
    except importlib.metadata.PackageNotFoundError:
        return f"{found[0]} is missing"
    for sign, bound in _BOUND.findall(requirement):
        if not _fits(have, sign, bound):
            return f"{found[0]} is {have}, wanted {sign}{bound}"
    return None


def _fits(have: str, sign: str, bound: str) -> bool:
    width = bound.count(".") + 1
    left = [int(part) for part in _NUMBERS.findall(have)][:width]
    right = [int(part) for part in _NUMBERS.findall(bound)]
    if sign == "==":
        return left == right
    return left >= right if sign == ">=" else left < right


def lab() -> Check:
    if importlib.util.find_spec("jupyterlab") is None:
        return warn("jupyterlab", "JupyterLab is not installed", "pip install 'aios-nb[lab]'")
    return ok("jupyterlab", f"JupyterLab {importlib.metadata.version('jupyterlab')}")


def clock(now: float) -> Check:
    if now < NOT_BEFORE_UNIX:
        said = time.strftime("%Y-%m-%d", time.gmtime(now))
        return fail(
            "clock", f"the clock says {said}", "set it: others refuse records with wrong times"
        )
    return ok("clock", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now)))


def uid_rule(table: Path = _TCP_TABLE) -> Check:
    """Whether other users of this machine can be told from its owner."""
    try:
        with table.open(encoding="ascii") as rows:
            head = rows.readline()
    except OSError:
        head = ""
    if "uid" in head:
        return ok("other users", f"connections of other users are told apart by {table}")
    return warn(
        "other users",
        "this system does not say which user a local connection comes from",
        "on a shared machine keep tokens and the home folder to yourself",
    )
