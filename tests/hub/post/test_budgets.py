from __future__ import annotations

import sys

from aios_nb.hub.post.budgets import (
    ALL_ANSWERS,
    ANSWERS,
    HOST_HELLOS,
    PORT_HELLOS,
    Budget,
    HelloBudget,
    SourceBudget,
)
from aios_nb.hub.post.places import house, householder, place_of, signed_place
from aios_nb.records import Scope


def test_a_burst_then_the_rate():
    budget = Budget(2.0, 5)
    assert [budget.take("a", 100.0) for _ in range(6)] == [True] * 5 + [False]
    assert not budget.take("a", 100.4)
    assert budget.take("a", 100.5)
    assert not budget.take("a", 100.6)
    assert sum(budget.take("a", 200.0) for _ in range(20)) == 5


def test_what_did_no_harm_is_given_back():
    budget = Budget(0.1, 2)
    for _ in range(50):
        assert budget.take("a", 1.0)
        budget.give_back("a")
    assert [budget.take("a", 1.0) for _ in range(3)] == [True, True, False]


def test_giving_back_never_makes_more_than_a_burst():
    budget = Budget(1.0, 3)
    for _ in range(10):
        budget.give_back("a")
    assert sum(budget.take("a", 50.0) for _ in range(20)) == 3


def test_a_hundred_thousand_keys_cost_no_memory():
    budget = Budget(1.0, 3)
    before = sys.getsizeof(budget._due)
    for n in range(100_000):
        budget.take(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", 5.0)
    assert sys.getsizeof(budget._due) == before < 64 * 1024
    assert sum(budget.take("192.0.2.1", 5.0) for _ in range(20)) <= 3


def test_one_address_gets_its_budget_of_hellos_whatever_the_number_of_hosts_and_ports():
    for scope in Scope:
        hellos = HelloBudget()
        port_burst, host_burst = PORT_HELLOS[scope][1], HOST_HELLOS[scope][1]
        to_port = sum(hellos.take(("192.0.2.1", 53), scope, 9.0) for _ in range(10_000))
        assert to_port == port_burst
        to_host = sum(hellos.take(("192.0.2.2", port), scope, 9.0) for port in range(1, 10_000))
        assert host_burst / 2 < to_host <= host_burst  # ports may share a slot


def test_the_neighbours_of_an_ipv6_address_share_its_budget():
    hellos = HelloBudget()
    burst = HOST_HELLOS[Scope.GLOBAL][1]
    taken = [hellos.take((f"2001:db8::{n:x}", 5), Scope.GLOBAL, 9.0) for n in range(1, 1000)]
    assert sum(taken) <= burst


def test_answers_are_limited_for_one_source_and_for_all():
    answers = SourceBudget(ANSWERS, ALL_ANSWERS)
    assert sum(answers.take(("192.0.2.1", n), 3.0) for n in range(1000)) == ANSWERS[1]
    many = [answers.take((f"10.0.{n >> 8}.{n & 255}", 7), 3.0) for n in range(60_000)]
    assert sum(many) == ALL_ANSWERS[1] - ANSWERS[1]


def test_on_one_machine_a_port_is_a_source_and_elsewhere_a_host_is():
    assert householder(("127.0.0.1", 5)) != householder(("127.0.0.1", 6))
    assert householder(("::1", 5)) != householder(("::1", 6))
    assert householder(("192.0.2.1", 5)) == householder(("192.0.2.1", 6))
    assert house("2001:db8:0:1::5") == house("2001:db8:0:1:ffff::6") != house("2001:db8:0:2::5")


def test_an_address_has_one_spelling():
    assert place_of(("::ffff:127.0.0.1", 5, 0, 0)) == ("127.0.0.1", 5)
    assert place_of(("2001:db8::1", 5, 0, 0)) == signed_place(("2001:DB8:0::1", 5))
    assert signed_place(("::ffff:10.0.0.1", 5)) == ("10.0.0.1", 5)


def test_a_zone_or_a_name_is_no_address():
    assert signed_place(("2001:db8::1%eth0", 5)) is None
    assert signed_place(("localhost", 5)) is None
