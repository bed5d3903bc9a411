"""A record cannot send us to doors that its author could not reach."""

from __future__ import annotations

import pytest

from aios_nb.addresses import URLS_MAX, scope_of, urls_of
from aios_nb.records import Scope, node_record

NODE = "a" * 32


def urls(scope: Scope, over: str, *endpoints: tuple[str, str, int]) -> tuple[str, ...]:
    record = node_record(
        net="main", node=NODE, name="n", scope=scope, endpoints=endpoints, seq=1, epoch=1, now_ms=1
    )
    return urls_of(record, scope_of(over))


@pytest.mark.parametrize(
    ("address", "scope"),
    [
        ("127.0.0.1", Scope.LOOPBACK),
        ("::1", Scope.LOOPBACK),
        ("::ffff:127.0.0.1", Scope.LOOPBACK),
        ("10.1.2.3", Scope.PRIVATE),
        ("192.168.0.9", Scope.PRIVATE),
        ("fd12::1", Scope.PRIVATE),
        ("100.64.0.1", Scope.PRIVATE),
        ("100.127.255.254", Scope.PRIVATE),
        ("::ffff:100.64.0.1", Scope.PRIVATE),
        ("100.63.255.255", Scope.GLOBAL),
        ("100.128.0.1", Scope.GLOBAL),
        ("8.8.8.8", Scope.GLOBAL),
        ("2606:4700::1111", Scope.GLOBAL),
        ("169.254.169.254", None),
        ("::ffff:169.254.169.254", None),
        ("fe80::1", None),
        ("fe80::1%eth0", None),
        ("fd00:ec2::254", None),
        ("0.0.0.0", None),
        ("::", None),
        ("224.0.0.1", None),
        ("255.255.255.255", None),
        ("100.100.100.200", None),
        ("192.0.0.192", None),
        ("168.63.129.16", None),
        ("64:ff9b::8.8.8.8", Scope.GLOBAL),
        ("64:ff9b::10.0.0.1", None),
        ("64:ff9b::168.63.129.16", None),
        ("64:ff9b:1::8.8.8.8", None),
        ("2002:a00:1::1", None),
        ("::10.0.0.1", None),
        ("::ffff:0:127.0.0.1", None),
        ("2001:0:1::1", None),
        ("fec0::1", None),
        ("example.org", None),
        ("", None),
    ],
)
def test_what_an_address_is(address, scope):
    assert scope_of(address) is scope


@pytest.mark.parametrize(
    ("scope", "over", "host", "used"),
    [
        (Scope.LOOPBACK, "127.0.0.1", "127.0.0.1", "http://127.0.0.1:80"),
        (Scope.LOOPBACK, "127.0.0.1", "localhost", "http://127.0.0.1:80"),
        (Scope.LOOPBACK, "127.0.0.1", "::1", "http://[::1]:80"),
        (Scope.LOOPBACK, "10.0.0.1", "127.0.0.1", None),
        (Scope.LOOPBACK, "8.8.8.8", "127.0.0.1", None),
        (Scope.LOOPBACK, "127.0.0.1", "10.0.0.1", None),
        (Scope.LOOPBACK, "127.0.0.1", "example.org", None),
        (Scope.PRIVATE, "127.0.0.1", "10.0.0.1", "http://10.0.0.1:80"),
        (Scope.PRIVATE, "192.168.1.1", "10.0.0.1", "http://10.0.0.1:80"),
        (Scope.PRIVATE, "192.168.1.1", "node.lan", "http://node.lan:80"),
        (Scope.PRIVATE, "100.64.0.9", "100.64.0.1", "http://100.64.0.1:80"),
        (Scope.PRIVATE, "8.8.8.8", "100.64.0.1", None),
        (Scope.GLOBAL, "8.8.8.8", "100.64.0.1", None),
        (Scope.PRIVATE, "8.8.8.8", "10.0.0.1", None),
        (Scope.PRIVATE, "10.0.0.2", "127.0.0.1", None),
        (Scope.PRIVATE, "10.0.0.2", "169.254.169.254", None),
        (Scope.GLOBAL, "8.8.8.8", "9.9.9.9", "http://9.9.9.9:80"),
        (Scope.GLOBAL, "127.0.0.1", "node.example.org", "http://node.example.org:80"),
        (Scope.GLOBAL, "8.8.8.8", "127.0.0.1", None),
        (Scope.GLOBAL, "8.8.8.8", "10.0.0.1", None),
        (Scope.GLOBAL, "8.8.8.8", "169.254.169.254", None),
        (Scope.GLOBAL, "8.8.8.8", "fe80::1%1", None),
        (Scope.GLOBAL, "8.8.8.8", "a@b", None),
        (Scope.GLOBAL, "8.8.8.8", "a/b", None),
        (Scope.GLOBAL, "8.8.8.8", "a b", None),
        (Scope.GLOBAL, "", "9.9.9.9", None),
        (Scope.GLOBAL, "169.254.1.1", "9.9.9.9", None),
    ],
)
def test_an_endpoint_is_used_where_its_scope_fits(scope, over, host, used):
    assert urls(scope, over, ("http", host, 80)) == ((used,) if used else ())


def test_other_kinds_are_skipped_and_the_number_is_bounded():
    many = [("udp", "9.9.9.9", 53), *(("https", "9.9.9.9", port) for port in range(1, 20))]

    found = urls(Scope.GLOBAL, "8.8.8.8", *many)

    assert len(found) == URLS_MAX
    assert found[0] == "https://9.9.9.9:1"
