"""Agents on the notebook's main thread: they see its variables, and a busy cell comes first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aios_nb.errors import AgentFailed, Cancelled, DeadlinePassed
from tests.notebook.conftest import CEILING_S, Notebook

AGENTS = """
%load_ext aios_nb
import asyncio, os, sys, threading, time
import aios_nb as aios
from aios_nb.notebook.session import session_of

node = aios.node()
x = 0

def here():
    return threading.current_thread() is threading.main_thread()

@aios.agent(engine="kernel")
def look(text):
    global x
    x += 1
    print("looked", text)
    return f"{x} {here()}"

@aios.agent(engine="kernel")
async def peek(text):
    await asyncio.sleep(0.01)
    return f"{x} {here()}"

@aios.agent(engine="kernel")
def returns_work(text):
    return peek(text)

@aios.agent(engine="kernel")
def flow(text):
    yield "first "
    while not os.path.exists(text):
        time.sleep(0.01)
    yield "second"

@aios.agent(engine="kernel")
async def aflow(text):
    yield "first "
    while not os.path.exists(text):
        await asyncio.sleep(0.01)
    yield "second"

@aios.agent(engine="kernel")
def team(text, ctx):
    ctx.progress("asking", 0.5)
    return f"{ctx.call('look', text)}, {len(ctx.messages)}, {ctx.search('look')[0].name}"

@aios.agent(engine="kernel")
async def ateam(text, ctx):
    ctx.progress("asking", 0.5)
    return f"{await ctx.call('peek', text)}, {len(ctx.messages)}, {ctx.deadline > 0}"

@aios.agent(engine="kernel")
def inward(text):
    return node.ask(text, "from inside")

@aios.agent(engine="kernel")
def asker(text, ctx):
    return ctx.ask_user("sure?") + "!"

@aios.agent(engine="kernel")
async def aasker(text, ctx):
    return await ctx.ask_user("sure?") + "!"

@aios.agent(engine="kernel")
def sleeper(text):
    try:
        print("begun")
        time.sleep(600)
    finally:
        print("over")

@aios.agent(engine="kernel")
async def dozer(text):
    try:
        print("begun")
        await asyncio.sleep(600)
    finally:
        print("over")

@aios.agent(engine="kernel")
def spinner(text):
    try:
        print("begun")
        while True:
            pass
    finally:
        print("over")

@aios.agent(engine="kernel")
def waiter(text):
    try:
        print("begun")
        return node.ask("echo_late", text)
    finally:
        print("over")

@aios.agent
async def echo_late(text):
    await asyncio.sleep(600)

@aios.agent(engine="kernel")
def broken(text):
    raise ValueError(text)

@aios.agent(engine="kernel")
def cancels(text):
    raise asyncio.CancelledError

@aios.agent(engine="kernel", access="network")
def typist(text):
    return input("name? ")

@aios.agent(engine="kernel", access="network")
async def atypist(text):
    return input("name? ")

@aios.agent
def thread_typist(text):
    return input("name? ")
"""
STOPPABLE = ["sleeper", "dozer", "spinner", "waiter"]
UNPATCHED = "not hasattr(asyncio, '_nest_patched') and not session_of().patched"


@pytest.fixture(scope="module")
def notebook(open_notebook: Callable[..., Notebook]) -> Notebook:
    notebook = open_notebook("engine")
    notebook.run(AGENTS)
    return notebook


@pytest.fixture(autouse=True)
def _left_as_it_was(notebook: Notebook):
    notebook.run("x = 0")
    notebook.lost = ""
    yield
    assert notebook.value("node.ask('echo', 'alive')") == "alive"


def ask(notebook: Notebook, agent: str, text: str = "", **more: Any) -> str:
    answer: str = notebook.rpc("chat.send", agent=agent, text=text, **more)["text"]
    return answer


def asks_back(notebook: Notebook, agent: str) -> str:
    """What it makes of the person's answer, between cells."""
    question = notebook.rpc("chat.send", agent=agent, text="", message_id=f"m-{agent}")
    assert (question["status"], question["text"]) == ("input_required", "sure?")
    answer: str = notebook.rpc("chat.answer", message_id=f"m-{agent}", text="yes")["text"]
    return answer


# As long as nobody waits for an async one in a cell ------------------------------------------


def test_a_cell_asks_its_own_notebook(notebook: Notebook):
    cell = notebook.run("print(node.ask('look', 'a'), x)")

    assert "1 True 1" in cell.printed
    assert "looked a" in cell.printed  # it was this cell that asked


def test_an_idle_notebook_answers_others_and_their_output_is_in_no_cell(notebook: Notebook):
    last = notebook.run("pass")

    assert ask(notebook, "look", "b") == "1 True"
    notebook.until(lambda: "looked b" in notebook.lost)
    assert not last.printed


def test_it_is_private_unless_opened(notebook: Notebook):
    assert notebook.rpc("agents.card", agent="look")["card"]["access"] == "private"


@pytest.mark.parametrize("agent", ["peek", "returns_work"])
def test_async_code_runs_beside_a_cell_that_awaits(notebook: Notebook, agent: str):
    assert ask(notebook, agent) == "0 True"
    assert notebook.value(f"await node.ask_async({agent!r}, '')") == "0 True"
    assert notebook.value(UNPATCHED)


@pytest.mark.parametrize("agent", ["flow", "aflow"])
def test_what_it_yields_is_streamed(notebook: Notebook, agent: str, tmp_path: Path):
    gate = tmp_path / "gate"
    pieces = notebook.stream(agent=agent, text=str(gate))
    first = next(pieces)
    gate.touch()

    assert first == "first "
    assert "".join(pieces) == "second"


def test_kernel_agents_call_each_other(notebook: Notebook):
    assert ask(notebook, "team", "c") == "1 True, 0, look"
    assert ask(notebook, "inward", "look") == "2 True"
    assert notebook.value("node.ask('team', 'd')") == "3 True, 0, look"
    assert ask(notebook, "ateam") == "3 True, 0, True"
    assert notebook.value(UNPATCHED)


@pytest.mark.parametrize("load", [AGENTS, f"get_ipython().run_cell({AGENTS!r})"])
def test_the_very_cell_that_loads_the_extension_is_not_held_up(
    open_notebook: Callable[..., Notebook], load: str
):
    first = open_notebook("first")
    said = first.fail(f"{load}\nawait node.ask_async('asker', '')")
    first.close()

    assert "async def" in said


def test_a_silent_request_that_loads_the_extension_ends(
    open_notebook: Callable[..., Notebook],
):
    first = open_notebook("silent")
    first.reply(first.client.execute(AGENTS, silent=True))
    answered = asks_back(first, "asker")
    first.close()

    assert answered == "yes!"


def test_it_asks_the_person_back(notebook: Notebook):
    notebook.run("")  # an empty cell ends and never began
    assert [asks_back(notebook, agent) for agent in ("asker", "aasker")] == ["yes!", "yes!"]


def test_a_plain_one_cannot_ask_back_the_cell_that_waits_for_it(notebook: Notebook):
    assert "async def" in notebook.fail("node.ask('asker', '')")
    assert "async def" in notebook.fail("await node.ask_async('asker', '')")
    inside = "_ = get_ipython().run_cell('')"  # it ends in the middle of the other one
    assert "async def" in notebook.fail(f"{inside}\nawait node.ask_async('asker', '')")
    assert notebook.value("(first := await node.ask_async('aasker', '')).status")
    assert notebook.value("await first.answer_async('yes')") == "yes!"
    assert notebook.value(UNPATCHED)


def test_its_error_is_one_line(notebook: Notebook):
    with pytest.raises(AgentFailed, match="no") as failed:
        ask(notebook, "broken", "no")

    assert failed.value.message == "broken failed: ValueError: no"


def test_a_cancel_that_nobody_asked_for_is_its_failure(notebook: Notebook):
    with pytest.raises(AgentFailed) as failed:
        ask(notebook, "cancels")

    assert failed.value.message == "cancels failed: CancelledError"


@pytest.mark.parametrize("agent", ["typist", "atypist", "thread_typist"])
def test_between_cells_nobody_types(notebook: Notebook, agent: str):
    with pytest.raises(AgentFailed, match="cannot use input"):
        ask(notebook, agent)


def test_a_cell_that_waits_for_it_may_be_typed_into(notebook: Notebook):
    client = notebook.client
    cell = client.execute("said = node.ask('typist', 'x')", allow_stdin=True)
    client.get_stdin_msg(timeout=CEILING_S)
    client.input("Ada")
    assert notebook.reply(cell)["status"] == "ok"
    assert notebook.value("said") == "Ada"


def test_another_notebook_does_not_type_into_a_cell_here(
    notebook: Notebook, open_notebook: Callable[..., Notebook]
):
    node_id = notebook.value("node.node_id")
    other = open_notebook("typing")
    other.run("%load_ext aios_nb\nimport aios_nb as aios\nnode = aios.node()")
    cell = notebook.begin("print('begun')\nawait node.ask_async('echo_late', 'x')")
    notebook.until(lambda: "begun" in cell.printed)
    error = other.fail(f"node.ask('atypist@{node_id}', 'x')")
    notebook.interrupt()
    notebook.finish(cell)
    other.close()

    assert "cannot use input" in error


def test_a_cell_that_joins_a_thread_is_told_why_it_hung(notebook: Notebook):
    notebook.run(
        "def asks():\n"
        "    try: node.ask('look', 'x', deadline_s=1)\n"
        "    except aios.AiosError as error: said.append((str(error), error.hint))\n"
        "said = []\nthread = threading.Thread(target=asks)\nthread.start()\nthread.join()"
    )
    error, hint = notebook.value("said")[0]

    assert "look runs between cells, and a cell was busy all the time" in error
    assert "await asyncio.to_thread(node.ask, …)" in hint
    assert notebook.value("x") == 0


def test_a_busy_cell_comes_first_and_the_deadline_holds(notebook: Notebook):
    cell = notebook.begin("go = False\nprint('begun')\nwhile not go: time.sleep(0.01)")
    notebook.until(lambda: "begun" in cell.printed)
    late = notebook.calling("chat.send", agent="look", text="late", deadline_s=1)
    asked = {"agent": "look", "text": "patient", "message_id": "m-patient"}
    notebook.rpc("chat.send", **asked, wait=False)
    patient = notebook.calling("chat.send", **asked)
    with pytest.raises(DeadlinePassed):
        late.result(CEILING_S)
    notebook.rpc("chat.cancel", message_id="m-patient")
    with pytest.raises(Cancelled):
        patient.result(CEILING_S)
    last = notebook.calling("chat.send", agent="look", text="last")
    notebook.interrupt()

    assert notebook.finish(cell).status == "error"
    assert last.result(CEILING_S)["text"] == "1 True"  # neither of the others ran
    assert notebook.value("x") == 1


@pytest.mark.parametrize("agent", STOPPABLE)
def test_a_cancel_stops_it_wherever_it_is(notebook: Notebook, agent: str):
    run = notebook.calling("chat.send", agent=agent, text="x", message_id=f"m-{agent}")
    notebook.until(lambda: "begun" in notebook.lost)
    notebook.rpc("chat.cancel", message_id=f"m-{agent}")

    with pytest.raises(Cancelled):
        run.result(CEILING_S)
    notebook.until(lambda: "over" in notebook.lost)


@pytest.mark.parametrize("agent", ["sleeper", "spinner", "waiter"])
def test_an_interrupt_ends_a_run_of_an_idle_kernel_and_not_the_kernel(
    notebook: Notebook, agent: str
):
    run = notebook.calling("chat.send", agent=agent, text="x")
    notebook.until(lambda: "begun" in notebook.lost)
    notebook.interrupt()

    with pytest.raises(Cancelled, match="interrupted"):
        run.result(CEILING_S)


@pytest.mark.parametrize("agent", ["sleeper", "spinner", "waiter"])
def test_an_interrupt_ends_the_cell_that_waits_and_the_run_inside_it(
    notebook: Notebook, agent: str
):
    cell = notebook.begin(f"node.ask({agent!r}, 'x')")
    notebook.until(lambda: "begun" in cell.printed)
    notebook.interrupt()

    assert "KeyboardInterrupt" in notebook.finish(cell).error
    notebook.until(lambda: "over" in cell.printed)


def test_until_here_asyncio_is_as_it_was(notebook: Notebook):
    assert notebook.value(UNPATCHED)


# A cell that waits for an async one, from here on ---------------------------------------------


def test_where_asyncio_cannot_be_patched_one_line_says_what_to_do(notebook: Notebook):
    notebook.run("kept, sys.modules['nest_asyncio'] = sys.modules.get('nest_asyncio'), None")
    cell = notebook.finish(notebook.begin("node.ask('peek', '')"))
    notebook.run("del sys.modules['nest_asyncio']")

    assert "await node.ask_async" in cell.error
    assert notebook.value(UNPATCHED)


def test_a_cell_waits_for_an_async_agent_of_its_own(notebook: Notebook):
    assert notebook.value("node.ask('peek', '')") == "0 True"
    assert notebook.value("session_of().patched")
    assert notebook.value("node.ask('inward', 'peek')") == "0 True"
    assert notebook.value("node.ask('ateam', '')") == "0 True, 0, True"
    assert notebook.value("node.ask('look', '')") == "1 True"
    assert notebook.value("node.ask('aasker', '').answer('yes')") == "yes!"
    assert ask(notebook, "ateam") == "1 True, 0, True"


def test_a_run_that_began_before_goes_on_while_a_cell_waits(notebook: Notebook, tmp_path: Path):
    gate = tmp_path / "gate"
    before = notebook.stream(agent="aflow", text=str(gate))
    assert next(before) == "first "
    cell = notebook.begin(f"node.ask('aflow', {str(gate)!r})")  # one at a time
    gate.touch()

    assert notebook.finish(cell).status == "ok"
    assert "".join(before) == "second"


def test_an_interrupt_of_that_wait_leaves_the_node_alive(notebook: Notebook):
    cell = notebook.begin("node.ask('dozer', '')")
    notebook.until(lambda: "begun" in cell.printed)
    notebook.interrupt()

    assert notebook.finish(cell).status == "error"
    notebook.until(lambda: "over" in cell.printed)


def test_the_node_stops_with_agents_in_the_kernel_at_work(notebook: Notebook):
    run = notebook.calling("chat.send", agent="dozer", text="")
    notebook.until(lambda: "begun" in notebook.lost)
    notebook.run("aios.down()")
    assert run.exception(CEILING_S)
    notebook.run("node = aios.up()")

    assert notebook.value("node.ask('look', '')") == "1 True"
