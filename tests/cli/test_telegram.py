"""``aios-nb telegram`` as people run it: a real node, a real bridge, a Bot API server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import AGENTS, WAIT_S, Cli, environment
from tests.ports import free_port
from tests.telegram.botapi import BotApi, Settings


class Phone:
    """``aios-nb telegram``, and everything it prints, in a file."""

    def __init__(self, cli: Cli, api: BotApi, log: Path, *args: str, **env: str) -> None:
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "aios_nb", "telegram", "--json", *args],
                env=environment(
                    cli.home,
                    TELEGRAM_BOT_TOKEN=api.bot.token,
                    AIOS_TELEGRAM_API=api.base_url,
                    **env,
                ),
                stdout=subprocess.PIPE,
                stderr=out,
                text=True,
            )

    def ready(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        return json.loads(line)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=WAIT_S)


@pytest.fixture
def api() -> Iterator[BotApi]:
    with BotApi(settings=Settings(conflict_pause_s=0.2, webhook_retry_s=0.05)) as api:
        yield api


@pytest.fixture
def phone(cli: Cli, api: BotApi, tmp_path: Path) -> Iterator[Callable[..., Phone]]:
    """Starts bridges; none is left behind."""
    started: list[Phone] = []

    def start(*args: str, **env: str) -> Phone:
        started.append(Phone(cli, api, tmp_path / "telegram.log", *args, **env))
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.fixture
def word(cli: Cli, api: BotApi) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A word for the bridge, from another terminal."""

    def say(*args: str) -> subprocess.CompletedProcess[str]:
        return cli("telegram", *args, TELEGRAM_BOT_TOKEN=api.bot.token)

    return say


def answered(api: BotApi, person: Any, has: str) -> str:
    return api.wait(
        lambda: next((text for text in reversed(person.chat().texts()) if has in text), "")
    )


def those(word: Any) -> list[dict[str, Any]]:
    return json.loads(word("people", "--json").stdout)["people"]


def test_from_a_code_to_an_answer_and_to_the_end(cli, api, phone, word):
    cli.start("--name", "home", "--agents", str(AGENTS))
    bridge = phone()
    said = bridge.ready()
    assert (said["account"], said["name"]) == (str(api.bot.id), api.bot.username)
    assert (said["node"], said["people"]) == ("home", 0)

    offered = json.loads(word("pair", "--json").stdout)
    assert offered["link"] == f"https://t.me/{api.bot.username}?start={offered['code']}"
    assert (offered["expires_s"], offered["role"]) == (600, "owner")
    ada, bob = api.person("Ada"), api.person("Bob")
    ada.starts(offered["code"])
    answered(api, ada, "You are in")
    ada.says("/chat echo hello")
    assert "hello" in answered(api, ada, "echo\nhello")

    nowhere = word("pair", "--conversation", "nosuch")
    assert nowhere.returncode != 0
    assert len(nowhere.stderr.splitlines()) == 1
    led = json.loads(word("pair", "--json", "--conversation", "last").stdout)
    ada.says("/leave")
    answered(api, ada, "You are out")
    ada.says(f"/join {led['code']}")
    answered(api, ada, "You are in the conversation with echo.")

    second = json.loads(word("pair", "--json", "--agents", "spell").stdout)
    bob.says(f"/pair {second['code'].lower()}")
    answered(api, bob, "You are in")
    bob.says("/chat echo hello")
    answered(api, bob, "No agent is called echo. Did you mean spell?")

    people = api.wait(lambda: found if len(found := those(word)) == 2 else None)
    assert [(one["name"], one["role"]) for one in people] == [("Ada", "owner"), ("Bob", "member")]
    assert "Bob" in word("people").stdout
    assert word("unpair", str(bob.id)).stdout == f"{bob.id} is let in no more\n"
    api.wait(lambda: "Bob" not in word("people").stdout)
    assert "paired" in word("tried").stdout
    status = word("status").stdout
    assert f"@{api.bot.username}" in status
    assert "running" in status

    checks = cli("doctor").stdout
    assert f"@{api.bot.username} bridges the node home; 1 paired" in checks

    assert word("stop").stdout == "stopped\n"
    assert "is not bridged now" in cli("doctor").stdout
    assert bridge.process.wait(WAIT_S) == 0
    assert "stopped" in word("status").stdout
    again = word("stop")
    assert again.returncode == 3
    assert "no bridge runs" in again.stderr


def test_the_first_code_may_be_made_before_the_bridge_is_there(cli, api, phone, word):
    cli.start("--name", "home")
    code = json.loads(word("pair", "--json").stdout)["code"]
    phone().ready()
    ada = api.person("Ada")
    ada.says(f"/pair {code}")
    answered(api, ada, "You are in")


def test_a_bridge_that_is_killed_leaves_the_bot_to_the_next(cli, api, phone, word):
    cli.start("--name", "home", "--agents", str(AGENTS))
    first = phone()
    first.ready()
    refused = phone()
    assert refused.process.wait(WAIT_S) == 1
    assert "is bridged already" in refused.log.read_text()
    ada = api.person("Ada")
    ada.says(f"/pair {json.loads(word('pair', '--json').stdout)['code']}")
    answered(api, ada, "You are in")
    first.process.kill()
    first.process.wait(WAIT_S)
    ada.says("/chat echo still there?")
    assert phone().ready()["people"] == 1
    answered(api, ada, "echo\nstill there?")


def test_a_signal_ends_it_in_good_order(cli, api, phone):
    cli.start("--name", "home")
    bridge = phone()
    bridge.ready()
    bridge.process.send_signal(signal.SIGTERM)
    assert bridge.process.wait(WAIT_S) == 0


def test_by_webhook_with_the_secret_of_a_variable(cli, api, phone, word):
    cli.start("--name", "home")
    url = f"http://127.0.0.1:{free_port()}/hook"
    phone("--webhook", url, "--secret-env", "HOOK", HOOK="s" * 40).ready()
    ada = api.person("Ada")
    ada.says(f"/pair {json.loads(word('pair', '--json').stdout)['code']}")
    answered(api, ada, "You are in")
    assert api.record.of("setWebhook")
    assert not api.record.of("getUpdates")


@pytest.mark.parametrize(
    ("env", "args", "code", "says"),
    [
        ({"TELEGRAM_BOT_TOKEN": ""}, (), 2, "there is no bot token (BotFather gives one"),
        ({"TELEGRAM_BOT_TOKEN": "hello"}, (), 2, "that is not a bot token"),
        ({"TELEGRAM_BOT_TOKEN": "1:" + "x" * 35}, (), 2, "Telegram does not know this bot token"),
        ({}, ("--secret-env", "NOPE"), 2, "that is for a webhook only"),
        ({}, ("--webhook", "https://x.example", "--secret-env", "NOPE"), 2, "NOPE is not set"),
        ({}, ("--api-url", "ftp://x"), 2, "no address of a Bot API server"),
        ({}, ("--node", "nobody"), 3, "no node called nobody is running"),
        ({}, ("pear",), 2, "invalid choice"),
    ],
)
def test_a_beginners_mistake_is_one_line(site, api, env, args, code, says):
    given = {"TELEGRAM_BOT_TOKEN": api.bot.token, "AIOS_TELEGRAM_API": api.base_url, **env}
    done = site("telegram", *args, **given)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_token_may_be_in_a_file_of_ones_own(cli, api):
    cli.home.mkdir(mode=0o700)
    file = cli.home / "telegram.token"
    file.write_text(f"{api.bot.token}\n")
    file.chmod(0o644)
    open_to_all = cli("telegram", "status")
    assert "others can read telegram.token" in open_to_all.stderr
    file.chmod(0o600)
    assert "no bot is bridged here" in cli("telegram", "status").stderr


def test_the_token_is_nowhere(cli, api, phone, word, tmp_path):
    """Not in the database, the logs, what is printed, nor in any other file; also when it fails."""
    cli.start("--name", "home")
    bridge = phone(AIOS_DEBUG="1", PYTHONASYNCIODEBUG="1")
    bridge.ready()
    ada = api.person("Ada")
    ada.says(f"/pair {json.loads(word('pair', '--json').stdout)['code']}")
    answered(api, ada, "You are in")
    ada.says(f"my token is {api.bot.token}, keep it")  # said by a person: their own words
    api.faults.cut("sendMessage")
    ada.says("/help")
    answered(api, ada, "Talk")
    api.revoke()
    bridge.process.wait(WAIT_S)
    printed = [word(what).stdout + word(what).stderr for what in ("status", "people", "tried")]
    secret = api.bot.token.partition(":")[2]
    assert not [text for text in printed if secret in text]
    kept = [path for path in (*cli.home.rglob("*"), *tmp_path.rglob("*.log")) if path.is_file()]
    assert any(path.suffix == ".db" for path in kept)
    mine = [path.name for path in kept if secret.encode() in path.read_bytes()]
    assert [name for name in mine if not name.startswith("home.db")] == []
    assert os.environ.get("TELEGRAM_BOT_TOKEN") is None
