"""The nodes of this home: those that run, and what those that died left behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aios_nb.client import RemoteClient
from aios_nb.errors import AiosError, HomeError, Impostor
from aios_nb.home import Home, RunInfo
from aios_nb.people.checks import Check, fail, ok, warn


async def nodes(home: Home) -> list[Check]:
    """Every check of the nodes."""
    running = home.running()
    found = [check for run in running for check in await reach(run)]
    if not found:
        found.append(ok("nodes", "none is running; start one: aios-nb up"))
    return [*found, *stale(home, {run.name for run in running})]


async def reach(run: RunInfo) -> list[Check]:
    """Whether the node answers on its port and proves its key, and has the links it should."""
    try:
        async with await RemoteClient.connect(run) as client:
            waiting = (await client.call("node.peers"))["waiting"]
    except Impostor as error:
        cure = f"another program has its port; start {run.name} again (no token was sent)"
        return [fail("nodes", f"{run.name}: {error.message}", cure)]
    except AiosError as error:
        cure = f"stop process {run.pid}, start again"
        return [fail("nodes", f"{run.name}: {error.message}", cure)]
    return [
        ok("nodes", f"{run.name} answers at {run.url} and proved its key"),
        *(away(run, row) for row in waiting),
    ]


def away(run: RunInfo, row: Mapping[str, Any]) -> Check:
    """A node that was joined and has no link."""
    return warn(
        "links",
        f"{run.name} has no link to {row['url']}: {problem_of(row)}",
        "see that the other node is up, and that address, id and --network are right",
    )


def problem_of(row: Mapping[str, Any]) -> str:
    """What is in the way of a link that was asked for."""
    problem = str(row["problem"]).removeprefix(f"{row['url']}: ")
    return problem or "not tried yet"


def stale(home: Home, running: Iterable[str]) -> list[Check]:
    """Run files whose node is gone. Harmless: the next start under that name replaces them."""
    alive = set(running)
    try:
        names = home.run_names()
    except HomeError:
        return []
    left = [name for name in names if name not in alive and not home.is_held(name)]
    if not left:
        return []
    return [
        warn(
            "run files",
            f"left by nodes that died: {', '.join(left)}",
            "nothing to do; the next start under that name cleans up",
        )
    ]
