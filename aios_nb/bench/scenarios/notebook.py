"""A notebook's node: how soon it is there, and whether it answers while a cell is busy."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from aios_nb.bench.kernels import Notebook, notebook, waited
from aios_nb.bench.ratios import spread
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.bench.spec import percentile

LOAD_S = 0.5
MEET_S = 2.0
CHANGE_S = 1.0
ANSWER_MS = 50.0
PATIENCE_S = 60.0
ROUNDS_MAX = 5
ASKED = 100
"""Calls per round and kind of cell."""
_TIMED = """
import time
begun = time.perf_counter()
{code}
print(time.perf_counter() - begun)
"""
_LOAD = "get_ipython().run_line_magic('load_ext', 'aios_nb')"
_YARDSTICK = "import aiohttp.web"
_AGENT = """
import aios_nb as aios

@aios.agent(name={name!r}, about={about!r}, tags=["bench"])
def run(text):
    return text
"""
_CELLS = {
    "idle": "",
    "a cell sleeps": "import time; time.sleep(600)",
    "a cell loops in Python": "n = 0\nwhile True: n += 1",
}


def _notebook(bench: Bench) -> Result:
    rounds = min(bench.rounds, ROUNDS_MAX)
    loads, yards, met, changed = [], [], [], []
    answers: dict[str, list[float]] = {kind: [] for kind in _CELLS}
    for turn in range(rounds):
        with tempfile.TemporaryDirectory(prefix="aios-bench-", ignore_cleanup_errors=True) as place:
            home = Path(place) / "home"
            with notebook("a.ipynb", home) as first, notebook("b.ipynb", home) as second:
                yards.append(_timed(first, _YARDSTICK))
                loads.append(_timed(second, _LOAD))
                _timed(first, _LOAD)
                met.append(_meet(first, second))
                changed += [_change(first, second, f"turn {turn} {n}") for n in range(3)]
                for kind, cell in _CELLS.items():
                    answers[kind] += _asked(first, cell)
    return Result(
        rows=[_seconds("%load_ext, in a fresh kernel", loads, LOAD_S, yards)]
        + [_seconds("two notebooks know each other's agents", met, MEET_S)]
        + [_seconds("a changed agent is seen in the other", changed, CHANGE_S)]
        + [_answered(kind, answers) for kind in _CELLS],
        raw={"load": loads, "aiohttp": yards, "met": met, "changed": changed, **answers},
        notes=[
            (
                "Real kernels of one home, started anew each round. Loading: in the kernel, against"
                " `import aiohttp.web` in another one. Meeting: from the end of the later one's"
                " `%load_ext` until both hubs show the other's agent, looked at over HTTP. Answers:"
                " `node.info` over HTTP, a new connection each."
            )
        ],
    )


def _timed(where: Notebook, code: str) -> float:
    return float(where.cell(_TIMED.format(code=code)).split()[-1])


def _meet(first: Notebook, second: Notebook) -> float:
    begun = time.perf_counter()
    first.cell(_AGENT.format(name="one", about="is the first"))
    second.cell(_AGENT.format(name="two", about="is the second"))
    waited(lambda: first.sees("two", "is the second"), PATIENCE_S, "the first saw nobody")
    waited(lambda: second.sees("one", "is the first"), PATIENCE_S, "the second saw nobody")
    return time.perf_counter() - begun


def _change(first: Notebook, second: Notebook, about: str) -> float:
    first.cell(_AGENT.format(name="one", about=about))
    return waited(lambda: second.sees("one", about), PATIENCE_S, "the change was not seen")


def _asked(where: Notebook, cell: str) -> list[float]:
    """Milliseconds of each answer while the cell runs."""
    if cell:
        where.begin(cell)
    took = []
    for _ in range(ASKED):
        begun = time.perf_counter()
        where.ask("node.info")
        took.append((time.perf_counter() - begun) * 1e3)
    if cell:
        where.interrupt()
    return took


def _seconds(line: str, taken: Sequence[float], most_s: float, yards: Sequence[float] = ()) -> Row:
    figures = {"seconds": str(spread(taken))}
    if yards:
        ratios = [one / yard for one, yard in zip(taken, yards, strict=True)]
        figures["x import aiohttp"] = str(spread(ratios))
    return Row(
        line=line,
        figures=figures,
        target=f"median ≤ {most_s:g} s",
        met=statistics.median(taken) <= most_s,
    )


def _answered(kind: str, answers: dict[str, list[float]]) -> Row:
    took, idle = sorted(answers[kind]), sorted(answers["idle"])
    p50 = percentile(took, 0.5)
    return Row(
        line=f"HTTP answer, {kind}",
        figures={
            "p50 ms": figure(p50, 2),
            "p99 ms": figure(percentile(took, 0.99), 1),
            "p50 x idle": figure(p50 / percentile(idle, 0.5), 2),
        },
        target="" if kind == "idle" else f"p50 ≤ {ANSWER_MS:g} ms",
        met=None if kind == "idle" else p50 <= ANSWER_MS,
    )


NOTEBOOK = Scenario(
    name="notebook",
    title="A notebook's node",
    target=f"%load_ext {LOAD_S:g} s, meeting {MEET_S:g} s, a change {CHANGE_S:g} s, HTTP p50"
    f" {ANSWER_MS:g} ms beside a busy cell",
    why="It has to be there before the next cell is typed, and to answer while that cell works.",
    run=_notebook,
)
