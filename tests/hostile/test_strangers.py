"""Another user of the machine: refused everywhere that matters, even with the right token."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import noise
from tests.hostile.nodes import WAIT_S

NOBODY = 65_534
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can become another user"
)

PROGRAM = """
import json, socket, sys
job = json.load(sys.stdin)
answers = []
for request in job["requests"]:
    with socket.create_connection(("127.0.0.1", job["port"]), timeout=30) as connection:
        connection.sendall(bytes.fromhex(request))
        got = b""
        while piece := connection.recv(65536):
            got += piece
    answers.append(got.decode("latin-1"))
readable = []
for path in job["paths"]:
    try:
        open(path, "rb").close()
        readable.append(path)
    except OSError:
        pass
print(json.dumps({"answers": answers, "readable": readable}))
"""


def as_nobody(port: int, requests: list[bytes], paths: list[Path]) -> tuple[list[str], list[str]]:
    """What a program of another user gets for these bytes, and which files it could open."""
    job = {"port": port, "requests": [r.hex() for r in requests], "paths": [str(p) for p in paths]}
    for python in (os.path.realpath(sys.executable), "/usr/bin/python3", "/usr/local/bin/python3"):
        # The plain interpreter: the environment of the tests may be closed to others.
        try:
            done = subprocess.run(
                [python, "-I", "-S", "-c", PROGRAM],
                input=json.dumps(job),
                capture_output=True,
                text=True,
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                cwd="/",
                timeout=WAIT_S,
                check=False,
            )
        except OSError:
            continue
        if done.returncode == 0:
            said = json.loads(done.stdout)
            return said["answers"], said["readable"]
    pytest.skip("another user cannot run Python here")


def test_another_user_is_refused_even_with_the_token(start):
    node = start()
    content = b"for the owner"
    name = hashlib.sha256(content).hexdigest()
    auth = f"Bearer {node.token}"
    assert node.request("PUT", f"/blobs/{name}", content, Authorization=auth)[0] == 200
    assert node.request("GET", f"/blobs/{name}", Authorization=auth) == (200, content)

    made = noise.Requests(node.port, node.token)
    close = b"Connection: close\r\n"
    ask = noise.call("chat.send", {"agent": "echo", "text": "boo", "message_id": "theirs"})
    blob = f"/blobs/{name}".encode()
    token = noise.frame(json.dumps({"token": node.token}).encode())
    talk = noise.frame(noise.NONCE) + token + noise.frame(ask)
    refused = [
        made.post(ask, close),
        made.post(ask, close, token=False),
        made.post(ask, close + b"Accept: text/event-stream\r\n"),
        made.head(b"GET", blob, close),
        made.head(b"HEAD", blob, close),
        made.head(b"PUT", blob, close + b"Content-Length: %d\r\n" % len(content)) + content,
        made.upgrade(token=True) + noise.frame(ask),
        made.upgrade(token=False) + talk,
    ]
    open_to_all = [
        made.head(b"GET", b"/healthz", close, token=False),
        made.head(b"GET", b"/.well-known/aios.json", close, token=False),
    ]
    secrets = [node.run_path, node.home / "keys" / "node.key", node.db_path, node.home]
    secrets += [Path(f"{node.db_path}-wal"), node.home / "blobs" / "node" / name]
    assert all(path.exists() for path in secrets)

    answers, readable = as_nobody(node.port, refused + open_to_all, secrets)
    statuses = [answer[9:12] for answer in answers]
    assert set(statuses[: len(refused)]) <= {"401", "403"}, statuses
    assert statuses[len(refused) :] == ["200", "200"]
    assert not [answer for answer in answers if "principal" in answer or "public_key" in answer]
    assert not [answer for answer in answers if content.decode() in answer]
    assert readable == []
    # None of it was taken, and the owner is not kept out by it.
    assert node.answer("chat.cancel", message_id="theirs")["error"]["code"] == -32602
    assert node.call("chat.send", agent="echo", text="mine")["text"] == "mine"
