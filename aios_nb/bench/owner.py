"""Calls over HTTP as the owner of a node that we started, one at a time."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from typing import Any

import msgspec

from aios_nb.bench.spec import Broken


def post(url: str, token: str, body: Any, within_s: float) -> Any:
    """What ``/rpc`` of the node at ``url`` answers to this body."""
    request = urllib.request.Request(  # noqa: S310 (our own child's address)
        f"{url}/rpc",
        msgspec.json.encode(body),
        {"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
    )
    with urllib.request.urlopen(request, timeout=within_s) as reply:  # noqa: S310
        return msgspec.json.decode(reply.read())


def ask(url: str, token: str, method: str, params: Mapping[str, Any], within_s: float) -> Any:
    """The result of one call. Raises ``Broken`` when it is an error."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = post(url, token, body, within_s)
    if "result" not in answer:
        raise Broken(f"{method} was answered with {answer['error']}")
    return answer["result"]
