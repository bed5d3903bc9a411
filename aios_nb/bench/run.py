"""``aios-nb bench``: runs the scenarios one after the other and reports."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from aios_nb.bench.generator import Generator
from aios_nb.bench.report import Outcome, machine, markdown, save, summary
from aios_nb.bench.results import Bench, Result, Scenario
from aios_nb.bench.scenarios import SCENARIOS
from aios_nb.bench.spec import Broken, Missing

ROUNDS = 9
QUICK_ROUNDS = 3
RESULTS = Path("bench_results/bench.json")
BROKEN = 1


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="aios-nb bench",
        description="Measure this node, as ratios to a baseline in the same run.",
        epilog="A missed target is marked; the exit code is 1 only when a reply was wrong.",
    )
    made.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a figure")
    names = [scenario.name for scenario in SCENARIOS]
    made.add_argument("--only", nargs="+", metavar="NAME", choices=names, help=", ".join(names))
    made.add_argument("--rounds", type=_positive, help=f"windows per line (default {ROUNDS})")
    made.add_argument(
        "--json",
        type=Path,
        default=RESULTS,
        metavar="FILE",
        help=f"where the raw windows go, with the tables beside them as .md (default {RESULTS})",
    )
    made.add_argument("--list", action="store_true", help="show the scenarios and their targets")
    return made


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least one round is needed")
    return number


def main(argv: Sequence[str]) -> int:
    """Run what was asked for; 0 unless a scenario broke."""
    options = parser().parse_args(argv)
    if options.list:
        for scenario in SCENARIOS:
            print(f"{scenario.name:8}  {scenario.title}: {scenario.target}\n{'':10}{scenario.why}")
        return 0
    chosen = [each for each in SCENARIOS if not options.only or each.name in options.only]
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    facts = machine()
    outcomes = [_outcome(scenario, rounds, quick=options.quick) for scenario in chosen]
    save(options.json, outcomes, facts, argv)
    print(markdown(outcomes, facts, argv))
    print(summary(outcomes))
    print(f"Raw windows: {options.json}")
    return BROKEN if any(outcome.broken for outcome in outcomes) else 0


def _outcome(scenario: Scenario, rounds: int, *, quick: bool) -> Outcome:
    print(f"measuring {scenario.name} …", file=sys.stderr, flush=True)
    begun = time.perf_counter()
    found: Result | str
    skipped = False
    try:
        with Generator() as generator:
            found = scenario.run(Bench(generator=generator, rounds=rounds, quick=quick))
    except (Broken, Missing) as error:
        found = str(error)
        skipped = isinstance(error, Missing)
    return Outcome.of(scenario, time.perf_counter() - begun, found, skipped=skipped)
