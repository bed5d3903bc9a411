"""``simulate``: a rumour, lookups or a whole network, of nodes that are not there."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from aios_nb.cli import output
from aios_nb.errors import UsageError

_BAR_CELLS = 40


def simulate(_: argparse.Namespace) -> None:
    raise UsageError(
        "say what to simulate: gossip, lookups or network",
        hint="for example: aios-nb simulate network --nodes 30 --kill 6",
    )


def gossip(args: argparse.Namespace) -> None:
    """How many intervals a rumour takes, by the size of the network."""
    from aios_nb.sim.epidemic import Rumour, summarise

    rows = []
    for nodes in args.nodes:
        rumour = Rumour.of_hub(nodes, loss=args.loss, dead=args.dead)
        summary = summarise(rumour, runs=args.runs, seed=args.seed)
        rows.append(
            {
                "nodes": nodes,
                "intervals_to_99": summary.to_99,
                "per_log2_n": summary.per_log2,
                "intervals_to_all": summary.to_all,
                "messages_per_node": summary.messages_per_node,
                "complete": summary.complete,
                "coverage": summary.coverage,
            }
        )
    if args.json:
        output.show_json(_answer(args, "gossip", rows, loss=args.loss, dead=args.dead))
        return
    output.table(
        ("NODES", "INTERVALS TO 99 %", "PER LOG2 N", "TO ALL", "MESSAGES PER NODE", "COMPLETE"),
        (
            (
                f"{row['nodes']:,}",
                _number(row["intervals_to_99"], 1),
                _number(row["per_log2_n"], 2),
                _number(row["intervals_to_all"], 1),
                _number(row["messages_per_node"], 1),
                _percent(row["complete"]),
            )
            for row in rows
        ),
    )
    if len(rows) == 1:
        print()
        _bars("INTERVAL  HEARD", rows[0]["coverage"])
    output.note(f"means of {args.runs} rumours; what a rumour misses, digests bring later")


def _bars(head: str, shares: Sequence[float]) -> None:
    """One bar for each interval, the longest for everybody."""
    paint = output.Paint(sys.stdout)
    print(paint(head, "dim"))
    for interval, share in enumerate(shares):
        bar = "█" * round(share * _BAR_CELLS)
        print(f"{interval:8}  {_percent(share):>7}  {paint(bar, 'cyan')}".rstrip())


def lookups(args: argparse.Namespace) -> None:
    """How long lookups take as the hub makes them, and in batches that wait for their slowest."""
    from aios_nb.sim.lookups import Manner, Roads, look_up
    from aios_nb.sim.overlay import Overlay, Population

    roads = Roads(median_s=args.rtt)
    hub = Manner.at(args.rtt)
    batches = Manner(barriers=True, paths=1, quorum=1, timeout_s=hub.timeout_s)
    rows = []
    for nodes in args.nodes:
        overlay = Overlay(Population(nodes, dead=args.dead, sybils=args.sybils), args.seed)
        for how, manner in (("as the hub does", hub), ("in batches", batches)):
            made = look_up(overlay, manner, roads, count=args.lookups, seed=args.seed)
            rows.append(
                {
                    "nodes": nodes,
                    "how": how,
                    "p50_s": made.seconds(0.5),
                    "p99_s": made.seconds(0.99),
                    "questions": made.messages,
                    "found": made.found,
                }
            )
    if args.json:
        shares = {"dead": args.dead, "sybils": args.sybils, "rtt_s": args.rtt}
        output.show_json(_answer(args, "lookups", rows, **shares))
        return
    output.table(
        ("NODES", "ASKED", "P50", "P99", "QUESTIONS", "FOUND"),
        (
            (
                f"{row['nodes']:,}",
                row["how"],
                f"{row['p50_s']:.2f} s",
                f"{row['p99_s']:.2f} s",
                f"{row['questions']:.1f}",
                _percent(row["found"]),
            )
            for row in rows
        ),
    )
    output.note(
        f"{args.lookups} lookups each, round trips of {args.rtt * 1000:.0f} ms in the median"
    )


def network(args: argparse.Namespace) -> None:
    """The life of a network: it comes together, has a new agent, loses nodes, hears lies."""
    from aios_nb.sim.chapters import live

    chapters = live(
        args.nodes, loss=args.loss, kill=args.kill, accusers=args.accusers, seed=args.seed
    )
    rows = [{"what": each.what, "value": each.value, "unit": each.unit} for each in chapters]
    if args.json:
        output.show_json(_answer(args, "network", rows, nodes=args.nodes, loss=args.loss))
        return
    output.table(("WHAT", "MEASURED"), ((each.what, each.measured) for each in chapters))
    output.note("the real gossip, on a virtual clock; the same seed gives the same run")


def _answer(
    args: argparse.Namespace, model: str, rows: list[dict[str, Any]], **shares: float
) -> dict[str, Any]:
    return {"model": model, "seed": args.seed, **shares, "rows": rows}


def _number(value: float | None, digits: int) -> str:
    return "never" if value is None else f"{value:.{digits}f}"


def _percent(share: float) -> str:
    """As whole as it is true: 100 % means all of them."""
    percent = share * 100
    return f"{percent:.0f} %" if percent in {0, 100} else f"{min(percent, 99.9):.1f} %"
