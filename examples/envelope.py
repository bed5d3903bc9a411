"""Ask an agent in the words of the paper, from any program: Python's standard library is enough.

    aios-nb up --port 8765
    export AIOS_TOKEN="$(aios-nb token create --prefix example: --as owner)"
    python examples/envelope.py http://127.0.0.1:8765 calc "6 * 7" "2 ** 10"

Each text is one message; all of them are one conversation. The token may only chat. Leave out
``--as owner`` and it reaches the agents that other nodes may call, not the private ones.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from datetime import UTC, datetime
from typing import Any
from urllib.request import Request, urlopen


def message(agent: str, task: str, conversation: str | None) -> dict[str, Any]:
    """The envelope of *Planet as a Brain* (arXiv 2504.14411), with a task for an agent."""
    return {
        "protocol_version": "1.0",
        "message_id": f"m-{uuid.uuid4().hex}",  # sent again, it is not done again
        "conversation_id": conversation,
        "timestamp": datetime.now(UTC).isoformat(),
        "sender": {"id": "example", "type": "human"},
        "recipient": {"id": agent, "type": "agent"},
        "message_type": "request",
        "content": {"task": task},
        "routing": {"deadline_ms": 60_000},
    }


def call(url: str, token: str, envelope: dict[str, Any]) -> dict[str, Any]:
    """The response envelope. A failure is an error of JSON-RPC, with a hint where there is one."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "aios.message", "params": {"envelope": envelope}}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = Request(f"{url.rstrip('/')}/rpc", json.dumps(asked).encode(), headers)
    with urlopen(request) as answer:
        said: dict[str, Any] = json.load(answer)
    if "error" in said:
        hint = said["error"].get("data", {}).get("hint")
        sys.exit(f"{said['error']['message']}{f' ({hint})' if hint else ''}")
    response: dict[str, Any] = said["result"]
    return response


def main(url: str, agent: str, *tasks: str) -> None:
    """Say each task, and print what comes back."""
    conversation = None
    for task in tasks:
        response = call(url, os.environ["AIOS_TOKEN"], message(agent, task, conversation))
        conversation = response["conversation_id"]
        print(f"{response['sender']['id']}: {response['content']['result']}")
        print(f"  status {response['content']['status']}, way {response['routing']['path']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
