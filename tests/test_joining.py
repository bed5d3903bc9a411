"""Where a node is told to link to, and who was there the first time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from aios_nb.errors import UsageError
from aios_nb.joining import JoinAddress, Pins, addresses, network_name
from aios_nb.store import Store

NODE = "a2" * 16
OTHER = "b3" * 16


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("http://127.0.0.1:8765", "http://127.0.0.1:8765"),
        ("http://127.0.0.1:8765/", "http://127.0.0.1:8765"),
        ("HTTPS://Agents.Example.ORG", "https://agents.example.org"),
        ("https://agents.example.org:443/", "https://agents.example.org"),
        ("http://example.org:443", "http://example.org:443"),
        ("http://[::1]:80", "http://[::1]"),
        ("  http://[fe80::1]:9  ", "http://[fe80::1]:9"),
    ],
)
def test_an_address_is_written_in_one_way_only(typed: str, url: str) -> None:
    assert JoinAddress.parse(typed) == JoinAddress(url)
    assert str(JoinAddress.parse(typed)) == url


def test_an_id_after_the_hash_says_who_must_answer() -> None:
    address = JoinAddress.parse(f"http://127.0.0.1:8765/#{NODE}")
    assert address.node_id == NODE
    assert str(address) == f"http://127.0.0.1:8765#{NODE}"
    assert JoinAddress.parse("http://127.0.0.1:8765").node_id is None


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "127.0.0.1:8765",
        "localhost",
        "ftp://example.org",
        "ws://example.org",
        "http://",
        "http://:8765",
        "http://host:99999",
        "http://host:0",
        "http://host:x",
        "http://[::1",
        "http://ex ample.org",
        "http://ex\nample.org",
        "http://bücher.example",
        "http://host/path",
        "http://host?x=1",
        "http://" + "a" * 3000,
        f"http://host/#{NODE[:-1]}",
        f"http://host#{NODE.upper()}",
        f"http://host#{NODE}#{NODE}",
        "http://host#",
    ],
)
def test_what_is_no_address_is_refused_in_one_line_with_a_hint(typed: str) -> None:
    with pytest.raises(UsageError) as refused:
        JoinAddress.parse(typed)
    assert refused.value.hint
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize("typed", ["http://me:s3cret@host", "http://s3cret@host", "http://@host"])
def test_a_password_in_an_address_is_refused_and_not_repeated(typed: str) -> None:
    with pytest.raises(UsageError, match="password") as refused:
        JoinAddress.parse(typed)
    assert "s3cret" not in str(refused.value)


def test_one_address_or_several_may_be_given() -> None:
    assert addresses("http://a") == ("http://a",)
    assert addresses(["http://a", "HTTP://A:80/", f"http://b#{NODE}"]) == (
        "http://a",
        f"http://b#{NODE}",
    )
    assert addresses(()) == ()
    with pytest.raises(UsageError, match="join"):
        addresses([7])  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["", "Main", "a b", "-x", "x" * 49, "main\n", "maïs"])
def test_a_network_has_a_name_like_a_nodes(name: str) -> None:
    assert network_name("lab-2") == "lab-2"
    with pytest.raises(UsageError, match="network"):
        network_name(name)


def test_who_answered_first_at_an_address_stays_remembered(tmp_path: Path) -> None:
    async def work() -> None:
        store = Store.open(tmp_path / "x.db")
        pins = Pins(store)
        assert pins.get("http://a") is None
        assert await pins.put("http://a", NODE) == NODE
        assert await pins.put("http://a", OTHER) == NODE
        assert await pins.put("http://b", OTHER) == OTHER
        await store.close()
        again = Store.open(tmp_path / "x.db")
        assert Pins(again).get("http://a") == NODE
        await again.close()

    asyncio.run(work())
