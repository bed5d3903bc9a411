"""Scoped tokens: made, found by their hash, revoked."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from aios_nb.access import Caller, Principal
from aios_nb.errors import Busy, InvalidParams
from aios_nb.store import Store
from aios_nb.tokens import Tokens


@pytest.fixture
def tokens(store: Store) -> Tokens:
    return Tokens(store)


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def create(tokens: Tokens, prefix: str = "tg:", **more: bool) -> tuple[str, str]:
    made, secret = asyncio.run(tokens.create("chat", prefix, **more))
    return made.id, secret


def test_a_token_is_found_by_its_hash_and_by_nothing_else(tokens: Tokens):
    token_id, secret = create(tokens)

    assert tokens.lookup(digest(secret)) == Principal(Caller.TOKEN, f"token:{token_id}", "tg:")
    assert tokens.lookup(digest(token_id)) is None
    assert tokens.lookup(secret.encode()) is None


def test_a_token_may_be_given_the_reach_of_the_owner(tokens: Tokens):
    token_id, secret = create(tokens, as_owner=True)

    found = tokens.lookup(digest(secret))
    assert found == Principal(Caller.TOKEN, f"token:{token_id}", "tg:", as_owner=True)


def test_a_secret_is_long_and_known_for_one_by_its_beginning(tokens: Tokens):
    secrets = [create(tokens)[1] for _ in range(3)]

    assert all(secret.startswith("aios_") and len(secret) == 5 + 43 for secret in secrets)
    assert len(set(secrets)) == 3


def test_a_list_has_everything_but_the_secret(tokens: Tokens):
    first, secret = create(tokens)
    second, _ = create(tokens, "sl:", as_owner=True)

    listed = tokens.list()
    assert {(token.id, token.prefix, token.as_owner) for token in listed} == {
        (first, "tg:", False),
        (second, "sl:", True),
    }
    assert secret not in repr(listed)


def test_another_start_knows_the_same_tokens(tokens: Tokens, store: Store):
    _, plain = create(tokens)
    _, trusted = create(tokens, "sl:", as_owner=True)
    again = Tokens(store)

    for secret in (plain, trusted):
        assert again.lookup(digest(secret)) == tokens.lookup(digest(secret)) is not None
    assert again.list() == tokens.list()


def test_a_revoked_token_is_nobodys_and_stays_so(tokens: Tokens, store: Store):
    told: list[tuple[str, Principal | None]] = []
    token_id, secret = create(tokens)
    _, other = create(tokens)
    tokens.on_revoked = lambda caller: told.append((caller, tokens.lookup(digest(secret))))
    asyncio.run(tokens.revoke(token_id))

    assert told == [(f"token:{token_id}", None)]
    for now in (tokens, Tokens(store)):
        assert now.lookup(digest(secret)) is None
        assert now.lookup(digest(other)) is not None
        assert len(now.list()) == 1


def test_a_token_can_be_revoked_by_the_id_it_calls_under(tokens: Tokens):
    token_id, secret = create(tokens)
    asyncio.run(tokens.revoke(f"token:{token_id}"))

    assert tokens.lookup(digest(secret)) is None


def test_a_token_that_is_not_there_cannot_be_revoked(tokens: Tokens):
    token_id, _ = create(tokens)
    asyncio.run(tokens.revoke(token_id))

    for unknown in (token_id, "nonsense"):
        with pytest.raises(InvalidParams, match="no such token"):
            asyncio.run(tokens.revoke(unknown))


def test_a_caller_is_found_by_its_id_while_its_token_is_good(tokens: Tokens):
    token_id, secret = create(tokens, as_owner=True)
    assert tokens.caller(f"token:{token_id}") == tokens.lookup(digest(secret))
    asyncio.run(tokens.revoke(token_id))

    assert tokens.caller(f"token:{token_id}") is None


@pytest.mark.parametrize("prefix", ["tg:", "tg:12345:", "matrix:", "a:" + "x" * 100])
def test_a_prefix_is_a_word_a_colon_and_perhaps_more(tokens: Tokens, prefix: str):
    assert create(tokens, prefix)


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "tg",
        ":",
        "Tg:",
        "1:",
        "a" * 17 + ":",
        "a:" + "x" * 101,
        "tg:@",
        "tg: ",
        "tg:\n",
        "owner@" + "a" * 32,
        "tg:1@" + "a" * 32,
        "token:",
        "token:abc",
        "owner:",
        "agent:",
        "node:",
        "human:",
        "anyone:",
    ],
)
def test_a_prefix_that_could_pass_for_somebody_else_is_refused(tokens: Tokens, prefix: str):
    with pytest.raises(InvalidParams):
        create(tokens, prefix)
    assert tokens.list() == []


def test_there_is_one_scope(tokens: Tokens):
    with pytest.raises(InvalidParams, match="scope"):
        asyncio.run(tokens.create("everything", "tg:"))


def test_a_token_of_a_scope_this_version_does_not_know_is_good_for_nothing(store: Store):
    row = ("x", digest("secret"), "later", "tg:", 1, 0)
    store.now(lambda tx: tx.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?)", row))

    assert Tokens(store).lookup(digest("secret")) is None


def test_a_token_that_could_not_be_stored_is_not_given_out(tokens: Tokens, store: Store):
    store.close_now()
    with pytest.raises(Busy):
        create(tokens)
    assert tokens.list() == []


def test_a_token_that_could_not_be_ended_is_still_listed(tokens: Tokens, store: Store):
    token_id, secret = create(tokens)
    store.close_now()
    with pytest.raises(Busy):
        asyncio.run(tokens.revoke(token_id))

    assert [token.id for token in tokens.list()] == [token_id]
    assert tokens.lookup(digest(secret)) is not None
