"""What the node shares: its disk with itself, and its process with a busy cell."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import msgspec

from aios_nb.bench import contestants
from aios_nb.bench.contestants import Contestant, asked
from aios_nb.bench.generator import Session
from aios_nb.bench.ratios import cpu, median, order, rate, ratio, spread
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.bench.spec import Broken, Load, Target, Window, percentile

STORE_MIN = 1.0
STORE_S = 0.5
_STORE_LINES = {
    "store": "aios_nb.store, inline group commit",
    "thread": "writer thread, group commit",
    "one": "a commit per row, inline",
    "batch": "batches of 100, nobody waits",
}

RATE = 100
CONNECTIONS = 8
WARM_UP_CALLS = 40
BUSY_S = 2.0
ALONE_S = 0.8
BUSY_ROUNDS_MAX = 3
P50_MAX_MS = 2.0
P99_MAX_IDLE = 2.5
_KINDS = {"idle": "main thread idle", "pyloop": "pure Python cell", "sort": "small NumPy cell"}


def _store(bench: Bench) -> Result:
    rows: list[Row] = []
    raw_windows: dict[str, list[Window]] = {}
    for busy in (False, True):
        arguments = ["-m", "aios_nb.bench.storeload", "--rounds", str(bench.rounds)]
        arguments += ["--seconds", str(STORE_S)]
        printed = contestants.printed([*arguments, *(["--busy"] if busy else [])])
        taken = msgspec.json.decode(printed, type=dict[str, list[Window]])
        for name, label in _STORE_LINES.items():
            line = f"{label}, beside a busy thread" if busy else label
            rows.append(_store_row(name, line, taken[name], taken["thread"]))
            if busy:
                del rows[-1].figures["CPU µs"]  # the busy thread's is in it
            raw_windows[line] = taken[name]
    return Result(rows=rows, raw=raw_windows)


def _store_row(name: str, line: str, ours: list[Window], thread: list[Window]) -> Row:
    against = ratio(ours, thread, rate)
    row = Row(
        line=line,
        figures={
            "rows/s": figure(median(ours, rate)),
            "x thread": str(against),
            "p50 ms": figure(median(ours, lambda window: window.p50), 2),
            "p99 ms": figure(median(ours, lambda window: window.p99), 2),
            "CPU µs": figure(median(ours, cpu), 1),
        },
    )
    if name == "store" and against is not None:
        row.target = f"≥ {STORE_MIN} x thread"
        row.met = against.median >= STORE_MIN
    return row


class _Notebook:
    """The main thread of a process in which a node lives."""

    def __init__(self, contestant: Contestant) -> None:
        self._process = contestant.process

    def ask(self, command: str) -> dict[str, float]:
        line = asked(self._process, command.encode())
        if not line:
            raise Broken("the notebook process is gone")
        answer: dict[str, float] = json.loads(line)
        return answer

    def speed_since(self, start: dict[str, float]) -> float:
        """Counts per second since an earlier ``count``."""
        ended = self.ask("count")
        return (ended["count"] - start["count"]) / (ended["at"] - start["at"])


def _busy(bench: Bench) -> Result:
    rounds = min(bench.rounds, BUSY_ROUNDS_MAX)
    rows: list[Row] = []
    raw_windows: dict[str, list[Window]] = {}
    with contestants.notebook() as server:
        main_thread = _Notebook(server)
        kinds = [kind for kind in _KINDS if kind in server.ready["kinds"]]
        works: dict[str, Target] = {
            "RPC": server.target("rpc", CONNECTIONS),
            "chat.send": server.target("send", CONNECTIONS, keep_conversation=True),
        }
        for work, target in works.items():
            taken: dict[str, list[Window]] = {kind: [] for kind in kinds}
            slowed: dict[str, list[float]] = {kind: [] for kind in kinds}
            with bench.generator.open(target) as session:
                session.drive(Load(count=WARM_UP_CALLS))
                for turn in range(rounds):
                    for place in order(turn, len(kinds)):
                        kind = kinds[place]
                        window, ratio_of_speed = _beside(main_thread, kind, session)
                        taken[kind].append(window)
                        if ratio_of_speed is not None:
                            slowed[kind].append(ratio_of_speed)
            for kind in kinds:
                line = f"{work}, {_KINDS[kind]}"
                rows.append(_busy_row(line, kind, taken[kind], taken["idle"], slowed[kind]))
                raw_windows[line] = taken[kind]
    return Result(
        rows=rows,
        raw=raw_windows,
        notes=[
            (
                f"{RATE} calls per second, whatever the answers take; latency from the due time."
                " Percentiles over all rounds together."
            ),
            "cell = its speed under this load, in units of its speed without (noise ± 10 %).",
        ],
    )


def _beside(main_thread: _Notebook, kind: str, session: Session) -> tuple[Window, float | None]:
    """One window while the main thread does this, and what is left of the main thread's speed."""
    main_thread.ask(kind)
    try:
        alone: float | None = None
        if kind != "idle":
            start = main_thread.ask("count")
            time.sleep(ALONE_S)
            alone = main_thread.speed_since(start)
        start = main_thread.ask("count")
        window = session.drive(Load(seconds=BUSY_S, rate=RATE, keep=True))
        return window, main_thread.speed_since(start) / alone if alone else None
    finally:
        main_thread.ask("idle")


def _busy_row(
    line: str, kind: str, ours: list[Window], idle: list[Window], slowed: Sequence[float]
) -> Row:
    pooled = sorted(value for window in ours for value in window.samples)
    pooled_idle = sorted(value for window in idle for value in window.samples)
    p50, p99 = percentile(pooled, 0.5), percentile(pooled, 0.99)
    against = p99 / percentile(pooled_idle, 0.99)
    row = Row(
        line=line,
        figures={
            "p50 ms": figure(p50, 2),
            "p99 ms": figure(p99, 2),
            "p99 x idle": f"{against:.2f}",
            "max ms": figure(pooled[-1], 1),
            "cell": f"{spread(slowed).median:.2f}" if slowed else "-",
        },
    )
    if kind != "idle":
        row.target = f"p50 ≤ {P50_MAX_MS:.0f} ms, p99 ≤ {P99_MAX_IDLE} x idle"
        row.met = p50 <= P50_MAX_MS and against <= P99_MAX_IDLE
    return row


STORE = Scenario(
    name="store",
    title="The store with 50 producers",
    target=f"≥ {STORE_MIN} x a writer thread, idle and beside a busy thread",
    why="Writing on the loop blocks it for a commit; a thread costs two hand-overs per row.",
    run=_store,
)
BUSY = Scenario(
    name="busy",
    title="A node beside a busy main thread",
    target=f"p50 ≤ {P50_MAX_MS:.0f} ms, p99 ≤ {P99_MAX_IDLE} x idle",
    why="In a notebook the node shares the interpreter with the cell that runs.",
    run=_busy,
)
