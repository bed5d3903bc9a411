from __future__ import annotations

import pytest

from aios_nb.hub.post.tokens import TOKEN_S, Tokens

SOURCE = ("192.0.2.7", 4000)
NODE = b"n" * 20


def test_a_token_is_good_for_that_node_at_that_address_only():
    tokens = Tokens()
    token = tokens.issue(SOURCE, NODE, 50.0)
    assert tokens.valid_until(token, SOURCE, NODE, 50.0)
    assert not tokens.valid_until(token, ("192.0.2.8", 4000), NODE, 50.0)
    assert not tokens.valid_until(token, ("192.0.2.7", 4001), NODE, 50.0)
    assert not tokens.valid_until(token, SOURCE, b"m" * 20, 50.0)
    assert not tokens.valid_until(b"", SOURCE, NODE, 50.0)


@pytest.mark.parametrize("issued", [0.0, 1.0, TOKEN_S - 1, TOKEN_S, 12_345.6])
def test_a_token_lives_for_five_to_ten_minutes(issued):
    tokens = Tokens()
    token = tokens.issue(SOURCE, NODE, issued)
    until = tokens.valid_until(token, SOURCE, NODE, issued)
    assert issued + TOKEN_S <= until <= issued + 2 * TOKEN_S
    assert tokens.valid_until(token, SOURCE, NODE, until - 0.001) == until
    assert not tokens.valid_until(token, SOURCE, NODE, until)


def test_a_restart_ends_all_tokens():
    token = Tokens().issue(SOURCE, NODE, 50.0)
    assert not Tokens().valid_until(token, SOURCE, NODE, 50.0)
