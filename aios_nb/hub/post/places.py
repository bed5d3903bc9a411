"""Addresses as datagrams have them, compared with addresses as nodes sign them. No I/O."""

from __future__ import annotations

import ipaddress
import socket

from aios_nb.hub.post.datagram import Source

_MAPPED = "::ffff:"
"""How a socket for both kinds of address writes the older kind."""
_PREFIX_BYTES = 8
"""Of an IPv6 address: what one customer is given at least."""

Place = tuple[str, int]


def place_of(source: Source) -> Place:
    """Host and port in their one plain spelling."""
    host = str(source[0])
    if host.startswith(_MAPPED) and "." in host:
        host = host[len(_MAPPED) :]
    return host, source[1]


def signed_place(address: Place) -> Place | None:
    """The same for an address out of a presence, which its owner may have spelled otherwise.

    None for one with a zone (``%eth0``): the system would look such a name up, and block.
    """
    if "%" in address[0]:
        return None
    try:
        ip = ipaddress.ip_address(address[0])
    except ValueError:
        return None
    return str(getattr(ip, "ipv4_mapped", None) or ip), address[1]


def house(host: str) -> str | bytes:
    """What belongs to one owner, as far as an address tells: it, or the network of an IPv6 one."""
    if ":" not in host or host == "::1":
        return host
    try:
        return socket.inet_pton(socket.AF_INET6, host.partition("%")[0])[:_PREFIX_BYTES]
    except OSError:
        return host


def householder(place: Place) -> str | bytes | Place:
    """Who is to blame for what comes from there: a house; on this machine, one port of it."""
    host = place[0]
    return place if host.startswith("127.") or host == "::1" else house(host)
