"""``@agent``: nothing changes for the author, and the right one gets the agent."""

from __future__ import annotations

import threading

import pytest

from aios_nb.agents import agent, collecting, declared, define, forget, set_sink
from aios_nb.agents.decorator import name_of
from aios_nb.errors import UsageError


def test_the_decorator_returns_what_it_decorates():
    def plain(text):
        return text

    class Classy:
        def run(self, text):
            return text

    assert agent(plain) is plain
    assert agent(title="Other")(plain) is plain
    assert agent(Classy) is Classy


def test_without_a_node_an_agent_is_kept_and_the_last_one_of_a_name_counts():
    @agent(about="first")
    def same(text): ...

    @agent(about="second")
    def same(text): ...  # noqa: F811

    assert list(declared) == ["same"]
    assert declared["same"].about == "second"


def test_a_running_node_gets_each_agent_and_it_is_kept_for_the_next_node():
    got = []
    set_sink(got.append)
    definition = define(lambda text: text, name="x")
    assert got == [definition]
    assert declared["x"] is definition
    forget("x")
    forget("never there")
    assert not declared


def test_a_collector_takes_all_and_nothing_leaks_out():
    got = []
    set_sink(got.append)
    with collecting() as found:
        define(lambda text: text, name="inside")
    define(lambda text: text, name="outside")
    assert list(found) == ["inside"]
    assert list(declared) == ["outside"]
    assert [d.name for d in got] == ["outside"]


def test_a_collector_is_of_its_own_thread_only():
    with collecting() as found:
        other = threading.Thread(target=lambda: define(lambda text: text, name="elsewhere"))
        other.start()
        other.join()
    assert not found
    assert list(declared) == ["elsewhere"]


def test_a_mistake_declares_nothing():
    with pytest.raises(UsageError):
        agent(lambda: None)
    assert not declared


def test_a_name_in_the_place_of_the_function_is_one_line_that_helps():
    with pytest.raises(UsageError) as told:
        agent("calc2")
    assert told.value.hint == 'name="calc2"'


def test_an_unknown_keyword_brings_the_near_ones():
    with pytest.raises(UsageError, match="did you mean title"):
        agent(titel="x")
    with pytest.raises(UsageError, match="does not know 'foo'"):
        agent(foo=1)


def test_what_was_declared_is_known_by_its_name():
    @agent(name="adder")
    def adds(text): ...

    @agent
    class Classy:
        def run(self, text): ...

    thing = Classy()
    definition = define(thing, name="thing")
    assert [name_of(one) for one in (adds, definition, thing)] == ["adder", "thing", "thing"]
    assert name_of(Classy) in {"classy", "thing"}
    assert name_of(len) is None
