"""The paper's own load, with an agent really answering; and the reference's way to run one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from aios_nb.bench import contestants, usage
from aios_nb.bench.contestants import Contestant
from aios_nb.bench.generator import Session
from aios_nb.bench.ratios import alternate, median, ratio
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.bench.spec import Load, Window, Work

LOADS = ((50, 5), (100, 10), (200, 20))
"""Requests and users: the paper's light, medium and heavy load."""
WARM_UP_CALLS = 30
ROUNDS_MIN = 9
"""A level takes some ten milliseconds, so many rounds cost nothing."""
TOTAL_MAX = 4.0
UNIT = "raw aiohttp echo"
OURS = "node, chat.send"
STACK = "a process per task, with imports"

SPAWN_LOAD = (200, 20)
STACK_LOAD = (40, 20)
"""Fewer requests: each takes some tenths of a second of a core."""
QUICK_STACK = (20, 20)
FASTER_MIN = 1000


def _levels(bench: Bench) -> Result:
    rows: list[Row] = []
    raw_windows: dict[str, list[Window]] = {}
    with contestants.baseline("echo") as raw, contestants.node() as node:
        for requests, users in LOADS:
            targets = {
                UNIT: raw.target("echo", users),
                "chat.send, HTTP": node.target("send", users, keep_conversation=True),
                "chat.send, WebSocket": node.target(
                    "send", users, keep_conversation=True, wire="ws"
                ),
            }
            with ExitStack() as stack:
                lines: dict[str, Callable[[], Window]] = {}
                for name, target in targets.items():
                    session = stack.enter_context(bench.generator.open(target))
                    session.drive(Load(count=WARM_UP_CALLS))
                    lines[name] = _by_count(session, requests)
                taken = alternate(lines, max(bench.rounds, ROUNDS_MIN))
            for name, these in taken.items():
                rows.append(_level_row(name, requests, users, these, taken[UNIT]))
                raw_windows[f"{name}, {requests}/{users}"] = these
    return Result(
        rows=rows,
        raw=raw_windows,
        notes=[
            (
                "For comparison: the reference's own test, repaired, took 6 / 10 / 19 ms and did"
                " 684 / 903 / 937 req/s on two shared cores, against a stub that runs no agent."
            ),
        ],
    )


def _by_count(session: Session, requests: int) -> Callable[[], Window]:
    return lambda: session.drive(Load(count=requests))


def _level_row(name: str, requests: int, users: int, ours: list[Window], unit: list[Window]) -> Row:
    total = ratio(ours, unit, lambda window: window.seconds)
    answered = sum(window.replies for window in ours) / (requests * len(ours))
    row = Row(
        line=f"{name}, {requests}/{users}",
        figures={
            "avg ms": figure(median(ours, lambda window: window.mean), 2),
            "min ms": figure(median(ours, lambda window: window.low), 2),
            "max ms": figure(median(ours, lambda window: window.high), 2),
            "total ms": figure(median(ours, lambda window: window.seconds * 1e3), 1),
            "req/s": figure(median(ours, lambda window: window.rate)),
            "success": f"{answered:.0%}",
            "total x raw": str(total),
        },
    )
    if name != UNIT and total is not None:
        row.target = f"100 %, total ≤ {TOTAL_MAX:.0f} x raw"
        row.met = answered == 1 and total.median <= TOTAL_MAX
    return row


def _spawn(bench: Bench) -> Result:
    with (
        contestants.node() as node,
        contestants.baseline("spawn-bare") as bare,
        contestants.baseline("spawn-stack") as stack,
    ):
        shapes: dict[str, tuple[Contestant, tuple[int, int], int]] = {
            OURS: (node, SPAWN_LOAD, ROUNDS_MIN),
            "a process per task, bare": (bare, SPAWN_LOAD, 1),
            STACK: (stack, QUICK_STACK if bench.quick else STACK_LOAD, 1),
        }
        taken: dict[str, list[Window]] = {}
        cpu_ms: dict[str, float | None] = {}
        for name, (server, (requests, users), rounds) in shapes.items():
            work: Work = "send" if server is node else "echo"
            with bench.generator.open(server.target(work, users)) as session:
                session.drive(Load(count=2))
                before = usage.family_s(server.pid)
                taken[name] = [session.drive(Load(count=requests)) for _ in range(rounds)]
                after = usage.family_s(server.pid)
            known = before is not None and after is not None
            cpu_ms[name] = (after - before) * 1e3 / requests / rounds if known else None  # type: ignore[operator]
        imports, missing = stack.ready["imports"], stack.ready["missing"]
    rows = []
    ours = median(taken[OURS], _per_task) or 0.0
    for name, (_, (requests, users), _) in shapes.items():
        each = median(taken[name], _per_task) or 0.0
        row = Row(
            line=f"{name}, {requests}/{users}",
            figures={
                "ms per task": figure(each * 1e3, 3),
                "tasks/s": figure(1 / each, 1),
                "CPU ms per task": figure(cpu_ms[name], 2),
                "node is faster": f"{each / ours:,.0f} x" if name != OURS else "",
            },
        )
        if name == STACK:
            row.target = f"node ≥ {FASTER_MIN:,} x faster"
            row.met = each / ours >= FASTER_MIN
        rows.append(row)
    left_out = f" Not installed here: {', '.join(missing)}." if missing else ""
    return Result(
        rows=rows, raw=taken, notes=[f"Imports of each task: {', '.join(imports)}.{left_out}"]
    )


def _per_task(window: Window) -> float:
    return window.seconds / window.replies


LEVELS = Scenario(
    name="levels",
    title="The paper's load: requests/users",
    target=f"every answer right, total ≤ {TOTAL_MAX:.0f} x raw aiohttp",
    why="Light, medium and heavy load of the paper, with a durable call and an agent answering.",
    run=_levels,
)
SPAWN = Scenario(
    name="spawn",
    title="A process per task",
    target=f"node ≥ {FASTER_MIN:,} x faster than a process with its imports",
    why="How the reference runs an agent. Its 30 s polling comes on top and is not counted here.",
    run=_spawn,
)
