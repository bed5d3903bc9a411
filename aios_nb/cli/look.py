"""``status``, ``agents``, ``peers``, ``card``, ``search``: looking, without changing anything."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from aios_nb.cli import output
from aios_nb.cli.connect import found, home_of, site, talk_to
from aios_nb.client import SiteClient
from aios_nb.envelope import AgentRow
from aios_nb.errors import AiosError
from aios_nb.home import Home, RunInfo
from aios_nb.people.cards import card_lines
from aios_nb.people.checks.nodes import problem_of
from aios_nb.people.guests import marks, remarks
from aios_nb.people.layout import seconds
from aios_nb.richtext import one_line
from aios_nb.rows import Import

_ID_SHOWN = 12
"""Characters of a node's id; `ask` and `card` take the short form too."""


def status(args: argparse.Namespace) -> int:
    """The node that was meant; all of them when none was."""
    home = home_of(args)
    named = args.node or os.environ.get("AIOS_NODE")
    runs = [found(args)] if named else home.running() or [found(args)]
    states = asyncio.run(_states(runs, home))
    if args.json:
        output.show_json(states[0] if len(runs) == 1 else {"nodes": states})
    elif len(runs) == 1:
        _show_one(states[0])
    else:
        _show_many(states)
    return 1 if any("error" in state for state in states) else 0


async def _states(runs: Sequence[RunInfo], home: Home) -> list[dict[str, Any]]:
    return list(await asyncio.gather(*(_state(run, home) for run in runs)))


async def _state(run: RunInfo, home: Home) -> dict[str, Any]:
    known = {"name": run.name, "node_id": run.node_id, "url": run.url, "pid": run.pid}
    try:
        async with site(run, home) as client:
            return {**known, **await client.call("node.info")}
    except AiosError as error:
        return {**known, "error": str(error)}


def _show_one(state: Mapping[str, Any]) -> None:
    paint = output.Paint(sys.stdout)
    print(f"{paint(one_line(state['name']), 'bold')} at {state['url']}")
    lines = {"node id": state["node_id"], "pid": state["pid"]}
    if "error" in state:
        lines["problem"] = state["error"]
    else:
        lines |= {
            "up for": seconds(state.get("uptime_s", 0)),
            "version": state.get("version", ""),
            "agents": _agents_of(state),
            "network": _network_of(state),
        }
        if state.get("superseded"):
            lines["problem"] = "another process uses this node's key; this one publishes no more"
    for label, value in lines.items():
        print(f"  {paint(f'{label:8}', 'dim')} {one_line(str(value))}")


def _agents_of(state: Mapping[str, Any]) -> str:
    agents = state.get("agents", 0)
    return ", ".join(map(str, agents)) if isinstance(agents, list) else str(agents)


def _network_of(state: Mapping[str, Any]) -> str:
    nodes, agents = state.get("peers", 0), state.get("known_agents", 0)
    if not nodes:
        return "no other node yet"
    return f"{nodes} other node{'s' * (nodes > 1)} alive, {agents} agent{'s' * (agents != 1)} known"


def _show_many(states: Sequence[Mapping[str, Any]]) -> None:
    output.table(
        ("NAME", "ADDRESS", "UP FOR", "AGENTS"),
        (
            (
                state["name"],
                state["url"],
                seconds(state["uptime_s"]) if "uptime_s" in state else "?",
                state["error"] if "error" in state else _agents_of(state),
            )
            for state in states
        ),
    )


def agents(args: argparse.Namespace) -> None:
    answer = talk_to(args, lambda client: client.call("agents.list"))
    if args.json:
        output.show_json(answer)
        return
    output.table(
        ("NAME", "ACCESS", "TAGS", "ABOUT"),
        (
            (row["name"], row.get("access", ""), " ".join(row["tags"]), row["about"])
            for row in answer["agents"]
        ),
        below=["; ".join(_marks(row)) for row in answer["agents"]],
    )


def peers(args: argparse.Namespace) -> None:
    answer = talk_to(args, lambda client: client.call("node.peers"))
    if args.json:
        output.show_json(answer)
        return
    if answer["peers"]:
        output.table(
            ("NAME", "STATE", "LATENCY", "NODE ID", "ADDRESS"),
            (
                (row["name"], row["state"], _latency(row), row["node_id"], row["url"])
                for row in answer["peers"]
            ),
        )
    elif not answer["waiting"]:
        output.note("no other node yet; link to one: aios-nb up --join URL")
    listed = {row["node_id"] for row in answer["peers"]}
    for row in answer["waiting"]:
        if row["node_id"] in listed:
            continue
        output.note(f"no link to {row['url']} yet: {problem_of(row)}; it is tried again")


def _latency(row: Mapping[str, Any]) -> str:
    taken = row.get("latency_ms")
    return "" if taken is None else f"{taken:.1f} ms"


def search(args: argparse.Namespace) -> int:
    words = " ".join(args.words)
    answer = talk_to(
        args, lambda client: client.call("agents.search", query=words, limit=args.limit)
    )
    if args.json:
        output.show_json(answer)
    elif answer["agents"]:
        output.table(
            ("AGENT", "SCORE", "TAGS", "ABOUT"),
            (
                (_short(row), f"{row.get('score', 0):.2f}", " ".join(row["tags"]), row["about"])
                for row in answer["agents"]
            ),
            below=[_why(row) for row in answer["agents"]],
        )
    else:
        output.note("nothing found; try other words, or see all: aios-nb agents")
    return 0 if answer["agents"] else 1


def _short(row: Mapping[str, Any]) -> str:
    return f"{row['name']}@{row['node_id'][:_ID_SHOWN]}"


def _why(row: Mapping[str, Any]) -> str:
    """Why it was found; first of all, what to know before asking it."""
    return "; ".join(filter(None, (*_marks(row), str(row.get("why", "")))))


def _marks(row: Mapping[str, Any]) -> list[str]:
    return marks(msgspec.convert(row, AgentRow), "aios-nb ")


def card(args: argparse.Namespace) -> None:
    async def work(client: SiteClient) -> Any:
        return await client.call("agents.card", agent=args.agent)

    answer = talk_to(args, work)
    if args.json:
        output.show_json(answer)
        return
    outside = answer.get("outside")
    signature = "signed by its node" if answer.get("verified") else "not verified"
    row = None if outside is None else msgspec.convert(outside, Import)
    signature = signature if row is None else row.vouched
    for line in card_lines(answer["card"], signature, output.Paint(sys.stdout)):
        print(line)
    for line in () if row is None else (row.place, *remarks(row)):
        print(f"  {line}")
