"""What a stop or a crash leaves open is settled at the next start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aios_nb.agents.definition import describe
from aios_nb.errors import AgentFailed, DeadlinePassed
from tests.sites import Gate, TestSite

MakeSite = Callable[..., TestSite]


def gated(name: str, **options: Any) -> tuple[Any, Gate]:
    gate = Gate()

    async def work(text: str) -> str:
        await gate.pass_through(text)
        return f"{name} did {text}"

    return describe(work, name=name, **options), gate


def test_a_stopped_node_says_interrupted(make_site: MakeSite) -> None:
    slow, gate = gated("slow")
    site = make_site(slow)
    call = site.start("chat.send", agent="slow", text="x", message_id="m")
    site.node.run(lambda: gate.arrived(1))
    site.stop()
    with pytest.raises(Exception):  # noqa: B017, PT011 - the node went away under it
        call.result(10)
    again, gate_again = gated("slow")
    site = make_site(again)
    with pytest.raises(AgentFailed) as cut:
        site.call("chat.send", agent="slow", text="x", message_id="m")
    assert cut.value.data["status"] == "interrupted"
    assert cut.value.data["ran"] == "unknown"
    assert site.history(cut.value.data["conversation"])[0]["status"] == "interrupted"
    assert gate_again.entered == []


CRASHING = """
    import asyncio, os, sys
    from pathlib import Path
    from aios_nb.agents.definition import describe
    from tests.sites import TestSite, Gate

    gates = {name: Gate() for name in ("plain", "again", "later")}

    def agent(name, **options):
        async def work(text):
            await gates[name].pass_through(text)
            return text
        return describe(work, name=name, **options)

    site = TestSite(Path(sys.argv[1]), [agent("plain"), agent("again", idempotent=True),
                                        agent("later")])
    lane = site.call("chat.open", agents=["later"])["conversation"]
    for name, message_id, more in (
        ("plain", "m-plain", {}),
        ("again", "m-again", {}),
        ("later", "m-first", {"conversation": lane}),
        ("later", "m-queued", {"conversation": lane}),
        ("later", "m-late", {"conversation": lane, "deadline_s": 0.001}),
    ):
        site.call("chat.send", agent=name, text=name, message_id=message_id, wait=False, **more)
    for name in gates:
        site.node.run(lambda: gates[name].arrived(1))
    print(lane, flush=True)
    os.kill(os.getpid(), 9)
"""


@pytest.fixture
def crashed(tmp_path: Path) -> str:
    """A node that died with five messages open; the conversation of the last three."""
    return run_until_killed(CRASHING, tmp_path)


def run_until_killed(script: str, tmp_path: Path) -> str:
    """What the script printed before it killed itself."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "home")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout.strip()


def test_after_a_crash_what_had_begun_is_interrupted_and_the_rest_goes_on(
    crashed: str, make_site: MakeSite
) -> None:
    (plain, plain_gate), (again, again_gate), (later, later_gate) = (
        gated("plain"),
        gated("again", idempotent=True),
        gated("later"),
    )
    site = make_site(plain, again, later)
    with pytest.raises(AgentFailed) as cut:
        site.stream(message_id="m-plain")
    assert cut.value.data["status"] == "interrupted"
    assert plain_gate.entered == []

    site.node.run(lambda: again_gate.arrived(1))
    site.on_loop(again_gate.open)
    assert site.stream(message_id="m-again")[1]["text"] == "again did again"

    with pytest.raises(AgentFailed):
        site.stream(message_id="m-first")
    site.node.run(lambda: later_gate.arrived(1))
    site.on_loop(later_gate.open)
    assert site.stream(message_id="m-queued")[1]["text"] == "later did later"
    with pytest.raises(DeadlinePassed) as late:
        site.stream(message_id="m-late")
    assert late.value.data["ran"] == "no"
    rows = site.history(crashed)
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))


def test_what_had_not_begun_waits_for_its_agent_to_be_hosted_again(
    crashed: str, make_site: MakeSite
) -> None:
    site = make_site()
    joined = site.start("chat.send", agent="later", text="later", message_id="m-queued")
    assert site.history(crashed)[1]["status"] == "accepted"  # it waits
    later, gate = gated("later")
    site.node.host(later)
    site.node.run(lambda: gate.arrived(1))
    site.on_loop(gate.open)
    assert joined.result()["text"] == "later did later"


POSTED = """
    import os, sys
    from pathlib import Path
    from aios_nb.agents.definition import describe
    from tests.sites import TestSite, Gate

    gate = Gate()

    async def quick(text):
        return "quick"

    async def again(text):
        await gate.pass_through(text)
        return "again"

    site = TestSite(Path(sys.argv[1]), [quick, describe(again, idempotent=True, timeout_s=50)])
    conversation = site.call("chat.open", agents=["quick"])["conversation"]
    posted = site.call("chat.post", conversation=conversation, text="@quick @again go",
                       message_id="m")
    site.node.run(lambda: gate.arrived(1))
    while site.history(conversation)[-1]["text"] != "quick":
        pass
    print(conversation, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_a_repeat_of_a_half_recovered_message_is_still_a_repeat(
    tmp_path: Path, make_site: MakeSite
) -> None:
    conversation = run_until_killed(POSTED, tmp_path)

    async def quick(text: str) -> str:
        return "quick"

    again, gate = gated("again", idempotent=True, timeout_s=50)
    site = make_site(quick, again)
    site.node.run(lambda: gate.arrived(1))
    run = next(iter(site.rooms.chat.exchange._calls.values())).runs[0]
    assert site.on_loop(lambda: run.seconds_left) <= 50  # its agent's own limit counts again
    repeated = site.call(
        "chat.post", conversation=conversation, text="@quick @again go", message_id="m"
    )
    assert [one["agent"].split("@")[0] for one in repeated["replies"]] == ["quick", "again"]
    site.on_loop(gate.open)
    assert site.stream(message_id=repeated["replies"][1]["reply_id"])[1]["text"]
    assert [row["text"] for row in site.history(conversation) if row["kind"] == "message"] == [
        "@quick @again go", "quick", "again did @quick @again go",
    ]  # fmt: skip


def test_a_second_restart_changes_nothing(crashed: str, make_site: MakeSite) -> None:
    site = make_site()
    first = site.history(crashed)
    site.stop()
    site = make_site()
    second = site.history(crashed)
    assert first[0]["status"] == second[0]["status"] == "interrupted"
    interrupted = [row for row in second if row["status"] == "interrupted"]
    assert len({row["message_id"] for row in interrupted}) == len(interrupted)


def test_answers_from_before_a_restart_are_given_again(make_site: MakeSite) -> None:
    runs: list[str] = []

    async def once(text: str) -> str:
        runs.append(text)
        return text.upper()

    site = make_site(once)
    first = site.call("chat.send", agent="once", text="x", message_id="m")
    site.stop()
    site = make_site(once)
    assert site.call("chat.send", agent="once", text="x", message_id="m") == first
    assert runs == ["x"]
