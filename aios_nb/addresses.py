"""Which addresses that a node tells of itself may be dialled from here. No I/O.

A record is signed by the node it is about, which may be anyone: it must not make us knock on doors
inside our own machine or network that its author could not reach.
"""

from __future__ import annotations

import ipaddress
import re

from aios_nb.records import NodeRecord, Scope, may_be_told

URLS_MAX = 4
"""Of one record."""
_HOST_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_KINDS = frozenset({"http", "https"})
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
    )
)
"""Where clouds tell a machine its secrets; the others are link-local."""
_SHARED = ipaddress.ip_network("100.64.0.0/10")
"""Behind a provider's NAT, and what overlay networks such as Tailscale give their machines: it
reaches as far as a private address does, but the registries call it neither private nor global."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""An IPv4 address as a resolver of an IPv6-only network writes it."""
_NEVER = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "::/96",  # an IPv4 address behind zeros
            "::ffff:0:0:0/96",  # the same, translated
            "64:ff9b:1::/48",  # NAT64 inside one network
            "2001::/32",  # Teredo
            "2002::/16",  # 6to4
            "fec0::/10",  # site-local, of old
        ),
    )
)
"""Out of use, but a system may still send them to the IPv4 or private address that they hide."""


def scope_of(address: str) -> Scope | None:
    """From where an IP address can be reached; None for one that is never to be dialled."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if ip in _NAT64:
        inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        return Scope.GLOBAL if inner.is_global and inner not in _METADATA else None
    if ip.is_loopback:
        return Scope.LOOPBACK
    odd = ip.is_link_local or ip.is_multicast or ip.is_unspecified or ip in _METADATA
    if odd or any(ip in network for network in _NEVER):
        return None
    if ip.is_global:
        return Scope.GLOBAL
    return Scope.PRIVATE if ip in _SHARED or (ip.is_private and not ip.is_reserved) else None


def urls_of(record: NodeRecord, over: Scope | None) -> tuple[str, ...]:
    """The URLs to dial, if the record came over a link to an address of the scope ``over``."""
    if over is None or not may_be_told(record.scope, over):
        return ()
    found = (
        _url(endpoint.kind, endpoint.host, endpoint.port, record.scope)
        for endpoint in record.endpoints
    )
    return tuple(url for url in found if url)[:URLS_MAX]


def _url(kind: str, host: str, port: int, scope: Scope) -> str | None:
    if kind not in _KINDS:
        return None
    if host == "localhost" and scope is Scope.LOOPBACK:
        host = "127.0.0.1"
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        # A name: what it stands for is looked at when it is dialled.
        named = scope is not Scope.LOOPBACK and _HOST_NAME.fullmatch(host) is not None
        return f"{kind}://{host}:{port}" if named else None
    if scope_of(host) is not scope:
        return None
    return f"{kind}://[{ip}]:{port}" if ip.version == 6 else f"{kind}://{ip}:{port}"  # noqa: PLR2004
