"""Which user of this machine is at the other end of a loopback connection.

Linux tells it: one socket at a time by netlink (20 µs), or as the tables ``/proc/net/tcp`` and
``tcp6``. The tables list every connection of the machine, the finished ones too (2.6 ms with 1,700
rows): anyone could keep the node busy with them. So netlink is tried out once, and where it works
the tables are never read. Elsewhere the user is unknown and the rule built on it is not applied:
there, the token alone decides.

Only an equal uid counts as the owner's. Root is another user too: it could read the token anyway,
but a node never takes a stranger's process for its owner's by accident.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import socket
import struct
import sys
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_UID_COLUMN, _INODE_COLUMN = 7, 9
_ESTABLISHED = 1

# linux/sock_diag.h, linux/inet_diag.h
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI")
_SOCKET_ID = struct.Struct("!HH16s16s")
_NO_COOKIE = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_ANSWER = struct.Struct("=BBBB48sIIIII")
_ANSWER_BYTES = 4096
_ANSWER_WAIT_S = 1.0

Address = tuple[str, int]


def is_told() -> bool:
    """Whether this system says whose a connection is."""
    return sys.platform == "linux" and os.access(_TABLES[0], os.R_OK)


def uid_of(peer: Address, local: Address) -> int | None:
    """The user whose process holds the ``peer`` end; None when there is no such process.

    Ask at accept. A socket that its process has closed shows uid 0 and no inode: it counts as
    nobody's, and so does one that is not established.
    """
    there, here = [(_plain(host), port) for host, port in (peer, local)]
    if not _netlink_works():
        return _by_tables(there, here)
    try:
        return _by_netlink(there, here)
    except OSError:
        return None


@functools.cache
def _netlink_works() -> bool:
    """Whether the kernel answers for a connection that is there: one of our own."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address) as client, server.accept()[0]:
            try:
                ends = [(_plain(host), port) for host, port in (client.getsockname(), address)]
                return _by_netlink(*ends) == os.geteuid()
            except OSError:
                return False


Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


def _plain(host: str) -> Ip:
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


def _by_netlink(peer: tuple[Ip, int], local: tuple[Ip, int]) -> int | None:
    family = socket.AF_INET if peer[0].version == 4 else socket.AF_INET6  # noqa: PLR2004
    ids = _SOCKET_ID.pack(peer[1], local[1], peer[0].packed, local[0].packed) + _NO_COOKIE
    asked = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, 1 << _ESTABLISHED) + ids
    head = _HEADER.pack(_HEADER.size + len(asked), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_ANSWER_WAIT_S)
        kernel.send(head + asked)
        answer = kernel.recv(_ANSWER_BYTES)
    if _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    _, state, _, _, _, _, _, _, uid, inode = _ANSWER.unpack_from(answer, _HEADER.size)
    return int(uid) if state == _ESTABLISHED and inode else None


def _by_tables(peer: tuple[Ip, int], local: tuple[Ip, int]) -> int | None:
    """The row's local address is our peer, its remote one is us."""
    for table, key in zip(_TABLES, _row_keys(peer, local), strict=True):
        try:
            rows = table.read_bytes()
        except OSError:
            continue
        at = rows.find(key) if key else -1
        if at < 0:
            continue
        row = rows[rows.rfind(b"\n", 0, at) + 1 : rows.find(b"\n", at)].split()
        return int(row[_UID_COLUMN]) if row[_INODE_COLUMN] != b"0" else None
    return None


def _row_keys(peer: tuple[Ip, int], local: tuple[Ip, int]) -> tuple[bytes, bytes]:
    """What the row says in each table; a v4 connection of a v6 socket is in the second, mapped."""
    narrow = [_hex(ip.packed, port) for ip, port in (peer, local)]
    if peer[0].version == 6:  # noqa: PLR2004
        return b"", _row(narrow)
    wide = [_hex(bytes(10) + b"\xff\xff" + ip.packed, port) for ip, port in (peer, local)]
    return _row(narrow), _row(wide)


def _row(ends: list[bytes]) -> bytes:
    return b" %b %02X " % (b" ".join(ends), _ESTABLISHED)


def _hex(packed: bytes, port: int) -> bytes:
    """An address as the kernel prints it: 32-bit words in the machine's own byte order."""
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return b"%b:%04X" % (b"".join(b"%08X" % word for word in words), port)
