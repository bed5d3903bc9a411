"""The SDK is loaded for the first client, and the node goes on answering meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, sys, threading, urllib.request
from pathlib import Path
from aios_nb.config import Settings
from aios_nb.node import Node

node = Node(Settings(name="late", home=Path(sys.argv[1]))).start()
before = [name for name in ("mcp", "mcp_types", "pydantic", "starlette") if name in sys.modules]
meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
headers = {
    "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list",
}
owner = {"Authorization": "Bearer " + node.run_info.token}
answers = []

def first():
    request = urllib.request.Request(node.url + "/mcp", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        answers.append(json.load(answer))

asking = [threading.Thread(target=first) for _ in range(3)]
for thread in asking:
    thread.start()
meanwhile = 0
while not answers:
    request = urllib.request.Request(node.url + "/healthz", headers=owner)
    with urllib.request.urlopen(request) as answer:
        meanwhile += answer.status == 200 and not answers
for thread in asking:
    thread.join()
node.stop()
tools = [len(answer["result"]["tools"]) for answer in answers]
print(json.dumps({"before": before, "meanwhile": meanwhile, "tools": tools}))
"""


def test_the_node_answers_while_the_sdk_is_loaded(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "home")],
        capture_output=True, text=True, check=True, timeout=110,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["before"] == []
    assert told["tools"] == [6, 6, 6]
    assert told["meanwhile"] > 1
    assert done.stderr == ""
