"""Whether programs of others find what they expect: each protocol tried on the live node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from aios_nb.errors import AiosError
from aios_nb.home import RunInfo
from aios_nb.people.checks import Check, Health
from aios_nb.people.checks.visit import AGENT, WAIT_S, Answer, Visit, visiting
from aios_nb.richtext import one_line

MODERN, LEGACY = "2026-07-28", "2025-11-25"
PART = "interop"
BUILT_IN = ("clock", "calc", "concierge")
_META = "io.modelcontextprotocol"
_CLIENT = {"name": "aios-nb doctor", "version": "1"}
_MODERN = {
    f"{_META}/protocolVersion": MODERN,
    f"{_META}/clientCapabilities": {},
    f"{_META}/clientInfo": _CLIENT,
}
_SEE = "see its log (in a notebook: %aios log), then start the node again"
_SHUT = "nobody but you should get in: stop the node, and report this"


class Wrong(Exception):
    """What is not as it should be, in a line, and what to do."""

    def __init__(self, says: str, fix: str = _SEE, health: Health = Health.FAIL) -> None:
        super().__init__(says)
        self.says = says
        self.fix = fix
        self.health = health


Look = Callable[[Visit], Awaitable[str]]


async def interop(run: RunInfo) -> list[Check]:
    """Every check of one node, all at once. It keeps no conversation of them."""
    try:
        async with visiting(run) as visit:
            return list(await asyncio.gather(*(_tried(*one, visit) for one in LOOKS)))
    except AiosError as error:
        return [Check(PART, Health.FAIL, f"{run.name}: {error.message}", _SEE, PART)]


async def _tried(about: str, look: Look, visit: Visit) -> Check:
    try:
        return Check(about, Health.OK, await look(visit), "", PART)
    except Wrong as wrong:
        return Check(about, wrong.health, one_line(wrong.says, 300), wrong.fix, PART)
    except AiosError as error:
        return Check(about, Health.FAIL, error.message, error.hint or _SEE, PART)
    except TimeoutError:
        return Check(about, Health.FAIL, f"no answer within {WAIT_S:g} s", _SEE, PART)
    except (aiohttp.ClientError, OSError, KeyError, TypeError, IndexError, ValueError) as error:
        said = f"the answer makes no sense: {type(error).__name__}"
        return Check(about, Health.FAIL, said, _SEE, PART)


# MCP -------------------------------------------------------------------------------------


async def modern(visit: Visit) -> str:
    """A client that begins without a start."""

    async def ask(method: str, **params: Any) -> dict[str, Any]:
        headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": method}
        if "name" in params:
            headers["Mcp_Name"] = params["name"]
        asked = _request(method, {**params, "_meta": _MODERN})
        return _result(await visit.post("/mcp", asked, **headers))

    return await _tools(visit, ask)


async def legacy(visit: Visit) -> str:
    """A client that opens a session, and closes it."""
    start = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}
    opened = await visit.post("/mcp", _request("initialize", start))
    agreed = _result(opened)["protocolVersion"]
    if agreed != LEGACY:
        raise Wrong(f"asked for {LEGACY}, it speaks {agreed}")
    session = {"MCP_Protocol_Version": LEGACY, "Mcp_Session_Id": opened.headers["Mcp-Session-Id"]}
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await visit.post("/mcp", notice, **session)

    async def ask(method: str, **params: Any) -> dict[str, Any]:
        return _result(await visit.post("/mcp", _request(method, params), **session))

    try:
        return await _tools(visit, ask)
    finally:
        await visit.send("DELETE", "/mcp", None, token="", **session)


async def _tools(visit: Visit, ask: Callable[..., Awaitable[dict[str, Any]]]) -> str:
    tools = [tool["name"] for tool in (await ask("tools/list"))["tools"]]
    if "agent_send" not in tools:
        raise Wrong("the tool agent_send is not listed")
    began = time.perf_counter()
    arguments = {"agent": AGENT, "text": visit.word}
    said = await ask("tools/call", name="agent_send", arguments=arguments)
    took_ms = (time.perf_counter() - began) * 1000
    if said.get("isError") or visit.word not in str(said.get("content")):
        raise Wrong(f"{AGENT} did not answer: {str(said.get('content'))[:120]}")
    return f"{len(tools)} tools; {AGENT} answered in {took_ms:.0f} ms"


# A2A -------------------------------------------------------------------------------------


async def card(visit: Visit) -> str:
    """The card of an agent and that of the node, signed by the key that is the node's id."""
    from aios_nb.identity import node_id_of
    from aios_nb.wire.a2a.jws import key_of
    from aios_nb.wire.outside.cards import read_card
    from aios_nb.wire.outside.signatures import check
    from aios_nb.wire.places import Place

    async def nowhere(_: str) -> Any:
        raise Wrong("the key of a card is not in it")

    paths = (
        (f"/agents/{AGENT}/.well-known/agent-card.json", ""),
        ("/.well-known/agent-card.json", None),
    )
    for path, token in paths:
        found = await visit.get(path, token=token)
        if found.status != 200:  # noqa: PLR2004
            raise Wrong(f"no card at {path}: HTTP {found.status}")
        url = f"{visit.run.url.rstrip('/')}{path}"
        signature = await check(read_card(found.body, url), Place.parse(url), nowhere)
        if signature.state != "valid":
            raise Wrong(f"the card at {path} is not signed")
        if node_id_of(key_of(signature.key)) != visit.run.node_id:
            raise Wrong(f"the card at {path} is signed by another key than the node's")
    return "the cards of agent and node are signed by the node's key"


async def task(visit: Visit) -> str:
    """A message to an agent, and the task that comes of it."""
    parts = [{"text": visit.word}]
    message = {"messageId": f"{visit.word}-a2a", "role": "ROLE_USER", "parts": parts}
    said = _result(
        await visit.post(
            f"/agents/{AGENT}/", _request("SendMessage", {"message": message}), A2A_Version="1.0"
        )
    )
    state = said.get("task", {}).get("status", {}).get("state", "TASK_STATE_COMPLETED")
    if state != "TASK_STATE_COMPLETED" or visit.word not in str(said):
        raise Wrong(f"{AGENT} did not answer: {state}")
    return f"{AGENT} answered a message, its task is completed"


# Our own ---------------------------------------------------------------------------------


async def envelope(visit: Visit) -> str:
    """The paper's message in, its response out."""
    asked = {
        "sender": {"id": "doctor", "type": "human"},
        "recipient": {"id": AGENT, "type": "agent"},
        "message_type": "request",
        "content": {"task": visit.word},
    }
    said = _result(await visit.post("/rpc", _request("aios.message", {"envelope": asked})))
    if said["content"]["status"] != "success" or said["content"]["result"] != visit.word:
        raise Wrong(f"{AGENT} did not answer: {str(said['content'])[:120]}")
    return f"{AGENT} answered the paper's message"


async def json_rpc(visit: Visit) -> str:
    """What any JSON-RPC 2.0 server must do, in a few rows."""
    info = {"jsonrpc": "2.0", "method": "node.info"}
    rows: tuple[tuple[str, Any, Any], ...] = (
        ("an id of text", {**info, "id": ""}, ("", 0)),
        ("an id of 0", {**info, "id": 0}, (0, 0)),
        ("an unknown method", {**info, "method": "no.such", "id": 1}, (1, -32601)),
        ("params that are no object", {**info, "params": 1, "id": 2}, (2, -32602)),
        ("a wrong version", {**info, "jsonrpc": "1.0", "id": 3}, (3, -32600)),
        ("an id of true", {**info, "id": True}, (None, -32600)),
        ("bad JSON", b'{"jsonrpc": "2.0", ', (None, -32700)),
        ("bad UTF-8", b'{"jsonrpc": "\xff"}', (None, -32700)),
        ("a number", b"1", (None, -32600)),
        ("an empty batch", b"[]", (None, -32600)),
    )
    for name, sent, expected in rows:
        said = (await visit.post("/rpc", sent)).json()
        if (said.get("id"), said.get("error", {}).get("code", 0)) != expected:
            raise Wrong(f"{name} is answered wrongly: {str(said)[:120]}")
    quiet = await visit.post("/rpc", {**info, "method": "no.such"})
    if quiet.body:
        raise Wrong("a notification is answered")
    return f"{len(rows) + 1} rows of the specification"


async def catalogs(visit: Visit) -> str:
    """What crawlers read."""
    counts = []
    for path in ("/.well-known/ard.json", "/.well-known/ai-catalog.json"):
        found = await visit.get(path, token=None)
        if found.status != 200:  # noqa: PLR2004
            raise Wrong(f"no catalog at {path}: HTTP {found.status}")
        said = found.json()
        if said.get("specVersion") != "1.0" or not said["host"]["displayName"]:
            raise Wrong(f"{path} does not say what it is")
        for entry in said["entries"]:
            _check_entry(path, entry)
        counts.append(len(said["entries"]))
    asked = {"query": {"text": "echo"}, "pageSize": 5}
    found = await visit.post("/api/search", asked, token=None)
    if not isinstance(found.json().get("results"), list):
        raise Wrong(f"the registry does not answer a search: HTTP {found.status}")
    return f"{counts[0]} entr{'y' if counts[0] == 1 else 'ies'}, and a search"


def _check_entry(path: str, entry: Any) -> None:
    name = str(entry.get("identifier"))
    if not name.startswith("urn:air:") or not entry["displayName"] or not entry["type"]:
        raise Wrong(f"an entry of {path} has no good name: {name[:80]}")
    if ("url" in entry) == ("data" in entry):
        raise Wrong(f"{name[:80]} needs one of url and data")
    if not 2 <= len(entry["representativeQueries"]) <= 5:  # noqa: PLR2004
        raise Wrong(f"{name[:80]} has not two to five example queries")


# Who must stay outside -------------------------------------------------------------------


async def strangers(visit: Visit) -> str:
    """Without a token, and with a wrong one, a private agent is not there."""
    rows = (await visit.client.call("agents.list"))["agents"]
    private = [row["name"] for row in rows if row["access"] == "private"]
    agent = next((name for name in (AGENT, *BUILT_IN) if name in private), None)
    if agent is None:
        return "nobody here is private"
    message = {"messageId": visit.word, "role": "ROLE_USER", "parts": [{"text": visit.word}]}
    a2a = _request("SendMessage", {"message": message})
    rpc = _request("chat.send", {"agent": agent, "text": visit.word})
    tool = {"name": "agent_send", "arguments": {"agent": agent, "text": visit.word}}
    mcp = _request("tools/call", {**tool, "_meta": _MODERN})
    said = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "tools/call", "Mcp_Name": "agent_send"}
    wrong = f"not-{visit.word}"
    attempts: tuple[tuple[str, Answer], ...] = (
        ("JSON-RPC", await visit.post("/rpc", rpc, token=None)),
        ("JSON-RPC with a wrong token", await visit.post("/rpc", rpc, token=wrong)),
        ("A2A", await visit.post(f"/agents/{agent}/", a2a, token=None, A2A_Version="1.0")),
        ("A2A with a wrong token", await visit.post(f"/agents/{agent}/", a2a, token=wrong)),
        ("its card", await visit.get(f"/agents/{agent}/.well-known/agent-card.json", token=None)),
        ("MCP", await visit.post("/mcp", mcp, token=None, **said)),
        ("MCP with a wrong token", await visit.post("/mcp", mcp, token=wrong, **said)),
        ("files", await visit.get(f"/blobs/{'0' * 64}", token=None)),
    )
    for name, answer in attempts:
        if not _is_refused(answer):
            raise Wrong(f"a stranger gets in by {name}", _SHUT)
    return f"{len(attempts)} ways to a private agent, all shut"


def _is_refused(answer: Answer) -> bool:
    said = answer.json()
    return (
        answer.status != 200  # noqa: PLR2004
        or "error" in said
        or said.get("result", {}).get("isError") is True
    )


async def pages(visit: Visit) -> str:
    """A request under another name, or from a page of another origin, is refused everywhere."""
    paths = ("/rpc", "/mcp", f"/agents/{AGENT}/", "/healthz", "/.well-known/agent-card.json")
    tried = ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"})
    for path in paths:
        for headers in tried:
            answer = await visit.send("POST" if path == "/rpc" else "GET", path, None, token="",
                                      **headers)  # fmt: skip
            if answer.status not in {403, 421}:
                ((name, value),) = headers.items()
                raise Wrong(f"{path} answers {name}: {value} with HTTP {answer.status}", _SHUT)
    return f"other names and other origins are refused on {len(paths)} routes"


async def imports(visit: Visit) -> str:
    """Programs of others that were brought in: there, and as they were approved."""
    rows = (await visit.client.call("hub.list"))["imports"]
    changed = [str(row["name"]) for row in rows if row["changed"]]
    if changed:
        raise Wrong(
            f"changed since you approved them, and held back: {', '.join(changed)}",
            f"look at it, then: aios-nb hub approve {changed[0]}",
            Health.WARN,
        )
    away = [f"{row['name']} ({row['note']})" for row in rows if not row["live"]]
    if away:
        raise Wrong(f"not answering: {', '.join(away)}", "start them, or aios-nb hub remove NAME",
                    Health.WARN)  # fmt: skip
    if not rows:
        return "none was brought in"
    return f"{len(rows)} of them answer{'s' if len(rows) == 1 else ''}, unchanged"


LOOKS: tuple[tuple[str, Look], ...] = (
    ("mcp 2026-07", modern),
    ("mcp 2025-11", legacy),
    ("a2a cards", card),
    ("a2a", task),
    ("catalogs", catalogs),
    ("json-rpc", json_rpc),
    ("envelope", envelope),
    ("strangers", strangers),
    ("web pages", pages),
    ("imports", imports),
)
"""What is tried, under the word it is told by."""


def _request(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _result(answer: Answer) -> dict[str, Any]:
    said = answer.json()
    if isinstance(said.get("result"), dict):
        result: dict[str, Any] = said["result"]
        return result
    error = said.get("error")
    text = error.get("message") if isinstance(error, dict) else error
    raise Wrong(f"refused with HTTP {answer.status}: {text or 'no reason given'}")
