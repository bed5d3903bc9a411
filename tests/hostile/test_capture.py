"""Everything that passes between three nodes, taken off the wire itself, tells nothing."""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
from pathlib import Path

import pytest

from tests.hostile.conftest import Start
from tests.hostile.nodes import until
from tests.hostile.test_between import address, settled, the

SECRET = "quetzalcoatl"
ETH_P_ALL = 3
ETHERNET_BYTES = 14

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can listen to the wire"
)


class Capture:
    """The TCP payloads on the loopback interface, by the pair of their ports."""

    def __init__(self) -> None:
        self.bytes: dict[frozenset[int], bytearray] = {}
        self._stop = threading.Event()
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 25)
        self._socket.bind(("lo", 0))
        self._socket.settimeout(0.1)
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while not self._stop.is_set():
            try:
                packet = self._socket.recv(1 << 17)
            except TimeoutError:
                continue
            self._take(packet[ETHERNET_BYTES:])

    def _take(self, ip: bytes) -> None:
        if len(ip) < 40 or ip[0] >> 4 != 4 or ip[9] != socket.IPPROTO_TCP:
            return
        tcp = ip[(ip[0] & 15) * 4 :]
        ports = frozenset(struct.unpack_from(">HH", tcp))
        self.bytes.setdefault(ports, bytearray()).extend(tcp[(tcp[12] >> 4) * 4 :])


def test_a_capture_of_three_nodes_and_a_kill_has_no_word_of_it(
    start: Start, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    b = start("--name", "b", home=tmp_path / "b", TRACE_FILE=str(trace))
    c = start("--name", "c", home=tmp_path / "c")
    capture = Capture()
    try:
        a = start("--name", "a", "--join", address(b), "--join", address(c), home=tmp_path / "a")
        talk = a.call("chat.open", agents=[the(b, "slow"), the(c, "counter")])["conversation"]
        asked = set()
        for number in range(6):
            text = f"@slow @counter {SECRET} {number}"
            posted = a.answer(
                "chat.post", conversation=talk, text=text, message_id=f"m{number}", deadline_s=120
            )
            assert "result" in posted, posted
            asked.add(f"m{number}")
            if number == 2:
                until(lambda: trace.exists() and SECRET in trace.read_text(), "b is at work")
                b.kill()
                b = start("--name", "b", "--port", str(b.port), home=tmp_path / "b")
        rows = settled(a, talk, asked)
    finally:
        capture.close()
    assert sum(SECRET in row["text"] for row in rows) > len(asked)
    hosts = {b.port, c.port}  # other programs of this machine may talk meanwhile
    between = {ports: data for ports, data in capture.bytes.items() if ports & hosts}
    assert hosts <= frozenset().union(*between)
    assert sum(map(len, between.values())) > 5000
    for data in between.values():
        for word in (SECRET, "counted", "slow", "aios.message", a.said["node_id"]):
            assert word.encode() not in data
    # The same words do pass, in the clear, between a and its own owner: the capture works.
    own = b"".join(bytes(data) for ports, data in capture.bytes.items() if a.port in ports)
    assert SECRET.encode() in own
