"""What another node says is read as data: in the agreed form, in bounds, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from aios_nb.chat.answers import (
    BUSY_MAX_S,
    SAID_CHARS,
    is_end,
    read_answer,
    read_delta,
    retry_after_s,
    told_by,
)
from aios_nb.envelope import Status
from aios_nb.errors import AgentFailed, Busy, InternalError, NoSuchAgent, RpcError, Unreachable

FILE = {"name": "a.txt", "mime": "text/plain", "size": 3, "sha256": "0" * 64}


def test_an_envelope_and_a_stream_end_in_the_same_answer():
    said = {"status": "success", "result": "42", "data": {"n": 42}, "files": [FILE]}
    streamed = {"status": "done", "text": "42", "data": {"n": 42}, "files": [FILE]}

    assert read_answer({"content": said}) == read_answer(streamed)
    assert read_answer(streamed).status is Status.DONE
    assert read_answer({"content": {"status": "success", "result": [1, 2]}}).text == "[1,2]"


def test_a_question_has_an_id_to_answer_it_by():
    asked = {"status": "input_required", "text": "who?", "question": "q1"}

    assert read_answer(asked).question == "q1"
    for wrong in (None, "", "a b", "q" * 200):
        with pytest.raises(AgentFailed, match="not understood"):
            read_answer({**asked, "question": wrong})


@pytest.mark.parametrize(
    "result",
    [None, 7, [], {}, {"status": "running"}, {"status": "done", "text": 1}, {"content": "x"}],
)
def test_what_is_no_answer_is_a_failure_of_the_agent(result: Any):
    with pytest.raises(AgentFailed, match="not understood"):
        read_answer(result)


@pytest.mark.parametrize("delta", [None, "x", {}, {"offset": "0", "text": ""}, {"offset": 0}])
def test_what_is_no_piece_is_a_failure_of_the_agent(delta: Any):
    assert read_delta({"offset": 3, "text": "x", "more": 1}).offset == 3
    with pytest.raises(AgentFailed, match="not understood"):
        read_delta(delta)


def test_errors_about_the_task_keep_their_kind_and_others_are_its_nodes_trouble():
    assert type(told_by(NoSuchAgent("gone"))) is NoSuchAgent
    for trouble in (InternalError("oops"), Unreachable("no way"), RpcError("new", code=-32099)):
        told = told_by(trouble)
        assert type(told) is AgentFailed
        assert told.message == f"its node answered: {trouble.message}"


def test_of_an_error_only_what_is_known_and_short_is_passed_on():
    error = AgentFailed("x" * 5000, hint="y" * 5000)
    error.data = {"ran": "yes", "status": "failed", "reason": "z" * 5000, "retry_after_s": -1}
    error.data |= {"near": ["secret"], "code": 1}
    told = told_by(error)

    assert told.data == {"ran": "yes", "status": "failed"}
    assert len(told.message) == SAID_CHARS
    assert len(told.hint or "") == SAID_CHARS
    assert is_end(told)


@pytest.mark.parametrize(
    ("said", "waits_s"), [(None, 0.0), ("5", 0.0), (5, 5.0), (-5, 0.0), (1e9, BUSY_MAX_S)]
)
def test_a_busy_node_is_given_the_time_it_asks_for_within_reason(said: Any, waits_s: float):
    busy = Busy("later")
    busy.data["retry_after_s"] = said
    assert retry_after_s(busy) == waits_s
