"""MCP servers behind a command: they are talked to, kept in bounds, and gone at the end."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from aios_nb.errors import AgentFailed, Unreachable, UsageError
from aios_nb.wire.outside import stdio
from tests.wire.outside.servers import Guest, Talk, run, script

REAL = """
import asyncio, os
from typing import Annotated
from mcp.server.mcpserver import Context, MCPServer, Resolve
from mcp.server.mcpserver.resolve import Elicit
from pydantic import BaseModel

server = MCPServer("a program", log_level="CRITICAL")

class Name(BaseModel):
    name: str

def who() -> Elicit[Name]:
    return Elicit("Who is there?", Name)

@server.tool()
def env() -> dict[str, str]:
    return dict(os.environ)

@server.tool()
async def greet(name: Annotated[Name, Resolve(who)]) -> str:
    return f"Hello {name.name}"

@server.tool()
async def wait(ctx: Context) -> str:
    await ctx.report_progress(1, 2, "waiting")
    await asyncio.sleep(3600)
    return "never"

server.run()
"""

BY_HAND = """
import json, os, subprocess, sys, time
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("go", "come")]
def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
def until(wanted):
    "The next such message; lists are given meanwhile."
    while True:
        message = json.loads(sys.stdin.readline())
        if wanted(message):
            return message
        if message.get("method") == "tools/list":
            say({"id": message["id"], "result": {"tools": TOOLS}})
def serve(go, begin=lambda: None):
    begin()
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if number is None or method is None:
            continue
        if method == "initialize":
            hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            say({"id": number, "result": {**hello, "serverInfo": {"name": "x", "version": "1"}}})
        elif method == "tools/list":
            say({"id": number, "result": {"tools": TOOLS}})
        elif method == "tools/call":
            text = go(message)
            say({"id": number, "result": {"content": [{"type": "text", "text": str(text)}]}})
        else:
            say({"id": number, "error": {"code": -32601, "message": "what?"}})
"""


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "LEAVE_S", 0.3)


def by_hand(tmp_path: Path, body: str) -> list[str]:
    found = script(tmp_path, BY_HAND + textwrap.dedent(body))
    return [found[0], "-S", *found[1:]]


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


async def until_dead(pid: int) -> None:
    while is_alive(pid):  # noqa: ASYNC110 - a process of others tells nobody
        await asyncio.sleep(0.02)


def test_a_real_server_is_asked_and_asks_with_nothing_of_ours_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOS_TOKEN", "secret")

    async def main() -> None:
        async with Guest(script(tmp_path, REAL), env={"KEY": "given"}) as guest:
            assert guest.seen.title == "a program"
            found = (await guest.say("env")).data
            assert found["KEY"] == "given"
            assert set(found) <= {"KEY", *stdio.PASSED_ON}
            assert (await guest.say("greet", run=Talk("Ann"))).text == "Hello Ann"

            talk = Talk()
            call = asyncio.create_task(guest.say("wait", run=talk))
            await talk.told(1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert (await guest.say("greet", run=Talk("Bob"))).text == "Hello Bob"
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main)
    gc.collect()


def test_a_program_and_all_it_started_are_gone_at_the_end(tmp_path: Path) -> None:
    command = by_hand(
        tmp_path,
        """
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        def go(message):
            child = subprocess.Popen(["sleep", "3600"])
            return f"{os.getpid()} {child.pid}"
        serve(go)
        time.sleep(3600)  # its input has ended, and it does not care
        """,
    )

    async def main() -> None:
        async with Guest(command) as guest:
            pids = [int(pid) for pid in (await guest.say("go")).text.split()]
            assert all(map(is_alive, pids))
            assert int((await guest.say("go")).text.split()[0]) == pids[0]  # it is used again
        for pid in pids:
            await until_dead(pid)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main)
    gc.collect()


def test_a_program_dies_with_its_node(tmp_path: Path) -> None:
    """Also if the node is killed, and the program does not read its input."""
    command = by_hand(tmp_path, "time.sleep(3600)\n")
    node = textwrap.dedent(
        f"""
        import asyncio
        from aios_nb.wire.outside.stdio import Program
        async def main():
            program = Program({command!r}, {{}})
            async with program.streams():
                print(program.pid, flush=True)
                await asyncio.sleep(3600)
        asyncio.run(main())
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", node], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
    ) as process:
        pid = int(process.stdout.readline())
        assert is_alive(pid)
        process.send_signal(signal.SIGKILL)

    async def main() -> None:
        await until_dead(pid)

    run(main)


def test_a_program_that_dies_is_one_line_and_started_again(tmp_path: Path) -> None:
    command = by_hand(
        tmp_path,
        """
        def go(message):
            if not os.path.exists(sys.argv[0] + ".once"):
                open(sys.argv[0] + ".once", "w").close()
                os._exit(1)
            return "alive"
        serve(go)
        """,
    )

    async def main() -> None:
        async with Guest(command) as guest:
            with pytest.raises(AgentFailed, match="has ended") as died:
                await guest.say("go")
            assert died.value.data["ran"] == "unknown"
            assert (await guest.say("go")).text == "alive"

    run(main)


def test_its_complaints_go_to_the_log_cleaned_and_cut(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    command = by_hand(
        tmp_path,
        """
        def begin():
            print("Welcome! This is no message.", flush=True)
            print("\\x1b[31mred\\u202e alert", file=sys.stderr)
            print("\\n".join(["again"] * 1000), file=sys.stderr)
            sys.stderr.write("x" * 1_000_000)
            sys.stderr.flush()
        serve(lambda message: "fine", begin=begin)
        """,
    )
    caplog.set_level(logging.INFO, "aios_nb.outside")

    async def main() -> None:
        async with Guest(command) as guest:
            assert (await guest.say("go")).text == "fine"

    run(main)
    said = [record.getMessage() for record in caplog.records if record.name == "aios_nb.outside"]
    assert any(line.endswith("red alert") for line in said)
    assert len(said) <= stdio.LOGGED_LINES
    assert sum(map(len, said)) < 50_000
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.exit(1)", "has ended"),
        ("while True: print('no')", "does not speak MCP"),
        ("while True: sys.stdout.write('x' * 65536)", "more than 1 MB"),
    ],
)
def test_a_program_that_does_not_speak_mcp_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, words: str
) -> None:
    monkeypatch.setattr(stdio, "LINE_LIMIT_BYTES", 1 << 20)

    async def main() -> None:
        guest = Guest(by_hand(tmp_path, body + "\n"))
        with pytest.raises((Unreachable, AgentFailed), match=words):
            await guest.server.look()
        await guest.server.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main)
    gc.collect()


def test_a_command_that_is_none_is_refused() -> None:
    async def main() -> None:
        guest = Guest(["/no/such/program"])
        with pytest.raises(Unreachable, match="program could not be started: no such file"):
            await guest.server.look()
        await guest.server.close()

    run(main)
    for command in ([], [""], ["a\0b"]):
        with pytest.raises(UsageError):
            Guest(command)


def test_a_question_of_a_call_that_is_given_up_is_not_asked_any_more(tmp_path: Path) -> None:
    command = by_hand(
        tmp_path,
        """
        def go(message):
            schema = {"type": "object", "properties": {"n": {"type": "string"}}}
            params = {"message": "Well?", "requestedSchema": schema}
            say({"id": 900, "method": "elicitation/create", "params": params})
            until(lambda message: message.get("id") == 900)
            return "told"
        serve(go)
        """,
    )

    async def main() -> None:
        async with Guest(command) as guest:
            talk = Talk()
            call = asyncio.create_task(guest.say("go", run=talk))
            await talk.was_asked.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await talk.is_free.wait()
            assert (await guest.say("go", run=Talk("me"))).text == "told"  # of the same program

    run(main)


def test_a_question_that_could_be_anybodys_is_asked_of_nobody(tmp_path: Path) -> None:
    """In the old era a program's question does not say which call it belongs to."""
    command = by_hand(
        tmp_path,
        """
        waiting = []
        def answer_all():
            schema = {"type": "object", "properties": {"n": {"type": "string"}}}
            params = {"message": "Whose?", "requestedSchema": schema}
            say({"id": 900, "method": "elicitation/create", "params": params})
            reply = until(lambda message: message.get("id") == 900)
            for number in waiting:
                text = json.dumps(reply.get("error") or reply.get("result"))
                result = {"content": [{"type": "text", "text": text}]}
                say({"id": number, "result": result})
        def go(message):
            # Two calls first, then one question.
            waiting.append(message["id"])
            second = until(lambda message: message.get("method") == "tools/call")
            waiting.append(second["id"])
            answer_all()
            waiting.clear()
            return ""
        serve(go)
        """,
    )

    async def main() -> None:
        async with Guest(command) as guest:
            ann, bob = Talk("mine"), Talk("mine")
            found = await asyncio.gather(
                guest.say("go", run=ann, caller="ann"), guest.say("go", run=bob, caller="bob")
            )
            assert [one.text.count("nobody to ask") for one in found] == [1, 1]
            assert ann.questions == bob.questions == []

    run(main)
