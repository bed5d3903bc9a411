"""The words of ``%aios`` and ``%%agent``: what there is, and what a typed line means.

A question is taken as it was typed, apostrophes and all: only options and the first words are
read. ``helptext`` and ``completion`` are made from the same tables, so they cannot drift.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

from aios_nb.errors import UsageError
from aios_nb.notebook.meant import command_like, flag_for, near
from aios_nb.notebook.words import begins_remark, skip, unquoted, without_remark, word_at
from aios_nb.people.numbers import count, port, seconds

_FLAG = r"(?P<flag>-[A-Za-z](?=\d+(?:\s|\Z))|--?[A-Za-z][A-Za-z-]*(?=[=\s]|\Z))"
"""Behind a letter a number may stand at once: ``-n5``."""
_OPTION = re.compile(_FLAG + "=?")
_BARE = re.compile(r"\S+")
_ONLY_WORDS = re.compile(r"(?:^|\s)--(?:\s|\Z)")
_LAST = re.compile(
    r"(?:^|\s)"
    + _FLAG
    + r"(?:(?:=|\s*)(?P<value>'[^']*'|\"(?:[^\"\\]|\\.)*\"|[^\s'\"-][^\s'\"]*))?\s*\Z"
)
"""An option at the end of a line, with its value if it has one."""


_HOW_MAX = 80
"""Characters of a hint that says how something is typed."""


class Argument(NamedTuple):
    """A word of a command, or all the rest of the line."""

    name: str
    kind: str = ""
    """What completes it: agent, own, conversation, node, client, command."""
    optional: bool = False
    rest: bool = False
    """Takes the rest of the line as it is."""
    behind: bool = False
    """Stands behind ``--`` and nowhere else."""

    def read(self, said: str) -> str:
        """Its value; an agent may be named as in a chat: ``@echo``."""
        return said.removeprefix("@") if self.kind in {"agent", "own"} else said

    @property
    def usage(self) -> str:
        if self.behind:
            return f"[-- {self.name.upper()}…]"
        return f"[{self.name.upper()}]" if self.optional else self.name.upper()


class Option(NamedTuple):
    """``--name VALUE``, or a switch."""

    flags: tuple[str, ...]
    value: str = ""
    """What stands for its value; empty for a switch."""
    about: str = ""
    read: Callable[[str], Any] = str
    many: bool = False
    """May be given again; its value is a list."""
    choices: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.flags[-1].lstrip("-").replace("-", "_")

    @property
    def usage(self) -> str:
        return f"[{self.flags[0]}{' ' if self.value else ''}{self.value}]{'…' if self.many else ''}"


class Command(NamedTuple):
    """One thing that can be asked for."""

    name: str
    about: str
    does: str = ""
    """``module:function`` in ``commands``."""
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    takes_cell: bool = False
    greedy: bool = False
    """The value of an option goes up to the next option, so that it needs no quotes."""
    options_last: bool = False
    """Options may also stand behind the rest of the line."""
    remark: int = 1
    """So many blanks before a ``# `` make it a remark; 0 where all is taken as it is typed."""
    magic: str = "%aios"

    @property
    def usage(self) -> str:
        words = [self.name, *(argument.usage for argument in self.arguments)]
        return " ".join([*filter(None, words), *(option.usage for option in self.options)])

    def option(self, flag: str) -> Option | None:
        return next((option for option in self.options if flag in option.flags), None)


Fill = Callable[[str], str]


class Parsed(NamedTuple):
    command: Command
    values: dict[str, Any]
    """By the names of arguments and options; what was not given is None, False or an empty list."""


def _tags(text: str) -> list[str]:
    """Apart by commas or spaces: a tag is one word."""
    return text.replace(",", " ").split()


_HELP = {"-h", "--help"}
_MEANT = {"conversation": ", a conversation: its id, its title, or `last`"}
"""What is meant where the word alone does not tell."""
_AGENT = Argument("agent", "agent")
_CHAT = Argument("c", "conversation")
_JOIN = Option(("--join",), "URL[#NODEID]", "link to the node there; may be given again", many=True)

GROUPS: Mapping[str, tuple[Command, ...]] = {
    "The node": (
        Command("status", "how it is: address, reach, peers, agents, callers, limits",
                "status:status"),
        Command(
            "up", "start the node, with choices", "running:up",
            options=(
                Option(("--name",), "NAME", "what it is called"),
                _JOIN,
                Option(("--network",), "NAME", "nodes of other networks are not talked to (main)"),
                Option(("--host",), "HOST", "address to listen on (127.0.0.1)"),
                Option(("--port",), "PORT", "port to listen on (a free one)", read=port),
                Option(("--public-url",), "URL", "how others reach it"),
                Option(("--allow-host",), "NAME", "a host name that requests may come with",
                       many=True),
                Option(("--home",), "DIR", "where it keeps its files (~/.aios_nb)"),
            ),
            examples=("up --name alice", "up --join https://bob.example#NODEID"),
        ),
        Command("down", "stop it", "running:down"),
        Command("mcp-config", "settings for claude, vscode, cursor or codex, to copy",
                "settings:mcp_config", (Argument("client", "client"),),
                examples=("mcp-config claude",)),
    ),
    "Finding": (
        Command(
            "search", "agents for a job, by describing it", "finding:search",
            (Argument("words", rest=True),),
            (Option(("-n", "--limit"), "N", "at most (10)", read=count),),
            ("search sum up numbers", "hits = %aios search plot a csv -n 3"),
            options_last=True,
            remark=2,
        ),
        Command("agents", "those of this node", "finding:agents"),
        Command("peers", "the other nodes, and whether they are there", "finding:peers"),
        Command("card", "what an agent says about itself, and who signed it", "finding:card",
                (_AGENT,), examples=("card echo",)),
        Command("hub", "the AgentHub: search as you type", "panels:hub",
                (Argument("words", optional=True, rest=True),), remark=2),
        Command("network", "the nodes and their links, live", "panels:network"),
    ),
    "Programs of others": (
        Command(
            "hub add", "make an MCP server or an A2A agent an agent of this node", "guests:add",
            (Argument("url", optional=True),
             Argument("command", optional=True, rest=True, behind=True)),
            (
                Option(("--name",), "NAME", "what to call it (as it calls itself)"),
                Option(("--local",), about="it may be on this machine"),
                Option(("--kind",), "KIND", "what it must be", choices=("mcp", "a2a")),
                Option(("--access",), "WHO", "who else may ask it (private)",
                       choices=("private", "known", "network", "public")),
                Option(("--token-env",), "VAR", "the variable that holds its token"),
            ),
            ("hub add https://sums.example/mcp", "hub add http://127.0.0.1:9000 --local",
             "hub add --name files -- npx -y @modelcontextprotocol/server-filesystem ."),
        ),
        Command("hub list", "all of them: who answers, what changed", "guests:everyone"),
        Command("hub refresh", "look at one or all of them now", "guests:refresh",
                (Argument("name", "import", optional=True),)),
        Command("hub approve", "take one that changed as it is now", "guests:approve",
                (Argument("name", "import"),)),
        Command("hub remove", "forget one", "guests:remove", (Argument("name", "import"),)),
        Command("hub import", "what somebody's catalog lists; nothing is added", "guests:catalog",
                (Argument("url"),), (Option(("--local",), about="it may be on this machine"),)),
    ),
    "Talking": (
        Command(
            "ask", "one question; the answer is shown as it is written", "asking:ask",
            (_AGENT, Argument("text", rest=True)),
            (
                Option(("--conversation",), "C", "go on in this conversation, or `last`"),
                Option(("--deadline",), "SECONDS", "wait at most so long (60)", read=seconds),
                Option(("--file",), "FILE", "send a file along; may be given again", many=True),
            ),
            ("ask calc 2 * 21", "answer = %aios ask echo it's {who}'s turn"),
            takes_cell=True,
            options_last=True,
            remark=0,
        ),
        Command(
            "chat", "a chat under the cell (with the concierge)", "panels:chat",
            (Argument("agent", "agent", optional=True),),
            (
                Option(("--conversation",), "C", "this one, by its id or title, or `last`"),
                Option(("--new",), about="a new conversation, not the latest"),
            ),
            ("chat echo", "chat --conversation last"),
        ),
    ),
    "On the phone": (
        Command("telegram", "how the Telegram bridge is doing", "telegram:status"),
        Command(
            "telegram start", "bring this node to Telegram; the token is in TELEGRAM_BOT_TOKEN",
            "telegram:start",
            options=(
                Option(("--api-url",), "URL", "another Bot API server"),
                Option(("--webhook",), "URL", "be told instead of asking; a proxy has TLS"),
                Option(("--secret-env",), "VAR", "the variable with the webhook's secret"),
                Option(("--port",), "PORT", "where the webhook listens on loopback", read=port),
            ),
        ),
        Command(
            "telegram pair", "a code for a phone: to scan, open or type", "telegram:pair",
            options=(
                Option(("--role",), "ROLE", "what they may do (the first is the owner)",
                       choices=("owner", "member", "guest")),
                Option(("--agents",), "A,B", "the only agents for them (all)", read=_tags),
                Option(("--conversation",), "C", "where it leads, or `last`"),
            ),
            examples=("telegram pair", "telegram pair --conversation last"),
        ),
        Command("telegram status", "how the bridge is doing", "telegram:status"),
        Command("telegram people", "who is paired", "telegram:people"),
        Command("telegram tried", "what people did or tried there", "telegram:tried"),
        Command("telegram unpair", "put somebody out", "telegram:unpair", (Argument("id"),)),
        Command("telegram stop", "end it; what comes meanwhile waits", "telegram:stop"),
    ),
    "Conversations": (
        Command("chats", "all of them, the latest first", "keeping:chats",
                options=(Option(("-n", "--limit"), "N", "at most (20)", read=count),)),
        Command("history", "what was said in one (the latest)", "keeping:history",
                (Argument("c", "conversation", optional=True, rest=True),), remark=2),
        Command("rename", "give it a title", "keeping:rename",
                (_CHAT, Argument("title", rest=True)), examples=("rename last Sums of May",),
                remark=0),
        Command("delete", "delete it for good", "keeping:delete",
                (Argument("c", "conversation", rest=True),), remark=2),
        Command(
            "export", "write it to a file: .md, .json or .ipynb", "keeping:export",
            (_CHAT, Argument("file", rest=True)),
            (Option(("--force",), about="replace the file"),),
            ("export last talk.md",),
            options_last=True,
            remark=2,
        ),
    ),
    "Who may do what": (
        Command("withdraw", "stop offering an agent", "rights:withdraw",
                (Argument("name", "own"),)),
        Command("block", "shut a node out", "rights:block", (Argument("node", "node"),)),
        Command("allow", "let a node call agents with access known", "rights:allow",
                (Argument("node", "node"),)),
        Command("callers", "who called, how often, how long", "rights:callers"),
    ),
    "When something is wrong": (
        Command("doctor", "check this machine and say what to fix", "checking:doctor"),
        Command("log", "the last lines of the node's log", "checking:log",
                options=(Option(("-n", "--limit"), "N", "so many (30)", read=count),)),
        Command("debug", "the traceback of the last error", "checking:debug"),
        Command("help", "this, or all about one command", "checking:explain",
                (Argument("command", "command", optional=True, rest=True),)),
    ),
}  # fmt: skip

COMMANDS: Mapping[str, Command] = {
    command.name: command for group in GROUPS.values() for command in group
}


OFFER = Command(
    "", "offer the function or class NAME of this cell as an agent; again = replace",
    arguments=(Argument("name"),),
    options=(
        Option(("--title",), "TEXT", "its name for people"),
        Option(("--about",), "TEXT", "what it does; people find it by this"),
        Option(("--tags",), "A,B", "words to find it by", read=_tags),
        Option(("--example",), "TEXT", "something to ask it; may be given again", many=True),
        Option(("--access",), "WHO", "who may call it (network)",
               choices=("private", "known", "network", "public")),
        Option(("--engine",), "WHERE", "where it runs: kernel sees the notebook's variables",
               choices=("inline", "thread", "kernel")),
        Option(("--timeout",), "SECONDS", "its longest run (300)", read=seconds),
        Option(("--concurrency",), "N", "runs at once", read=count),
        Option(("--version",), "TEXT", "counted up unless it is given"),
        Option(("--idempotent",), about="may run again after a crash"),
        Option(("--may-call",), "A,B", "agents it may call with your rights", read=_tags),
    ),
    examples=("%%agent adder --about Adds the numbers in a sentence --tags math",),
    greedy=True,
    remark=0,
    magic="%%agent",
)  # fmt: skip
"""What stands behind ``%%agent``."""


def parse(line: str, fill: Fill = str, agents: Container[str] = ()) -> Parsed:
    """What a line behind ``%aios`` asks for; nothing asks for the status.

    ``fill`` puts variables into each value, after the line was taken apart: what is in a variable
    is never an option. ``agents``: names that may stand where a command is forgotten.
    """
    at = skip(line, 0)
    name, start = word_at(line, at)
    if not name or begins_remark(line, at):
        return read(COMMANDS["status"], "")
    if name in _HELP:
        return read(COMMANDS["help"], "")
    command = COMMANDS.get(name) or COMMANDS.get(name.lower())
    if command is None:
        hint = command_like(name, COMMANDS, agents)
        raise UsageError(f"there is no %aios {name[:40]}", hint=hint)
    at = skip(line, start)
    # Not in quotes: those are words to look for.
    deeper = None if begins_remark(line, at) else _BARE.match(line, at)
    below = COMMANDS.get(f"{command.name} {deeper[0]}") if deeper else None
    if below is not None and deeper is not None:
        return read(below, line[deeper.end() :], fill)
    words = [word for word in COMMANDS if word.startswith(f"{command.name} ")]
    if deeper and words and not command.arguments:  # it takes none of its own
        wanted = f"{command.name} {deeper[0][:40]}"
        raise UsageError(f"there is no %aios {wanted}", hint=near(wanted, words))
    return read(command, line[start:], fill)


def read(command: Command, text: str, fill: Fill = str) -> Parsed:
    """The values of a command from what stands behind its name."""
    values: dict[str, Any] = {argument.name: None for argument in command.arguments}
    values |= {option.name: [] if option.many else None for option in command.options}
    values |= {option.name: False for option in command.options if not option.value}
    text = _without_remark(command, text)
    if text.strip() in _HELP and not command.greedy:
        return Parsed(COMMANDS["help"], {"command": command.name})
    if command.options_last:
        text = _take_last(command, text, values, fill)
    missing, at, only_words = list(command.arguments), skip(text, 0), False
    while at < len(text):
        found = None if only_words else _OPTION.match(text, at)
        option = command.option(found[1]) if found else None
        if found and option is not None:
            at = _take(command, option, text, found, values, fill)
        elif text.startswith("--", at) and _BARE.match(text, at)[0] == "--":  # type: ignore[index]
            only_words, at = True, at + 2
            missing = [argument for argument in missing if argument.behind] or missing
        elif found and _is_mistaken(command, found[1], missing):
            raise _unknown(command, found[1])
        elif not missing or (missing[0].behind and not only_words):
            word = word_at(text, at)[0]
            flag = flag_for(word, command.options)
            hint = f"did you mean {_called(command)} {flag} {word[:40]}?" if flag else None
            raise UsageError(f"too many words for {_called(command)}: {text[at:][:40]}",
                             hint=hint or _how(command))  # fmt: skip
        elif missing[0].rest:
            values[missing.pop(0).name] = fill(unquoted(text[at:].rstrip()))
            break
        else:
            word, at = word_at(text, at)
            argument = missing.pop(0)
            values[argument.name] = argument.read(fill(word))
        at = skip(text, at)
    lacking = [argument for argument in missing if not argument.optional]
    if lacking and not (command.takes_cell and lacking[0].rest):
        which = _MEANT.get(lacking[0].kind, "")
        raise UsageError(
            f"{_called(command)} needs {lacking[0].name.upper()}{which}", hint=_how(command)
        )
    return Parsed(command, values)


def _without_remark(command: Command, text: str) -> str:
    if not command.remark:
        return text
    is_of_others = any(argument.behind for argument in command.arguments)
    return without_remark(text, command.remark, stop="--" if is_of_others else "")


def _take(
    command: Command,
    option: Option,
    text: str,
    flag: re.Match[str],
    values: dict[str, Any],
    fill: Fill,
) -> int:
    """Read the value of an option; where the next word begins."""
    if not option.value:
        values[option.name] = True
        return flag.end()
    at = skip(text, flag.end())
    if command.greedy:
        end = _next_option(command, text, at)
        said, at = unquoted(text[at:end].strip()), end
    else:
        said, at = word_at(text, at)
    if not said:
        raise UsageError(f"{flag[1]} needs {option.value}", hint=_how(command))
    _put(option, fill(said), values)
    return at


def _put(option: Option, said: str, values: dict[str, Any]) -> None:
    if option.choices and said not in option.choices:
        raise UsageError(f"there is no {option.name} {said!r}", hint=near(said, option.choices))
    try:
        value = option.read(said)
    except argparse.ArgumentTypeError as error:
        raise UsageError(str(error)) from None
    if option.many:
        values[option.name].append(value)
    else:
        values[option.name] = value


def _take_last(command: Command, text: str, values: dict[str, Any], fill: Fill) -> str:
    """Read the options at the end of the line; what is before them."""
    taken: list[tuple[Option, str]] = []
    while not _ONLY_WORDS.search(text) and (found := _LAST.search(text)) is not None:
        flag, said = found["flag"], found["value"]
        option = command.option(flag) or _meant(command, flag)
        if option is None or bool(option.value) is (said is None):
            break
        if flag not in option.flags:
            raise _unknown(command, flag)
        taken.append((option, said or ""))
        text = text[: found.start()]
    for option, said in reversed(taken):
        if not option.value:
            values[option.name] = True
            continue
        try:
            _put(option, fill(unquoted(said)), values)
        except UsageError as error:
            raise perhaps_words(error, command) from error
    return text


def perhaps_words(error: UsageError, command: Command) -> UsageError:
    """An error with an option's value, which may have been meant as words: how to say them."""
    *first, text = [argument.usage for argument in command.arguments]
    words = " ".join(["as words:", _called(command), *first, "--", text])
    return UsageError(error.message, hint="; ".join(filter(None, (error.hint, words))))


def _next_option(command: Command, text: str, at: int) -> int:
    for found in _OPTION.finditer(text, at):
        starts_word = found.start() == 0 or text[found.start() - 1].isspace()
        if starts_word and found[1].startswith("--"):
            if command.option(found[1]) is None:
                raise _unknown(command, found[1])
            return found.start()
    return len(text)


def _is_mistaken(command: Command, flag: str, missing: Sequence[Argument]) -> bool:
    """Whether this was meant as an option: a question may well begin with a dash."""
    return not missing or not missing[0].rest or _meant(command, flag) is not None


def _meant(command: Command, flag: str) -> Option | None:
    """The option that this is but for a slip of the fingers."""
    known = [flag for option in command.options for flag in option.flags]
    near = difflib.get_close_matches(flag, known, 1, 0.75) if flag.startswith("--") else []
    return command.option(near[0]) if near else None


def _unknown(command: Command, flag: str) -> UsageError:
    known = [flag for option in command.options for flag in option.flags]
    hint = near(flag, known) if known else "it takes no options"
    return UsageError(f"{_called(command)} does not know {flag}", hint=hint)


def _called(command: Command) -> str:
    return f"{command.magic} {command.name}".rstrip()


def _how(command: Command) -> str:
    """What it takes, on one line: the options that come first, if there are many."""
    said = " ".join([_called(command), *(argument.usage for argument in command.arguments)])
    for option in command.options:
        longer = f"{said} {option.usage}"
        if len(longer) > _HOW_MAX:
            return f"{said} …"
        said = longer
    return said
