"""What ``mcp-config`` prints is used as it stands: read by a parser, run as a command."""

from __future__ import annotations

import json
import shlex
import subprocess
import tomllib
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any
from urllib.request import Request, urlopen

import pytest

from aios_nb.errors import UsageError
from aios_nb.home import Home
from aios_nb.people.settings_for import CLIENTS, Machine, settings_for
from tests.cli.conftest import WAIT_S
from tests.cli.lines import modern

READ = {"json": json.loads, "toml": tomllib.loads}


def server_in(settings: Any) -> dict[str, Any]:
    """The one server, wherever this client has it."""
    ((_, servers),) = ((key, each) for key, each in settings.items() if key != "inputs")
    ((name, server),) = servers.items()
    assert name == "aios"
    return server


def tools_of(command: list[str], env: dict[str, str]) -> list[str]:
    """What a client finds that starts this command, with next to nothing in its environment."""
    done = subprocess.run(
        command,
        env={"PATH": "/usr/bin:/bin", **env},
        input=json.dumps(modern(1, "tools/list")),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
    )
    return [tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_settings_for_a_client_start_a_server_that_answers(site, client):
    said = site.json("mcp-config", client)
    step = said["by_command"][0]
    server = server_in(READ[step["form"]](step["text"]))

    assert PurePosixPath(step["file"]).is_absolute()
    assert server["env"] == {"AIOS_HOME": str(site.home)}
    assert "agent_send" in tools_of([server["command"], *server["args"]], server["env"])


def test_the_line_for_claude_code_is_a_command_too(site):
    line = site.json("mcp-config", "claude", "--node", "alice")["by_command"][1]["text"]
    options, _, command = line.partition(" -- ")

    assert shlex.split(options) == [
        "claude", "mcp", "add", f"--env=AIOS_HOME={site.home}", "--scope", "user", "aios",
    ]  # fmt: skip
    assert shlex.split(command)[-3:] == ["stdio", "--node", "alice"]


@pytest.mark.parametrize("client", CLIENTS)
def test_by_url_the_token_is_left_to_the_environment_or_a_prompt(site, client):
    run = Home(site.home).find()
    said = settings_for(client, Home(site.home), url=run.url)
    up, token, settings = said.by_url
    server = server_in(READ[settings.form](settings.text))

    assert server["url"] == f"{run.url}/mcp"
    assert f"--port {run.url.rpartition(':')[2]}" in up.text
    assert f"token create --prefix {client}:" in token.text
    assert ("${input:aios-token}" if client == "vscode" else "AIOS_TOKEN") in str(server)
    assert run.token not in json.dumps(said.fields())


def test_what_is_printed_can_be_copied(site):
    said = site.json("mcp-config", "codex")
    printed = site("mcp-config", "codex").stdout
    for step in said["by_command"] + said["by_url"]:
        assert step["text"] in printed
        assert step["file"] in printed
    assert said["next"] in printed


def test_the_token_of_a_client_that_comes_by_url_opens_the_node(site):
    run = Home(site.home).find()
    line = settings_for("codex", Home(site.home), url=run.url).by_url[1].text
    done = subprocess.run(
        ["bash", "-c", f'{line} && echo "$AIOS_TOKEN"'],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    token = done.stdout.strip()
    asked = {"jsonrpc": "2.0", "id": 1, "method": "agents.list"}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urlopen(Request(f"{run.url}/rpc", json.dumps(asked).encode(), headers)) as answer:
        assert "agents" in json.load(answer)["result"]


def test_an_unknown_client_offers_the_near_ones(site, aios_home):
    wrong = site("mcp-config", "cluade")
    assert wrong.returncode == 2
    assert "did you mean claude" in wrong.stderr
    with pytest.raises(UsageError, match="no settings") as error:
        settings_for("zzz", Home(aios_home))
    assert error.value.hint == "one of claude, vscode, cursor, codex"


@pytest.mark.parametrize(
    ("platform", "folder", "claude", "vscode"),
    [
        ("linux", PurePosixPath("/home/ada"), "/home/ada/.config/Claude/claude_desktop_config.json",
         "/home/ada/.config/Code/User/mcp.json"),
        ("darwin", PurePosixPath("/Users/ada"),
         "/Users/ada/Library/Application Support/Claude/claude_desktop_config.json",
         "/Users/ada/Library/Application Support/Code/User/mcp.json"),
        ("win32", PureWindowsPath("C:/Users/ada"),
         "C:\\Roaming\\Claude\\claude_desktop_config.json", "C:\\Roaming\\Code\\User\\mcp.json"),
    ],
)  # fmt: skip
def test_each_system_has_its_own_places(platform, folder, claude, vscode):
    machine = Machine(
        command=("/a b/aios-nb", "stdio"),
        environment={},
        url="http://127.0.0.1:1/mcp",
        folder=folder,
        platform=platform,
        environ={"APPDATA": "C:\\Roaming"},
    )
    files = {name: made(machine).by_command[0].file for name, made in CLIENTS.items()}
    assert files == {
        "claude": claude,
        "vscode": vscode,
        "cursor": str(folder / ".cursor" / "mcp.json"),
        "codex": str(folder / ".codex" / "config.toml"),
    }
    assert (
        "env" not in json.loads(CLIENTS["cursor"](machine).by_command[0].text)["mcpServers"]["aios"]
    )
    assert "'/a b/aios-nb' stdio" in CLIENTS["claude"](machine).by_command[1].text
