"""An agent of others may say anything: it is held to its task, to bounds, and to one line."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
from a2a.helpers.proto_helpers import new_text_part
from a2a.server.tasks import TaskUpdater
from aiohttp import web
from google.protobuf.json_format import MessageToDict

from aios_nb.errors import AgentFailed, Busy, NotAllowed, RpcError, Unreachable
from tests.wire.a2a.stage import Stage
from tests.wire.outside.a2apeers import CALLER, House, Listener, agent, card_for, in_house

DONE = {"state": "TASK_STATE_COMPLETED"}
WORKING = {"state": "TASK_STATE_WORKING"}


def task(status: Any = DONE, **more: Any) -> dict[str, Any]:
    return {"task": {"id": "t1", "contextId": "x1", "status": status, **more}}


def piece(text: str, their_id: str = "t1", name: str = "a", **more: Any) -> dict[str, Any]:
    artifact = {"artifactId": name, "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": their_id, "artifact": artifact, **more}}


def end(status: Any = DONE, their_id: str = "t1") -> dict[str, Any]:
    return {"statusUpdate": {"taskId": their_id, "status": status}}


class Rogue:
    """Answers every message with the events that the test gives, in one stream."""

    def __init__(
        self, *events: Any, status: int = 200, headers: Any = None, tail: bytes = b""
    ) -> None:
        self.events = events
        self.status = status
        self.headers = headers or {}
        self.tail = tail
        self.heard: list[dict[str, Any]] = []
        self.url = ""
        self.tasks: list[Any] = []
        self.then: list[Any] = []
        """What it says to an answer of ours."""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response(MessageToDict(card_for(self.url)))
        call = json.loads(await request.read())
        self.heard.append(call)
        message = call["params"].get("message", {})
        if call["method"] == "GetTask":
            found = self.tasks.pop(0) if self.tasks and call["params"]["id"] == "t1" else None
            gone = {"error": {"code": -32001, "message": "no such task"}}
            return web.json_response({"jsonrpc": "2.0", "id": 1} | (found or gone))
        if self.status != 200:
            return web.Response(status=self.status, headers=self.headers)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in self.events if not self.then or "taskId" not in message else self.then:
            said = event if isinstance(event, bytes) else json.dumps(
                {"jsonrpc": "2.0", "id": 1, "result": event}
            ).encode()  # fmt: skip
            await response.write(b": ping\r\n\r\ndata: " + said + b"\r\n\r\n")
        await response.write(self.tail)
        return response

    def methods(self) -> list[str]:
        return [call["method"] for call in self.heard if call["params"].get("id", "t1") == "t1"]


def ask(tmp_path, rogue: Rogue, run: Listener | None = None) -> Any:
    async def work(house: House) -> Any:
        runner = web.ServerRunner(web.Server(rogue.answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        rogue.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            return await house.ask(rogue.url, "hi", run)
        finally:
            await house.outside.close()
            await runner.cleanup()

    return in_house(tmp_path, work)


def test_only_what_is_said_of_our_task_counts(tmp_path):
    rogue = Rogue(
        task(WORKING), piece("ours"), piece(" not", "t2"), end(WORKING, "t2"),
        {"task": {"id": "t3", "status": DONE}}, {"unknown": 1}, end(),
    )  # fmt: skip

    assert ask(tmp_path, rogue).text == "ours"


def test_an_answer_that_is_taken_back_is_told_as_it_ended(tmp_path):
    run = Listener()
    rogue = Rogue(
        task(WORKING), piece("one"), piece(" more", append=True), piece("other", name="b"),
        piece("ONE", append=False), end(),
    )  # fmt: skip

    assert ask(tmp_path, rogue, run).text == "ONE\n\nother"
    assert "".join(run.heard) == "one more\n\nother"


@pytest.mark.parametrize(
    ("rogue", "kind", "words"),
    [
        (Rogue(b"{"), AgentFailed, "not JSON-RPC"),
        (Rogue(b"[" * 100_000), AgentFailed, "not JSON-RPC"),
        (Rogue({"task": {"id": 7}}), AgentFailed, "not A2A"),
        (Rogue({"task": {"id": "x" * 600}}), AgentFailed, "cannot be used"),
        (Rogue({"task": {"id": ""}}), AgentFailed, "cannot be used"),
        (Rogue(), AgentFailed, "answered nothing"),
        (Rogue(b'{"jsonrpc":"2.0","error":{"code":-32603,"message":"no\\u001b[2J\\nway"}}'),
         AgentFailed, r"it refuses: no way"),
        (Rogue(b'{"jsonrpc":"2.0","error":"boom"}'), AgentFailed, "it refuses"),
        (Rogue(status=401), NotAllowed, "who asks"),
        (Rogue(status=429, headers={"Retry-After": "7"}), Busy, "too much to do"),
        (Rogue(status=500), AgentFailed, "not known: it answered with HTTP 500"),
        (Rogue(status=307, headers={"Location": "http://10.0.0.1/"}), Unreachable, "sends us"),
        (Rogue(task(artifacts=[{"parts": [{"raw": "!!"}]}])), AgentFailed, "cannot be read"),
        (Rogue(task(artifacts=[{"parts": [{"raw": "AAAA"}] * 17}])), AgentFailed, "17 files"),
        (Rogue(task(artifacts=[{"parts": [{"text": "x" * 2_000_000}]}])), AgentFailed, "longer"),
        (Rogue(task({"state": "TASK_STATE_CANCELED"})), RpcError, "cancelled over there"),
    ],
)  # fmt: skip
def test_nonsense_is_one_line(tmp_path, rogue, kind, words):
    with pytest.raises(kind, match=words) as caught:
        ask(tmp_path, rogue)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_what_is_not_taken_is_called_off(tmp_path):
    class Full(Listener):
        def delta(self, text: str) -> None:
            raise Busy("enough")

    rogue = Rogue(task(WORKING), piece("x"))
    with pytest.raises(Busy):
        ask(tmp_path, rogue, Full())
    assert rogue.methods()[-1] == "CancelTask"


def test_a_task_that_is_forgotten_over_there_is_interrupted_here(tmp_path):
    with pytest.raises(AgentFailed, match="does not know of it any more") as caught:
        ask(tmp_path, Rogue(task(WORKING)))
    assert caught.value.data["status"] == "interrupted"


def test_trouble_while_looking_up_is_waited_out(tmp_path):
    rogue = Rogue(task(WORKING))
    done = task(artifacts=[{"parts": [{"text": "late"}]}])["task"]
    rogue.tasks = [{"result": task(WORKING)["task"]}, {"result": done}]

    assert ask(tmp_path, rogue).text == "late"


def test_a_question_that_was_answered_is_not_asked_again(tmp_path):
    def asks(number: int) -> dict[str, Any]:
        said = {"messageId": f"q{number}", "parts": [{"text": f"question {number}"}]}
        return {"state": "TASK_STATE_INPUT_REQUIRED", "message": said}

    rogue = Rogue(task(asks(1)))
    rogue.then = [task(asks(1)), end(WORKING), piece("done"), end()]
    run = Listener(["yes"])

    assert ask(tmp_path, rogue, run).text == "done"
    assert run.asked == ["question 1"]


def test_files_come_in_both_spellings_of_base64(tmp_path):
    content = bytes(range(248, 256)) * 4
    spelled = [base64.b64encode(content), base64.urlsafe_b64encode(content).rstrip(b"=")]
    parts = [{"raw": one.decode(), "filename": f"f{n}"} for n, one in enumerate(spelled)]

    files = ask(tmp_path, Rogue(task(artifacts=[{"artifactId": "a", "parts": parts}]))).files

    assert [(ref.name, ref.size) for ref in files] == [("f0", 32), ("f1", 32)]
    assert files[0].sha256 == files[1].sha256


def test_a_task_is_called_off_though_its_name_was_not_known_yet(tmp_path):
    async def work(house: House) -> None:
        async with agent() as there:
            real, there.worker.execute = there.worker.execute, None
            arrived = asyncio.Event()

            async def late(context: Any, queue: Any) -> None:
                arrived.set()
                await there.worker.go_on.wait()
                there.worker.go_on.clear()
                await real(context, queue)

            there.worker.execute = late
            run = Listener()
            asking = asyncio.create_task(house.ask(there.url, "slow", run))
            await arrived.wait()
            run.cancelled = True
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            there.worker.go_on.set()
            await there.worker.stopped.wait()

    in_house(tmp_path, work)


def test_a_conversation_that_was_forgotten_over_there_begins_anew(tmp_path):
    there = Stage(tmp_path / "there", name="there")

    async def work(house: House) -> Any:
        house.memory[f"{CALLER} c1"] = "c-long-gone"
        outcome = await house.ask(f"{there.node.url}/agents/parrot", "hello again")
        return outcome.text, house.memory[f"{CALLER} c1"]

    try:
        text, context = in_house(tmp_path, work)
    finally:
        there.stop()
    assert text == "hello again"
    assert context != "c-long-gone"


def test_an_answer_after_many_small_pieces_is_whole(tmp_path):
    words = [f"{n} " for n in range(500)]

    async def work(house: House) -> Any:
        async with agent() as there:

            async def many(updater: TaskUpdater, *_: Any) -> None:
                for n, word in enumerate(words):
                    await updater.add_artifact([new_text_part(word)], "a", append=n > 0)
                await updater.complete()

            there.worker.do_many = many
            run = Listener()
            return await house.ask(there.url, "many", run), run

    outcome, run = in_house(tmp_path, work)
    assert outcome.text == "".join(words) == "".join(run.heard)
