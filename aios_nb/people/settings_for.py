"""Settings with which other programs reach this user's agents by MCP: what to put where.

They name a command, ``aios-nb stdio``, which finds the node and its token by itself: no secret is
in them. Where a URL is wanted instead, the token is left to an environment variable or a prompt.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any

import msgspec

from aios_nb.errors import UsageError
from aios_nb.home import Home

NAME = "aios"
"""What the server is called in the settings."""
PORT = 8765
VARIABLE = "AIOS_TOKEN"
BY_URL = "By URL instead, without a process of its own for each client"
"""Stands above the other way."""


class Step(msgspec.Struct, frozen=True):
    """Something to copy, and where it goes."""

    about: str
    text: str
    form: str
    """``json``, ``toml`` or ``sh``."""
    file: str = ""

    def fields(self) -> dict[str, str]:
        return {"about": self.about, "file": self.file, "form": self.form, "text": self.text}


class Settings(msgspec.Struct, frozen=True):
    """All there is to do for one client."""

    client: str
    title: str
    by_command: tuple[Step, ...]
    next: str
    by_url: tuple[Step, ...]

    def fields(self) -> dict[str, Any]:
        return {
            "client": self.client,
            "title": self.title,
            "by_command": [step.fields() for step in self.by_command],
            "next": self.next,
            "by_url": [step.fields() for step in self.by_url],
        }


class Machine(msgspec.Struct, frozen=True):
    """Where settings are on this machine, and how our command is called here."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    url: str
    folder: PurePath
    """The home of the person."""
    platform: str
    environ: Mapping[str, str]

    @property
    def application_data(self) -> PurePath:
        """Where programs with windows keep their settings."""
        if self.platform == "win32":
            return PureWindowsPath(self.environ.get("APPDATA") or "%APPDATA%")
        if self.platform == "darwin":
            return self.folder / "Library" / "Application Support"
        chosen = self.environ.get("XDG_CONFIG_HOME")
        return PurePosixPath(chosen) if chosen else self.folder / ".config"

    def server(self, **more: str) -> dict[str, Any]:
        """The command, as most programs write it."""
        program, *arguments = self.command
        server: dict[str, Any] = {**more, "command": program, "args": arguments}
        return {**server, "env": dict(self.environment)} if self.environment else server

    def shell(self, *before: str) -> str:
        return shlex.join([*before, *self.command])

    def ours(self, *words: str) -> str:
        """Another command of ours, for a terminal."""
        program = self.command[: self.command.index("stdio")]
        before = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*before, shlex.join([*program, *words])])

    def token(self, client: str) -> str:
        """What prints a token that may only chat."""
        node = self.command[self.command.index("stdio") + 1 :]
        return self.ours("token", "create", "--prefix", f"{client}:", *node)


def settings_for(
    client: str, home: Home, *, node: str | None = None, url: str | None = None
) -> Settings:
    """What to do so that this client has our agents; ``UsageError`` offers the near names.

    ``node`` names the node to use, else it is the only one that runs. ``url`` is where a running
    node is.
    """
    made = CLIENTS.get(client.lower())
    if made is None:
        near = difflib.get_close_matches(client.lower(), CLIENTS, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"one of {', '.join(CLIENTS)}"
        raise UsageError(f"no settings are known for {client[:40]!r}", hint=hint)
    return made(this_machine(home, node=node, url=url))


def this_machine(home: Home, *, node: str | None, url: str | None) -> Machine:
    named = ("--node", node) if node else ()
    usual = Path.home() / ".aios_nb"
    return Machine(
        command=(*_program(), "stdio", *named),
        environment={} if home.path == usual else {"AIOS_HOME": str(home.path)},
        url=f"{(url or f'http://127.0.0.1:{PORT}').rstrip('/')}/mcp",
        folder=Path.home(),
        platform=sys.platform,
        environ=os.environ,
    )


def _program() -> tuple[str, ...]:
    """The command line of this very Python, whatever is first in the path of another program."""
    beside = Path(sys.executable).parent / "aios-nb"
    if os.access(beside, os.X_OK):
        return (str(beside),)
    return (sys.executable, "-m", "aios_nb")


# Clients ---------------------------------------------------------------------------------


def _claude(machine: Machine) -> Settings:
    path = machine.application_data / "Claude" / "claude_desktop_config.json"
    variables = [f"--env={name}={value}" for name, value in machine.environment.items()]
    code = machine.shell("claude", "mcp", "add", *variables, "--scope", "user", NAME, "--")
    return Settings(
        client="claude",
        title="Claude",
        by_command=(
            _json("Claude Desktop (Settings, Developer, Edit Config)", path,
                  {"mcpServers": {NAME: machine.server()}}),
            Step("Claude Code, in a terminal", code, "sh"),
        ),
        next="Quit Claude Desktop and open it again; in Claude Code, /mcp lists it. Then ask: "
             "which agents are there?",
        by_url=(
            _fixed_port(machine),
            _variable(machine, "claude", "Claude Code"),
            _json("Claude Code, in the folder of a project", PurePath(".mcp.json"),
                  {"mcpServers": {NAME: {"type": "http", **_url(machine, f"${{{VARIABLE}}}")}}}),
        ),
    )  # fmt: skip


def _vscode(machine: Machine) -> Settings:
    path = machine.application_data / "Code" / "User" / "mcp.json"
    prompt = {
        "type": "promptString", "id": "aios-token", "description": "Token of the aios node",
        "password": True,
    }  # fmt: skip
    asked = {"type": "http", **_url(machine, "${input:aios-token}")}
    return Settings(
        client="vscode",
        title="VS Code",
        by_command=(
            _json("VS Code (MCP: Open User Configuration), or .vscode/mcp.json of a folder", path,
                  {"servers": {NAME: machine.server(type="stdio")}}),
        ),
        next="Run “MCP: List Servers”, start aios, and ask Copilot in agent mode: which agents are "
             "there?",
        by_url=(
            _fixed_port(machine),
            Step("A token that may only chat, to paste when VS Code asks for it",
                 machine.token("vscode"), "sh"),
            _json("VS Code keeps it encrypted", path,
                  {"inputs": [prompt], "servers": {NAME: asked}}),
        ),
    )  # fmt: skip


def _cursor(machine: Machine) -> Settings:
    path = machine.folder / ".cursor" / "mcp.json"
    return Settings(
        client="cursor",
        title="Cursor",
        by_command=(
            _json("Cursor, for all folders; .cursor/mcp.json for one", path,
                  {"mcpServers": {NAME: machine.server()}}),
        ),
        next="Open Cursor's MCP settings, switch aios on, and ask: which agents are there?",
        by_url=(
            _fixed_port(machine),
            _variable(machine, "cursor", "Cursor"),
            _json("Cursor", path, {"mcpServers": {NAME: _url(machine, f"${{env:{VARIABLE}}}")}}),
        ),
    )  # fmt: skip


def _codex(machine: Machine) -> Settings:
    chosen = machine.environ.get("CODEX_HOME")
    path = (PurePath(chosen) if chosen else machine.folder / ".codex") / "config.toml"
    program, *arguments = machine.command
    lines = [f"[mcp_servers.{NAME}]", f"command = {_toml(program)}", f"args = {_toml(arguments)}"]
    if machine.environment:
        lines += ["", f"[mcp_servers.{NAME}.env]"]
        lines += [f"{name} = {_toml(value)}" for name, value in machine.environment.items()]
    far = f'[mcp_servers.{NAME}]\nurl = {_toml(machine.url)}\nbearer_token_env_var = "{VARIABLE}"'
    return Settings(
        client="codex",
        title="Codex",
        by_command=(Step("Codex", "\n".join(lines), "toml", str(path)),),
        next="Start codex; /mcp lists aios. Then ask: which agents are there?",
        by_url=(
            _fixed_port(machine),
            _variable(machine, "codex", "Codex"),
            Step("Codex", far, "toml", str(path)),
        ),
    )


CLIENTS: Mapping[str, Callable[[Machine], Settings]] = {
    "claude": _claude,
    "vscode": _vscode,
    "cursor": _cursor,
    "codex": _codex,
}


def _json(about: str, path: PurePath, value: Any) -> Step:
    return Step(about, json.dumps(value, indent=2, ensure_ascii=False), "json", str(path))


def _toml(value: Any) -> str:
    """A text or a list of texts: JSON writes both as TOML does, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _url(machine: Machine, token: str) -> dict[str, Any]:
    return {"url": machine.url, "headers": {"Authorization": f"Bearer {token}"}}


def _fixed_port(machine: Machine) -> Step:
    port = machine.url.removesuffix("/mcp").rpartition(":")[2]
    up = machine.ours("up", "--port", port)
    return Step("The node, always at the same address", up, "sh")


def _variable(machine: Machine, client: str, program: str) -> Step:
    return Step(
        f"A token that may only chat, where {program} finds it; start {program} from there",
        f'export {VARIABLE}="$({machine.token(client)})"',
        "sh",
    )
