"""``python -m conformance``: everything, or what ``--only`` names; exit 1 when something fails."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from conformance.inspector import Inspector
from conformance.nodes import node
from conformance.scoreboard import Scoreboard
from conformance.suite import LEGACY, MODERN, Suite
from conformance.tools import Missing, Tools

PARTS = ("required", "ordinary", "client", "inspector", "stdio")


def main() -> int:
    args = _arguments()
    parts = set(args.only or PARTS)
    tools = Tools(args.tools.resolve())
    try:
        tools.install()
    except Missing as problem:
        print(problem, file=sys.stderr)
        return 1
    board = Scoreboard()
    with tempfile.TemporaryDirectory(prefix="aios-conformance-results-") as folder:
        _run(parts, tools, board, (args.results or Path(folder)).resolve())
    board.show()
    return 0 if board.is_good else 1


def _run(parts: set[str], tools: Tools, board: Scoreboard, results: Path) -> None:
    suite = Suite(tools, results, board)
    inspector = Inspector(tools, board)
    if "required" in parts:
        with node("--conformance") as running:
            inspector.fixtures(running)
            suite.everything(running, LEGACY)
            suite.everything(running, MODERN)
    if parts & {"ordinary", "inspector", "stdio"}:
        with node() as running:
            if "ordinary" in parts:
                suite.as_it_is(running, LEGACY)
                suite.as_it_is(running, MODERN)
            if "inspector" in parts:
                inspector.lists(running)
                inspector.calls(running)
                inspector.load(running)
            if "stdio" in parts:
                inspector.stdio(running)
    if "client" in parts:
        suite.our_client(LEGACY)
        suite.our_client(MODERN)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="may be given again")
    parser.add_argument(
        "--tools", type=Path, default=Path(".venv/conformance"), help="where npm puts the suite"
    )
    parser.add_argument("--results", type=Path, help="keep what the suite writes here")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
