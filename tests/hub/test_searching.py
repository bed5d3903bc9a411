from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from aios_nb.envelope import AgentRow
from aios_nb.filters import Filters, read_query
from aios_nb.hub import searching as module
from aios_nb.hub.diversity import FREE, diverse
from aios_nb.hub.others import Light
from aios_nb.hub.searching import MANY, Searching
from aios_nb.index.documents import Index
from aios_nb.index.opening import open_index

ALICE, BOB, CAROL = ("a" * 32, "b" * 32, "c" * 32)


def row(name: str, node: str = ALICE, about: str = "", **more) -> AgentRow:
    return AgentRow(f"{name}@{node}", name, node, name.title(), about, **more)


ROWS = [
    row("adder", ALICE, "Adds numbers.", tags=("math", "sums")),
    row("solver", BOB, "Solves equations.", tags=("Math",)),
    row("painter", BOB, "Paints pictures.", tags=("art",)),
    row("adder", CAROL, "Adds numbers too.", tags=("math",), access="private"),
]


@asynccontextmanager
async def searching(rows: Iterable[AgentRow] = ROWS, **more) -> AsyncIterator[Searching]:
    made = Searching(**more)
    for each in rows:
        made.put(each)
    try:
        yield made
    finally:
        await made.close()


def found(query: str, rows: Iterable[AgentRow] = ROWS, limit: int = 10, **more) -> list[AgentRow]:
    visible = more.pop("visible", None)

    async def run() -> list[AgentRow]:
        async with searching(rows, **more) as made:
            return await made.search(query, limit, visible)

    return asyncio.run(run())


def ids(rows: Iterable[AgentRow]) -> list[str]:
    return [each.id for each in rows]


def test_agents_come_back_as_rows_with_score_and_reason() -> None:
    first, *_ = found("solves equations")
    assert first.id == f"solver@{BOB}"
    assert first.tags == ("Math",)
    assert 0 < first.score <= 1
    assert first.why == "name match: solves"
    assert first.live


def test_a_put_and_a_drop_are_seen_by_the_next_search() -> None:
    async def run() -> None:
        async with searching() as made:
            await made.search("numbers")
            made.put(row("tides", CAROL, "High and low water."))
            assert ids(await made.search("low water"))[0] == f"tides@{CAROL}"
            made.put(row("tides", CAROL, "Knows about kangaroos."))
            assert ids(await made.search("kangaroos"))[0] == f"tides@{CAROL}"
            made.drop(f"tides@{CAROL}")
            made.drop("nobody@there")
            assert f"tides@{CAROL}" not in ids(await made.search("tides kangaroos"))

    asyncio.run(run())


def test_a_change_that_is_not_searched_shows_without_indexing() -> None:
    puts: list[str] = []

    def spying() -> Index:
        index = open_index()
        put = index.put
        index.put = lambda key, document: (puts.append(key), put(key, document))[1]
        return index

    async def run() -> None:
        async with searching([ROWS[0]], open_index=spying) as made:
            await made.search("adder")
            made.put(row("adder", ALICE, "Adds numbers.", tags=("math", "sums"), access="public"))
            assert [each.access for each in await made.search("adder")] == ["public"]
            assert len(puts) == 1

    asyncio.run(run())


def test_suspects_come_last_and_the_gone_not_at_all() -> None:
    standing = {ALICE: Light.SUSPECT, BOB: Light.GONE, CAROL: Light.LIVE}
    rows = found("adder solver", standing=lambda each: standing[each.node_id])
    assert ids(rows) == [f"adder@{CAROL}", f"adder@{ALICE}"]
    assert [each.live for each in rows] == [True, False]
    only = found("adder live:yes", standing=lambda each: standing[each.node_id])
    assert ids(only) == [f"adder@{CAROL}"]
    away = found("live:no", standing=lambda each: standing[each.node_id])
    assert ids(away) == [f"adder@{ALICE}"]


def test_only_what_the_caller_may_see_is_found() -> None:
    rows = found("adder", visible=lambda each: each.access != "private")
    assert f"adder@{ALICE}" in ids(rows)
    assert f"adder@{CAROL}" not in ids(rows)


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("tag:math", {f"adder@{ALICE}", f"adder@{CAROL}", f"solver@{BOB}"}),
        ("tag:math tag:sums", {f"adder@{ALICE}"}),
        ("TAG:MATH node:bbbb", {f"solver@{BOB}"}),
        ("name:add", {f"adder@{ALICE}", f"adder@{CAROL}"}),
        ("name:add node:c", {f"adder@{CAROL}"}),
        ("adder@cccc", {f"adder@{CAROL}"}),
        (f"pictures node:{BOB}", {f"painter@{BOB}"}),
        ("numbers tag:nothing", set()),
        ("tag:nothing", set()),
        ("", set()),
        ("   ", set()),
    ],
)
def test_filters_narrow_the_search_and_stand_alone(query, right) -> None:
    rows = found(query)
    assert set(ids(rows)) >= right
    if "pictures" not in query:
        assert set(ids(rows)) == right


def test_a_rare_tag_is_found_among_very_many() -> None:
    crowd = [row(f"weather{number}", BOB, "The weather of a town.") for number in range(400)]
    rare = row("weather", CAROL, "Also the weather.", tags=("rare",))
    assert ids(found("weather tag:rare", [*crowd, rare])) == [rare.id]


def test_what_is_no_filter_is_a_word() -> None:
    assert read_query('plot tag:"machine learning" http://x live:maybe name:')[0] == (
        "plot   http://x live:maybe name:"
    )
    assert read_query('tag:"machine learning"')[1] == Filters(tags=("machine learning",))
    assert read_query("a@b.example")[1] == Filters()


def test_a_node_with_many_agents_does_not_fill_the_page_and_loses_none() -> None:
    flood = [row(f"weather-{number}", BOB, "Weather. " * 3) for number in range(30)]
    others = [row(f"weather-{node[0]}", node, "Weather of a town.") for node in (ALICE, CAROL)]
    rows = found("weather", [*flood, *others], limit=100)
    assert len(rows) == 32
    assert {each.node_id for each in rows[:10]} == {ALICE, BOB, CAROL}
    assert {ALICE, CAROL} <= {each.node_id for each in rows[: FREE + 4]}
    scores = [each.score for each in rows]
    assert scores == sorted(scores, reverse=True)


def test_a_better_hit_is_not_put_behind_a_bad_one_for_the_sake_of_diversity() -> None:
    ranked = [("a@x", 1.0), ("b@x", 0.9), ("c@x", 0.8), ("d@y", 0.1)]
    assert [key for key, _ in diverse(ranked, lambda key: key[-1])] == ["a@x", "b@x", "c@x", "d@y"]
    ranked[3] = ("d@y", 0.7)
    assert [key for key, _ in diverse(ranked, lambda key: key[-1])] == ["a@x", "b@x", "d@y", "c@x"]


def test_nothing_heavy_happens_before_the_first_search_of_a_small_network() -> None:
    opened: list[str] = []

    def opening() -> Index:
        opened.append(threading.current_thread().name)
        return open_index()

    async def run() -> None:
        async with searching(open_index=opening) as made:
            await asyncio.sleep(module.GATHER_S * 3)
            assert opened == []
            await made.search("adder")
            assert len(opened) == 1
            assert opened[0] != threading.current_thread().name

    asyncio.run(run())


def test_many_agents_are_indexed_before_anyone_asks() -> None:
    opened = threading.Event()

    def opening() -> Index:
        opened.set()
        return open_index()

    async def run() -> None:
        rows = [row(f"agent{number}") for number in range(MANY)]
        async with searching(rows, open_index=opening):
            assert await asyncio.to_thread(opened.wait, 30)

    asyncio.run(run())


def test_a_search_during_a_long_build_is_answered_from_what_is_there(monkeypatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    monkeypatch.setattr(module, "SLICE", 1)
    monkeypatch.setattr(module, "COMMIT_DOCUMENTS", 1)
    gates = {"solver": threading.Event(), "painter": threading.Event()}

    def slow() -> Index:
        index = open_index()
        put = index.put

        def wait_and_put(key, document) -> None:
            if document.name in gates:
                assert gates[document.name].wait(30)
            put(key, document)

        index.put = wait_and_put
        return index

    async def run() -> None:
        async with searching(open_index=slow) as made:
            asking = asyncio.create_task(made.search("adder"))
            # Until it has lost its patience and stands in line.
            while made._thread is None or not made._thread._work_queue.qsize():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            gates["solver"].set()
            assert ids(await asking) == [f"adder@{ALICE}"]
            monkeypatch.setattr(module, "PATIENCE_S", 30)
            gates["painter"].set()
            assert len(await made.search("adder")) == 2

    asyncio.run(run())


def test_a_document_that_breaks_the_index_is_skipped(caplog) -> None:
    def fragile() -> Index:
        index = open_index()
        put = index.put

        def refuse(key, document) -> None:
            if key.startswith("painter"):
                raise ValueError("no")
            put(key, document)

        index.put = refuse
        return index

    with caplog.at_level(logging.ERROR):
        assert f"solver@{BOB}" in ids(found("solver", open_index=fragile))
    assert "painter" in caplog.text


def test_hostile_queries_and_rows_do_no_harm() -> None:
    nasty = row(
        "nasty", BOB, "x" * 5000 + " \ud800 \u202e tag:math AND (", tags=("\x00", "a" * 900)
    )
    for query in ('tag:" node: (a OR b', "a" * 4000, "\ud800", "name:\x00 x", "adder " * 600):
        found(query, [*ROWS, nasty])
    assert ids(found("adder", [*ROWS, nasty]))[0].startswith("adder@")


def test_what_is_dropped_while_the_thread_looks_is_not_shown() -> None:
    async def run() -> None:
        async with searching() as made:
            await made.search("adder")
            asking = asyncio.create_task(made.search("adder"))
            await asyncio.sleep(0)
            made.drop(f"adder@{ALICE}")
            assert f"adder@{ALICE}" not in ids(await asking)

    asyncio.run(run())


def test_a_search_that_is_closed_finds_nothing_and_hurts_nobody() -> None:
    gate, begun = threading.Event(), threading.Event()

    def slow() -> Index:
        begun.set()
        assert gate.wait(30)
        return open_index()

    async def run() -> None:
        made = Searching(open_index=slow)
        made.put(ROWS[0])
        asking = [asyncio.create_task(made.search("adder tag:math")) for _ in range(3)]
        assert await asyncio.to_thread(begun.wait, 30)
        asking.append(asyncio.create_task(made.search("tag:math")))  # waits behind the opening
        await asyncio.sleep(0)
        await made.close()
        gate.set()
        assert await asyncio.gather(*asking) == [[], [], [], []]
        made.put(ROWS[1])
        made.drop(ROWS[0].id)
        assert await made.search("solver") == []
        await made.close()

    asyncio.run(run())


def test_who_gives_up_is_let_go() -> None:
    gate = threading.Event()

    def slow() -> Index:
        assert gate.wait(30)
        return open_index()

    async def run() -> None:
        async with searching(open_index=slow) as made:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(made.search("adder"), 0.05)
            gate.set()
            assert ids(await made.search("solver"))[0] == f"solver@{BOB}"

    asyncio.run(run())


def test_while_the_model_is_being_read_words_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PATIENCE_S", 0.01)
    read = threading.Event()

    def slow() -> Index:
        assert read.wait(30)
        return open_index()

    async def run() -> tuple[list[str], list[str]]:
        async with searching(open_index=slow) as made:
            try:
                early = ids(await made.search("paints pictures"))
            finally:
                read.set()
            return early, ids(await made.search("solve an equation"))

    early, later = asyncio.run(run())
    assert early == [f"painter@{BOB}"]
    assert later[0] == f"solver@{BOB}"


def test_filters_alone_read_no_model() -> None:
    def never() -> Index:
        raise AssertionError

    assert ids(found("tag:art", open_index=never)) == [f"painter@{BOB}"]
