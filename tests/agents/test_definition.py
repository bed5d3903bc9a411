"""What can be an agent, and what its author is told when it cannot."""

from __future__ import annotations

import functools

import pytest

from aios_nb.access import Access
from aios_nb.agents import AgentHost, EngineKind, Shape, describe, register, unregister
from aios_nb.agents.inline import InlineEngine
from aios_nb.envelope import DEADLINE_MAX_S
from aios_nb.errors import UsageError


def adder(text):
    """Adds the numbers in a sentence.

    More that is not shown.
    """


async def waits(text, ctx): ...


def streams(text):
    yield text


async def streams_too(text, ctx=None):
    yield text


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.seen = 0

    async def run(self, text, context):
        self.seen += 1
        return self.seen


class Loud:
    def __call__(self, text):
        return text.upper()


def test_a_plain_function_gets_sensible_defaults():
    found = describe(adder)
    assert (found.name, found.title, found.about) == (
        "adder",
        "Adder",
        "Adds the numbers in a sentence.",
    )
    assert (found.access, found.engine, found.version) == (Access.NETWORK, "thread", "1")
    assert (found.shape, found.takes_ctx, found.timeout_s) == (Shape.FUNCTION, False, 300.0)
    assert not found.idempotent
    assert found.may_call is None


@pytest.mark.parametrize(
    ("code", "shape", "engine", "takes_ctx"),
    [
        (adder, Shape.FUNCTION, "thread", False),
        (waits, Shape.COROUTINE, "inline", True),
        (streams, Shape.GENERATOR, "thread", False),
        (streams_too, Shape.ASYNC_GENERATOR, "inline", True),
        (Counter, Shape.COROUTINE, "inline", True),
        (Counter(), Shape.COROUTINE, "inline", True),
        (Loud(), Shape.FUNCTION, "thread", False),
    ],
)
def test_the_shape_of_the_code_decides_the_engine(code, shape, engine, takes_ctx):
    found = describe(code)
    assert (found.shape, found.engine, found.takes_ctx) == (shape, engine, takes_ctx)


def test_the_second_parameter_is_the_context_if_it_has_no_default_or_is_called_so():
    assert describe(lambda text, anything: text, name="x").takes_ctx
    assert describe(lambda text, ctx=None: text, name="x").takes_ctx
    assert describe(lambda text, context=None: text, name="x").takes_ctx
    assert not describe(lambda text, style="short": text, name="x").takes_ctx
    assert not describe(lambda *texts: texts, name="x").takes_ctx
    assert not describe(functools.partial(lambda style, text: text, "a"), name="x").takes_ctx


@pytest.mark.parametrize(
    "code",
    [
        lambda: None,
        lambda text, ctx, more: None,
        lambda text, *, must: None,
        lambda **everything: None,
    ],
)
def test_a_wrong_signature_is_one_clear_line(code):
    with pytest.raises(UsageError) as told:
        describe(code, name="wrong")
    assert "\n" not in str(told.value)
    assert "(text) or (text, ctx)" in str(told.value)


def test_a_class_is_made_once_and_keeps_its_state():
    found = describe(Counter)
    assert found.run.__self__ is found.run.__self__
    assert isinstance(found.run.__self__, Counter)


def test_a_class_without_run_or_with_arguments_is_refused():
    class Empty: ...

    class Needs:
        def __init__(self, key): ...
        def run(self, text): ...

    with pytest.raises(UsageError, match="no method run"):
        describe(Empty)
    with pytest.raises(UsageError, match=r"aios\.define\(Needs"):
        describe(Needs)
    assert describe(Needs("k")).name == "needs"


@pytest.mark.parametrize("thing", [3, "text", None, [1]])
def test_what_cannot_be_called_is_refused(thing):
    with pytest.raises(UsageError, match="cannot be an agent"):
        describe(thing, name="x")


@pytest.mark.parametrize("name", ["Two Words", "", "_hidden", "x" * 49, "naïve", "a/b", "a\n"])
def test_a_bad_name_is_refused(name):
    with pytest.raises(UsageError, match="cannot be an agent's name"):
        describe(adder, name=name)


def test_a_function_without_a_usable_name_must_be_named():
    with pytest.raises(UsageError, match='say name="…"'):
        describe(lambda text: text)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"access": "publik"}, "did you mean public"),
        ({"access": "zzz"}, "use one of known, network, private, public"),
        ({"engine": "inlin"}, "did you mean inline"),
        ({"engine": "dask"}, "use one of inline, thread"),
        ({"tag": ["x"]}, "did you mean tags"),
        ({"tags": "math"}, "list of texts"),
        ({"tags": [3]}, "must be text"),
        ({"tags": ["x"] * 33}, "33 entries"),
        ({"title": "x" * 201}, "201 characters"),
        ({"about": "\ud800"}, "not valid Unicode"),
        ({"timeout_s": 0}, "above 0"),
        ({"timeout_s": DEADLINE_MAX_S + 1}, "at most 86400"),
        ({"timeout_s": "soon"}, "must be seconds"),
        ({"concurrency": 0}, "at least 1"),
        ({"concurrency": True}, "at least 1"),
    ],
)
def test_a_wrong_option_is_one_line_that_says_what_to_do(options, hint):
    with pytest.raises(UsageError, match=hint) as told:
        describe(adder, **options)
    assert "\n" not in str(told.value)


def test_an_async_agent_cannot_ask_for_a_thread():
    with pytest.raises(UsageError, match="async"):
        describe(waits, engine="thread")


def test_the_kernel_engine_says_in_one_line_what_it_needs():
    with pytest.raises(UsageError, match="needs a notebook's kernel") as told:
        describe(adder, engine="kernel")
    assert told.value.hint is None


def test_an_engine_can_be_plugged_in_with_its_own_defaults(play):
    used = []

    class Kernel(InlineEngine):
        async def perform(self, job):
            used.append(job.task.agent)
            return await super().perform(job)

    register(EngineKind(name="kernel", make=Kernel, concurrency=1, access=Access.PRIVATE))
    try:
        found = describe(adder, engine="kernel")
        assert (found.access, found.concurrency) == (Access.PRIVATE, 1)

        async def scene(house):
            house.add(lambda text: "here", name="here", engine="kernel")
            assert (await house.ask("here")).text == "here"

        play(scene)
        assert len(used) == 1
    finally:
        unregister("kernel")


def test_a_host_makes_no_engine_before_it_is_needed():
    host = AgentHost("a" * 32, None)
    assert host._engines == {}
    host.host(describe(adder))
    assert list(host._engines) == ["thread"]


def test_an_agent_without_a_docstring_says_nothing_about_itself():
    def bare(text): ...

    assert (describe(bare).title, describe(bare).about) == ("Bare", "")
