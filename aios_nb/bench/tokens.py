"""The texts that travel in a benchmark: what is sent, and what must come back."""

from __future__ import annotations

TASK_BYTES = 200
CHUNK_BYTES = 25
EVENT_BYTES = 25
AGENT_PATH = "/agents/bench_echo/"
"""Where an A2A client finds the agent that echoes."""

_SENTENCE = (
    b" adds the numbers that a person wrote in a plain sentence, says what the sum is and keeps"
    b" the unit they were written in, so that the answer can be read aloud at once and trusted"
)
TASK = b"%012d" + _SENTENCE[: TASK_BYTES - 12].ljust(TASK_BYTES - 12, b".")
"""``TASK % serial`` is a 200-byte sentence that no other call of the run sends."""


def chunk(salt: str, number: int) -> str:
    """One streamed token of 25 characters that names its stream and its place in it."""
    return f"{salt:.>12} {number:.>11} "


def event(salt: str, number: int) -> bytes:
    """One raw SSE event, 25 bytes with its framing."""
    return f"data: {salt:.>10}{number:.>7}\n\n".encode()
