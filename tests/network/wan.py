"""Some hosts with a long, lossy wire between them: network namespaces, joined by a program.

Each host has a TUN device; this program carries the packets from one to another, late, and loses
some. (The kernel's own way, netem, is often not there.) Needs root. As a program it is the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import random
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

TUNSETIFF = 0x400454CA
IFF_TUN_NO_PI = 0x1001
PREFIX = "10.77.0"
MTU = 1400


def why_not() -> str | None:
    """What is missing for such a network; None if nothing is."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need root on Linux"
    if not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun"
    probe = f"aios-probe{os.getpid()}"  # another worker may look at the same time
    try:
        ip("netns", "add", probe)
    except (OSError, subprocess.CalledProcessError) as problem:
        return f"no network namespaces: {problem}"
    ip("netns", "del", probe)
    return None


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def host(number: int) -> str:
    return f"{PREFIX}.{number + 1}"


class Wan:
    """So many hosts and the wire between them."""

    def __init__(self, hosts: int, delay_s: float, loss: float) -> None:
        """``delay_s`` is one way."""
        self._tag = f"aios{os.getpid()}"
        self._namespaces = [f"{self._tag}-{n}" for n in range(hosts)]
        for name in self._namespaces:
            ip("netns", "add", name)
        self._wire = subprocess.Popen(
            [sys.executable, __file__, *self._namespaces, str(delay_s), str(loss)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._told("")

    def inside(self, number: int) -> list[str]:
        """What to put before a command so that it runs on that host."""
        return ["ip", "netns", "exec", self._namespaces[number]]

    def cut(self, number: int) -> None:
        self._told(f"cut {number}\n")

    def heal(self, number: int) -> None:
        self._told(f"heal {number}\n")

    def carried(self) -> dict[str, int]:
        """Packets that went through, and that were lost on the way."""
        return json.loads(self._told("count\n"))

    def close(self) -> None:
        self._wire.terminate()
        self._wire.communicate()
        for name in self._namespaces:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)

    def _told(self, line: str) -> str:
        assert self._wire.stdin is not None
        assert self._wire.stdout is not None
        self._wire.stdin.write(line.encode())
        self._wire.stdin.flush()
        said = self._wire.stdout.readline()
        assert said, "the wire broke"
        return said.decode()


@contextlib.contextmanager
def wan(hosts: int, delay_s: float, loss: float) -> Iterator[Wan]:
    made = Wan(hosts, delay_s, loss)
    try:
        yield made
    finally:
        made.close()


# The wire ------------------------------------------------------------------------------


class Wire:
    """Carries packets between the devices of some namespaces."""

    def __init__(self, namespaces: Sequence[str], delay_s: float, loss: float) -> None:
        self._delay_s = delay_s
        self._loss = loss
        self._chance = random.Random(7)
        self._ends = {
            bytes(map(int, host(n).split("."))): _device(name, n)
            for n, name in enumerate(namespaces)
        }
        self._cut: set[bytes] = set()
        self.carried = self.lost = 0

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for fd in self._ends.values():
            os.set_blocking(fd, False)
            loop.add_reader(fd, self._read, loop, fd)
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        self._say("ready")
        while line := (await reader.readline()).decode().split():
            if line[0] == "count":
                self._say(json.dumps({"carried": self.carried, "lost": self.lost}))
                continue
            end = bytes(map(int, host(int(line[1])).split(".")))
            (self._cut.add if line[0] == "cut" else self._cut.discard)(end)
            self._say("done")

    def _read(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = os.read(fd, 65536)
                source, target = packet[12:16], packet[16:20]
                end = self._ends.get(target)
                if end is None or packet[0] >> 4 != 4:
                    continue
                if {source, target} & self._cut or self._chance.random() < self._loss:
                    self.lost += 1
                    continue
                self.carried += 1
                loop.call_later(self._delay_s, os.write, end, packet)

    @staticmethod
    def _say(words: str) -> None:
        sys.stdout.write(f"{words}\n")
        sys.stdout.flush()


def _device(namespace: str, number: int) -> int:
    """The other end of a network device that is up inside that namespace."""
    name = f"aios{number}"
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN_NO_PI))
    ip("link", "set", name, "netns", namespace)
    inside = ("-n", namespace)
    ip(*inside, "link", "set", "lo", "up")
    ip(*inside, "addr", "add", f"{host(number)}/24", "dev", name)
    ip(*inside, "link", "set", name, "mtu", str(MTU), "up")
    return fd


if __name__ == "__main__":
    *names, delay, share = sys.argv[1:]
    asyncio.run(Wire(names, float(delay), float(share)).run())
