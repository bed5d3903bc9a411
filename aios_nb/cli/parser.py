"""The words of the command line. Imports nothing heavy: ``--help`` answers at once."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from aios_nb._version import __version__
from aios_nb.cli import simulations
from aios_nb.errors import UsageError
from aios_nb.people.numbers import count, port, seconds
from aios_nb.tilde import expanded

_ABOUT = "The Internet of AgentSites: offer agents, find them, talk to them."
_MORE = """\
A first look:
  aios-nb up --agents my_agents.py     host the agents in a file
  aios-nb ask echo hello               ask one of them, from another terminal
  aios-nb chat                         talk in the terminal
  aios-nb lab                          open JupyterLab on the quickstart

Commands find the node by --node NAME, else AIOS_NODE, else the only one that runs.
Exit codes: 0 done, 1 failed, 2 asked wrongly, 3 no node running, 130 interrupted.
"""
PASSED_ON = frozenset({"lab", "bench"})
"""Commands whose options belong to another program."""
_CHOICE = re.compile(r"invalid choice: '([^']*)'")


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        found = _CHOICE.search(message)
        if found and self.prog == "aios-nb":
            near = difflib.get_close_matches(found[1], list(_commands(self)), n=2, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else "see aios-nb --help"
            raise UsageError(f"there is no command {found[1]!r}", hint=hint)
        raise UsageError(message, hint=f"see {self.prog} --help")


def _commands(parser: argparse.ArgumentParser) -> Sequence[str]:
    for action in parser._actions:  # noqa: SLF001 (argparse has no public way to ask)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return list(action.choices)
    return []


def parse(argv: Sequence[str]) -> argparse.Namespace | None:
    """What was asked; ``does`` names the function. None when help or the version was printed."""
    parser = build()
    try:
        args, rest = parser.parse_known_args(list(argv))
    except SystemExit:
        return None
    if "does" not in args:
        parser.print_help(sys.stderr)
        raise UsageError("say what to do", hint="for example: aios-nb chat")
    if rest and not args.passes_on:
        raise UsageError(
            f"{args.command} does not know {rest[0]!r}",
            hint=f"see aios-nb {args.command} --help; text that starts with - goes after --",
        )
    if getattr(args, "agent", None):
        args.agent = args.agent.removeprefix("@")  # as in a chat
    args.rest = rest
    args.dashed = "--" in argv
    for name, default in (("node", None), ("home", None), ("json", False)):
        if name not in args:
            setattr(args, name, default)
    return args


def build() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = _Parser(prog="aios-nb", description=_ABOUT, epilog=_MORE)
    parser.add_argument("--version", action="version", version=f"aios-nb {__version__}")
    data = _Parser(add_help=False)
    data.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="print JSON, for programs"
    )
    commands = _Commands(
        parser.add_subparsers(metavar="COMMAND", dest="command", title="commands"),
        *_where(),
        data,
    )
    _starting(commands)
    _finding(commands)
    _guests(commands)
    _talking(commands)
    _keeping(commands)
    _rights(commands)
    _bridging(commands)
    _simulating(commands)
    return parser


def _where() -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    home = _Parser(add_help=False)
    node = _Parser(add_help=False)
    node.add_argument("--node", metavar="NAME", default=argparse.SUPPRESS, help="which node")
    home.add_argument(
        "--home",
        metavar="DIR",
        type=Path,
        default=argparse.SUPPRESS,
        help="where nodes keep their files (AIOS_HOME, ~/.aios_nb)",
    )
    return home, node


class _Commands:
    """Adds commands that share their common options."""

    def __init__(
        self,
        group: Any,
        home: argparse.ArgumentParser,
        node: argparse.ArgumentParser,
        data: argparse.ArgumentParser,
    ) -> None:
        self._group = group
        self._home = home
        self._node = node
        self._data = data

    def add(
        self,
        name: str,
        does: str,
        about: str,
        *,
        json: bool = True,
        passes_on: bool = False,
        node: bool = True,
        home: bool = True,
        example: str | None = None,
    ) -> argparse.ArgumentParser:
        parents = [self._home] if home and not passes_on else []
        parents += [self._node] if node and not passes_on else []
        parents += [self._data] if json and not passes_on else []
        command: argparse.ArgumentParser = self._group.add_parser(
            name,
            help=about,
            description=about[0].upper() + about[1:] + ".",
            parents=parents,
            add_help=not passes_on,
            epilog=f"Example: {example}" if example else None,
        )
        command.set_defaults(does=does, passes_on=passes_on)
        return command

    def below(self, command: argparse.ArgumentParser) -> _Commands:
        """Commands of a command, which may also be used without one of them."""
        group = command.add_subparsers(metavar="ACTION", dest="action", title="actions")
        return _Commands(group, self._home, self._node, self._data)


def _starting(commands: _Commands) -> None:
    lab = commands.add(
        "lab", "lab:lab", "open JupyterLab on the quickstart; more options go to it", passes_on=True
    )
    lab.add_argument("-h", "--help", action="help", help="show this, not JupyterLab's own help")

    up = commands.add(
        "up",
        "serve:up",
        "start a node and run until Ctrl-C",
        node=False,
        example="aios-nb up --agents my.py",
    )
    up.add_argument("--name", metavar="NAME", help="the node's name (node)")
    up.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    up.add_argument("--port", type=port, default=0, help="port to listen on (a free one)")
    up.add_argument(
        "--join",
        metavar="URL[#NODEID]",
        type=_join,
        action="append",
        default=[],
        help="link to the node there; its id says who must answer; may be given again",
    )
    up.add_argument(
        "--network",
        metavar="NAME",
        type=_network,
        default="main",
        help="nodes of other networks are not talked to (main)",
    )
    up.add_argument("--public-url", metavar="URL", help="how others reach this node")
    up.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a host name that requests may come with",
    )
    up.add_argument(
        "--agents",
        metavar="FILE_OR_MODULE",
        action="append",
        default=[],
        help="host the agents in it; may be given again",
    )
    up.add_argument("--library", metavar="DIR", type=_folder, help="where the librarian looks")
    up.add_argument(
        "--no-gossip", action="store_true", help="spread nothing; ask joined nodes for agents"
    )
    up.add_argument("--no-dht", action="store_true", help="do not look for nodes by asking around")
    up.add_argument(
        "--conformance", action="store_true", help="add the fixtures of public test suites"
    )

    commands.add(
        "stdio",
        "stdio:stdio",
        "be an MCP server on stdin and stdout, for clients that start one by a command",
        json=False,
    )
    config = commands.add(
        "mcp-config",
        "settings:mcp_config",
        "print settings for an MCP client: claude, vscode, cursor or codex",
        example="aios-nb mcp-config claude",
    )
    config.add_argument("client", metavar="CLIENT")
    commands.add("status", "look:status", "show the running node, or all of them")
    commands.add(
        "doctor", "doctor:doctor", "check this machine and the running node, say what to fix"
    )
    commands.add("bench", "lab:bench", "measure this node; options go to it", passes_on=True)


def _finding(commands: _Commands) -> None:
    commands.add("agents", "look:agents", "list the agents of the node")
    commands.add("peers", "look:peers", "list the other nodes this one knows")
    card = commands.add("card", "look:card", "show one agent's card")
    card.add_argument("agent", metavar="AGENT")
    search = commands.add(
        "search",
        "look:search",
        "find agents by describing the job",
        example='aios-nb search "sum up numbers"',
    )
    search.add_argument("words", metavar="WORDS", nargs="+")
    search.add_argument("-n", "--limit", metavar="N", type=count, default=10, help="at most (10)")


def _guests(commands: _Commands) -> None:
    hub = commands.add(
        "hub", "guests:everyone", "MCP servers and A2A agents of others as agents of the node"
    )
    actions = commands.below(hub)
    add = actions.add(
        "add",
        "guests:add",
        "make one an agent of the node",
        example="aios-nb hub add https://sums.example/mcp   ·   aios-nb hub add -- npx -y server",
    )
    add.add_argument("address", metavar="URL", nargs="+", help="its URL; or its command, behind --")
    add.add_argument("--name", metavar="NAME", help="what to call it (as it calls itself)")
    add.add_argument("--local", action="store_true", help="it may be on this machine")
    add.add_argument("--kind", choices=("mcp", "a2a"), help="what it must be")
    add.add_argument(
        "--access",
        choices=("private", "known", "network", "public"),
        help="who else may ask it (private)",
    )
    add.add_argument(
        "--token-env", metavar="VAR", help="the variable of the node that holds its token"
    )
    actions.add("list", "guests:everyone", "all of them: who answers, what changed")
    refresh = actions.add("refresh", "guests:refresh", "look at one or all of them now")
    refresh.add_argument("name", metavar="NAME", nargs="?")
    approve = actions.add("approve", "guests:approve", "take one that changed as it is now")
    approve.add_argument("name", metavar="NAME")
    remove = actions.add("remove", "guests:remove", "forget one")
    remove.add_argument("name", metavar="NAME")
    listed = actions.add("import", "guests:catalog", "what somebody's catalog lists")
    listed.add_argument("url", metavar="URL")
    listed.add_argument("--local", action="store_true", help="it may be on this machine")


def _bridging(commands: _Commands) -> None:
    telegram = commands.add(
        "telegram",
        "telegram:run",
        "bring the node to Telegram, until Ctrl-C; the token is in TELEGRAM_BOT_TOKEN",
        example="aios-nb telegram   ·   aios-nb telegram pair",
    )
    telegram.add_argument(
        "--api-url", metavar="URL", help="another Bot API server, as http://127.0.0.1:8081/bot"
    )
    telegram.add_argument(
        "--webhook", metavar="URL", help="be told instead of asking; a proxy speaks TLS there"
    )
    telegram.add_argument(
        "--secret-env", metavar="VAR", help="the variable with the webhook's secret (a new one)"
    )
    telegram.add_argument(
        "--port", type=port, default=0, help="where the webhook listens on loopback (the URL's)"
    )
    actions = commands.below(telegram)
    pair = actions.add("pair", "telegram:pair", "make a code that lets somebody in", node=False)
    pair.add_argument(
        "--role",
        choices=("owner", "member", "guest"),
        help="what they may do (the first is the owner, then members)",
    )
    pair.add_argument("--agents", metavar="A,B", help="the only agents for them (all)")
    pair.add_argument("--conversation", metavar="C", help="where it leads, or `last`")
    actions.add("people", "telegram:people", "who is paired", node=False)
    actions.add("tried", "telegram:tried", "what people did or tried, the newest first", node=False)
    unpair = actions.add("unpair", "telegram:unpair", "put somebody out", node=False)
    unpair.add_argument("user", metavar="ID")
    actions.add("status", "telegram:status", "how the bridge is doing", node=False)
    actions.add("stop", "telegram:stop", "end it", node=False)


def _talking(commands: _Commands) -> None:
    ask = commands.add(
        "ask",
        "ask:ask",
        "ask an agent one thing",
        example="aios-nb ask calc '2 * 21'   ·   git diff | aios-nb ask reviewer -",
    )
    ask.add_argument("agent", metavar="AGENT", help="its name, or name@nodeid")
    ask.add_argument("text", metavar="TEXT", nargs="*", help="the question; - reads it from a pipe")
    ask.add_argument("--conversation", metavar="C", help="go on in this conversation, or `last`")
    ask.add_argument("--deadline", metavar="S", type=seconds, help="wait at most S seconds (60)")
    ask.add_argument(
        "--file", metavar="F", type=Path, action="append", default=[], help="send a file along"
    )
    ask.add_argument("--save", metavar="DIR", type=Path, help="put the answer's files here")

    chat = commands.add("chat", "chat:chat", "talk in the terminal", json=False)
    chat.add_argument("agent", metavar="AGENT", nargs="?", help="whom to talk to (concierge)")
    which = chat.add_mutually_exclusive_group()
    which.add_argument("--conversation", metavar="C", help="go on in this conversation")
    which.add_argument(
        "--last", action="store_const", const="last", dest="conversation", help="in the latest one"
    )
    chat.add_argument("--deadline", metavar="S", type=seconds, help="wait at most S seconds (60)")
    chat.add_argument("--save", metavar="DIR", type=Path, help="put the answers' files here")


def _keeping(commands: _Commands) -> None:
    chats = commands.add("chats", "chats:chats", "list the conversations, the latest first")
    chats.add_argument("-n", "--limit", metavar="N", type=count, default=20, help="at most (20)")
    history = commands.add("history", "chats:history", "show a conversation")
    _conversation(history, optional=True)
    export = commands.add("export", "chats:export", "write a conversation to a file", json=False)
    _conversation(export)
    export.add_argument(
        "file", metavar="FILE", type=Path, help="ends in .md, .json or .ipynb; - prints Markdown"
    )
    export.add_argument("--force", action="store_true", help="replace the file")
    rename = commands.add("rename", "chats:rename", "give a conversation a title")
    _conversation(rename)
    rename.add_argument("title", metavar="TITLE", nargs="+")
    delete = commands.add("delete", "chats:delete", "delete a conversation for good")
    _conversation(delete)
    delete.add_argument("--yes", action="store_true", help="do not ask")


def _conversation(command: argparse.ArgumentParser, *, optional: bool = False) -> None:
    command.add_argument(
        "conversation",
        metavar="C",
        nargs="?" if optional else None,
        default="last",
        help="its id, the start of it, its title, or `last`",
    )


def _simulating(commands: _Commands) -> None:
    simulate = commands.add(
        "simulate",
        "simulate:simulate",
        "try out networks that are not there",
        node=False,
        home=False,
        json=False,
        example="aios-nb simulate network --nodes 30 --kill 6",
    )
    simulations.describe(commands.below(simulate))


def _rights(commands: _Commands) -> None:
    withdraw = commands.add("withdraw", "rights:withdraw", "stop offering an agent")
    withdraw.add_argument("name", metavar="NAME")
    for verb, about in (
        ("block", "shut a node out"),
        ("allow", "let a node call agents with access known"),
    ):
        command = commands.add(verb, f"rights:{verb}", about)
        command.add_argument("target", metavar="NODE", help="its id, all 32 characters")
    commands.add("callers", "rights:callers", "who called, how often and how long")
    _tokens(commands)


def _tokens(commands: _Commands) -> None:
    token = commands.add("token", "rights:token", "how other programs get in")
    actions = commands.below(token)
    actions.add("show", "rights:token_show", "print the owner's token itself")
    create = actions.add(
        "create",
        "rights:token_create",
        "make a token for a program that should not be the owner",
        example="aios-nb token create --scope chat --prefix tg:",
    )
    create.add_argument(
        "--scope", choices=("chat",), default="chat", help="what it is good for (chat)"
    )
    create.add_argument(
        "--prefix", metavar="P", required=True, help="senders it speaks for, such as tg:"
    )
    create.add_argument(
        "--as",
        dest="as_whom",
        choices=("owner",),
        help="reach every agent of the node, also private ones",
    )
    actions.add("list", "rights:token_list", "list those that are good")
    revoke = actions.add("revoke", "rights:token_revoke", "end one at once")
    revoke.add_argument("id", metavar="ID")


def _folder(text: str) -> Path:
    folder = expanded(text)
    if not folder.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text!r}")
    return folder.absolute()


def _join(text: str) -> str:
    from aios_nb.joining import JoinAddress

    return str(JoinAddress.parse(text))


def _network(text: str) -> str:
    from aios_nb.joining import network_name

    return network_name(text)
