"""The server as a program, and what it writes down."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_it_runs_by_hand():
    command = [
        sys.executable,
        "-m",
        "tests.telegram.botapi",
        "--port",
        "0",
        "--token",
        "42:" + "x" * 35,
    ]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        base_url = program.stdout.readline().split()[1]
        token = program.stdout.readline().split()[1]
        program.stdout.readline()
        program.stdin.write("hello\n")
        program.stdin.flush()
        assert program.stdout.readline() == "Ada sent: hello\n"
        with urllib.request.urlopen(f"{base_url}{token}/getUpdates") as response:
            (update,) = json.load(response)["result"]
        program.terminate()
        program.stdin.close()
        assert program.wait(30) == 0
    assert update["message"]["text"] == "hello"


def test_calls_are_timed_and_counted(botapi, client, ada):
    client.send_message(ada.id, "one")
    client.send_message(ada.id, "two")
    client.send_chat_action(ada.id, "typing")
    first, second = botapi.record.of("sendMessage", chat=ada.id)
    assert first.at <= first.ended <= second.at <= second.ended
    assert first.ok
    assert first.effect
    assert first.result["text"] == "one"
    assert botapi.record.counts["sendMessage"] == botapi.record.counts["sendMessage", 200] == 2
    seen = "Helper sent: one\nHelper sent: two\nHelper action: typing"
    assert botapi.record.transcript(ada.id).endswith(seen)


def test_the_token_is_not_shown(botapi):
    assert botapi.bot.token not in repr(botapi.bot)


def test_the_server_knows_no_client_library_and_no_bridge():
    code = "import sys, tests.telegram.botapi; print([m for m in sys.modules if '.' not in m])"
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert not {"telegram", "aiogram", "aios_bots", "aios_nb"} & set(eval(shown.stdout))
