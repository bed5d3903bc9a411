"""``%aios``: how the notebook's node is."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

from aios_nb.errors import AiosError
from aios_nb.notebook.commands import Call
from aios_nb.notebook.hosted import reach
from aios_nb.notebook.show.results import Status
from aios_nb.notebook.welcome import renamed
from aios_nb.people.checks.nodes import problem_of
from aios_nb.people.layout import seconds, size
from aios_nb.people.naming import is_built_in

if TYPE_CHECKING:
    from aios_nb.config import Limits
    from aios_nb.node import Node

_STATES = {
    "starting": "is starting",
    "down": "is not running; %aios up starts it",
    "failed": "could not start",
}


def status(call: Call) -> Status:
    """What there is to know, also while there is no node."""
    if call.session.state == "starting":
        with contextlib.suppress(AiosError):  # said below
            call.node()
    node: Any = call.session.site()
    if node is None:
        state = call.session.state
        rows = [("problem", call.session.problem())] if state == "failed" else []
        hint = [("fix", "%aios up tries again; %aios doctor looks for the cause")] if rows else []
        return Status("The node", _STATES.get(state, state), state, [*rows, *hint])
    return _of(node, call)


def _of(node: Node, call: Call) -> Status:
    began = time.perf_counter()
    node.run(lambda: asyncio.sleep(0))
    lag_ms = (time.perf_counter() - began) * 1000
    info, peers, callers, agents = node.run(lambda: _asked(node), "looking for other nodes")
    settings = node.settings
    rows = [
        ("address", info["url"]),
        ("reach", reach(settings)),
        ("peers", _peers(peers)),
        ("agents", _agents(agents, info)),
        ("callers", _callers(callers, node.node_id)),
        ("limits", _limits(node.settings.limits)),
        ("loop", f"answers this cell in {lag_ms:.1f} ms"),
        ("asyncio", _asyncio(call)),
    ]
    rows += [
        ("problem", f"no link to {row['url']}: {problem_of(row)}; it is tried again")
        for row in peers["waiting"]
        if row["node_id"] not in {peer["node_id"] for peer in peers["peers"]}
    ]
    if renamed(call.session):
        rows.append(("renamed", renamed(call.session)))
    if info.get("superseded"):
        said = "another process uses this node's key; this one publishes no more"
        rows.append(("problem", said))
    network = "" if settings.network == "main" else f" · network {settings.network}"
    about = f"{node.node_id} · up for {seconds(info['uptime_s'])}{network}"
    return Status(f"node {node.name}", about, "up", rows)


def _limits(limits: Limits) -> str:
    return (
        f"files to {size(limits.file_bytes)}; strangers: {limits.stranger_runs} runs at once,"
        f" {limits.stranger_calls_per_s:.0f} calls a second,"
        f" {size(limits.stranger_log_bytes)} kept for {limits.stranger_log_days:.0f} days"
    )


async def _asked(node: Node) -> tuple[dict[str, Any], ...]:
    peers = await node.client.call("node.peers")  # waits for whoever was there at the start
    methods = ("node.info", "node.callers", "agents.list")
    info, *more = await asyncio.gather(*map(node.client.call, methods))
    return info, peers, *more


def _peers(told: dict[str, Any]) -> str:
    peers = told["peers"]
    if not peers:
        return "no other node yet; %aios up --join URL links to one"
    alive = sum(peer["state"] == "alive" for peer in peers)
    away = len(peers) - alive
    return f"{alive} alive" + (f", {away} not answering or gone" if away else "")


def _agents(told: dict[str, Any], info: dict[str, Any]) -> str:
    rows = told["agents"]
    own = [row["name"] for row in rows if not is_built_in(row, info["node_id"])]
    mine = f"yours: {', '.join(own)}" if own else "none of yours yet"
    return f"{mine}; {len(rows) - len(own)} built in; {info['known_agents']} of others"


def _callers(told: dict[str, Any], own: str) -> str:
    """Who else; the owner's own calls are no news to the owner."""
    rows = [row for row in told["callers"] if row["id"] != f"owner@{own}"]
    calls = sum(row["calls"] for row in rows)
    blocked = sum(row["blocked"] for row in rows)
    said = f"{calls} call{'s' * (calls != 1)} by {len(rows)} other{'s' * (len(rows) != 1)}"
    return (said if rows else "nobody else yet") + (f", {blocked} blocked" if blocked else "")


def _asyncio(call: Call) -> str:
    if call.session.patched:
        return "patched by nest-asyncio, for a kernel agent that a cell waited for"
    return "as it is (nest-asyncio not applied)"
