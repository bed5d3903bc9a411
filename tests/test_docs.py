"""The documents say what is so: the tour runs as shown, names and numbers are those of the code."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import aios_nb
from aios_nb import envelope, errors, filters
from aios_nb.agents.definition import TIMEOUT_S
from aios_nb.chat.reading import CONTEXT_BYTES
from aios_nb.cli.parser import parse
from aios_nb.config import KB, MB, Limits
from aios_nb.hub import looking, news, sites, spreading
from aios_nb.hub.catalogue import sync
from aios_nb.hub.dht import codec
from aios_nb.hub.dht.tuning import HOUR_S, Tuning
from aios_nb.hub.gossip import (
    LAN,
    LOCAL,
    WAN,
    entropy,
    machine,
    packets,
    probing,
    suspicion,
    trust,
    wanting,
)
from aios_nb.hub.gossip import spreading as rounds
from aios_nb.hub.gossip.awareness import WORST
from aios_nb.hub.gossip.members import MEMBERS_MAX, Life
from aios_nb.hub.post import budgets, datagram, greetings, meeting, sessions
from aios_nb.hub.post.tokens import TOKEN_S
from aios_nb.hub.presence import PRESENCE_LIMIT_BYTES, Said
from aios_nb.identity import from_base64url
from aios_nb.records import Scope
from aios_nb.records import parse as read_record
from aios_nb.wire import websocket
from aios_nb.wire.dispatch import Bound
from aios_nb.wire.methods import METHODS, Answers
from aios_nb.wire.peer.frames import PIECED_MAX
from aios_nb.wire.server import ROUTES
from tests.hub.programs import ELSEWHERE, bring_in
from tests.notebook.consoles import console as console_of
from tests.sites import TestSite

ROOT = Path(__file__).parents[1]
NAMES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "PROTOCOL.md", "bots/README.md")
DOCS = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMES}
README, CONTRIBUTING, PROTOCOL = DOCS["README.md"], DOCS["CONTRIBUTING.md"], DOCS["PROTOCOL.md"]
LIMITS = Limits()
COUNTED = (
    *("none", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
SHOWN_URL = "http://127.0.0.1:8765"
WAIT_S = 60
"""For a program that hangs; each takes a second."""

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARKED = re.compile(r"<!-- (?:tour|example): (\w+) -->\n" + FENCE.pattern[1:], FENCE.flags)
SPAN = re.compile(r"`([^`\n]+)`")
SORTED: dict[str, Any] = {"sort_keys": True, "ensure_ascii": False}

by_document = pytest.mark.parametrize("name", NAMES)


def block(page: str, name: str) -> str:
    """The fenced block under the comment that marks it."""
    return {marked: text for marked, _, text in MARKED.findall(page)}[name]


def section(page: str, title: str) -> str:
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def prose(page: str) -> str:
    return FENCE.sub("", page)


def rows(page: str, title: str) -> list[list[str]]:
    """The cells of the first table of a section, without its head."""
    lines = [line for line in section(page, title).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def tables(page: str, title: str) -> list[list[list[str]]]:
    """The cells of each table of a section or of a part of one, without their heads."""
    part = re.search(rf"^##+ {re.escape(title)}$(.*?)^##", page, re.DOTALL | re.MULTILINE)
    assert part, title
    found = re.findall(r"^\|.*\n\|[-|]+\n((?:\|.*\n)+)", part[1], re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines.splitlines()]
        for lines in found
    ]


def matches(shown: str, said: str) -> bool:
    """Whether this was said, as wide as it may be, with `…` for what differs each time."""
    wanted, got = (" ".join(text.split()) for text in (shown, said))
    return bool(re.fullmatch(re.escape(wanted).replace("…", ".*"), got))


# The tour ------------------------------------------------------------------------------


def console(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    steps = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    cut = [re.match(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", step, re.DOTALL) for step in steps]
    return [(found[1], found[2]) for found in cut if found]


class Terminal:
    """A shell in a fresh folder, with `aios-nb` on its path and a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = SHOWN_URL
        commands = folder / "bin"
        commands.mkdir(parents=True)
        command = commands / "aios-nb"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m aios_nb "$@"\n')
        command.chmod(0o755)
        self.env = {
            **{k: v for k, v in os.environ.items() if k not in {"AIOS_NODE", "JPY_SESSION_NAME"}},
            "AIOS_HOME": str(folder / "home"),
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }

    def here(self, text: str) -> str:
        """What the page shows, with the address this node really has."""
        return text.replace(SHOWN_URL, self.url)

    def run(self, command: str, typed: str = "") -> str:
        done = subprocess.run(
            ["sh", "-c", self.here(command)],
            cwd=self.folder,
            env=self.env,
            input=typed,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=WAIT_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        return done.stdout


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """Terminal two of the tour, while terminal one shows what the README says it shows."""
    two = Terminal(tmp_path_factory.mktemp("tour"))
    (two.folder / "my_agents.py").write_text(block(README, "agents"), encoding="utf-8")
    [(command, shown)] = console(block(README, "up"))
    port = SHOWN_URL.rpartition(":")[2]
    assert f"--port {port}" in command
    one = subprocess.Popen(
        shlex.split(command.replace(port, "0")),  # another program may hold the shown one
        cwd=two.folder,
        env=two.env,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        assert one.stdout is not None
        said = "".join(one.stdout.readline() for _ in shown.splitlines())
        address = re.search(r"http://\S+", said)
        assert address, said
        two.url = address[0]
        assert matches(two.here(shown), said)
        yield two
        one.send_signal(signal.SIGINT)
        assert one.wait(timeout=WAIT_S) == 0
    finally:
        one.kill()
        one.communicate(timeout=WAIT_S)


@pytest.mark.parametrize(("command", "shown"), console(block(README, "ask")))
def test_the_tour_asks_as_shown(terminal: Terminal, command: str, shown: str):
    assert matches(shown, terminal.run(command))


def test_the_tour_chats_as_shown(terminal: Terminal):
    [(command, shown)] = console(block(README, "chat"))
    prompt = re.compile(r"^\w+> (.*\n)", re.MULTILINE)

    assert matches(prompt.sub("", shown), terminal.run(command, "".join(prompt.findall(shown))))


def test_the_tour_calls_over_http_as_shown(terminal: Terminal):
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    [(command, shown)] = console(block(README, "curl"))

    assert matches(shown, terminal.run(command))


def test_the_tour_in_python_gives_what_its_comments_say(tmp_path: Path):
    source = block(README, "python")
    lines = source.splitlines()
    values = {}
    for statement in ast.parse(source).body:
        line = lines[statement.lineno - 1]
        if isinstance(statement, ast.Expr) and "  # " in line:
            value, _, said = line.partition("  # ")
            values[line] = said.strip()
            lines[statement.lineno - 1] = f"print(repr({value.strip()}))"
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        env=Terminal(tmp_path / "python").env,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )

    assert done.stderr == ""
    assert values
    assert done.stdout.splitlines() == list(values.values())


def test_the_notebooks_cells_run_as_they_stand(tmp_path: Path):
    cells = [text for _, text in FENCE.findall(section(README, "In a notebook"))]
    with console_of(tmp_path) as page:
        for cell in cells:
            ran = page.run(cell)
            assert ran.ok, ran.printed
        assert page.names["answer"] == "7"
        lines = [line for cell in cells for line in cell.splitlines() if "%aios " in line]
        assert len(lines) > 3
        for line in lines:
            ran = page.run(line)
            assert ran.ok, ran.printed
            query = getattr(ran.value, "query", None)
            assert query is None or "#" not in query


# What documents name is there -------------------------------------------------------------


def shell_words() -> list[str]:
    """Everything in the documents that a reader could type: code spans and shell lines."""
    found = []
    for page in DOCS.values():
        found += SPAN.findall(prose(page))
        for language, text in FENCE.findall(page):
            if language in {"sh", "console"}:
                found += [line.removeprefix("$ ") for line in text.splitlines()]
    return found


def test_every_command_named_exists_with_its_options():
    typed = re.findall(r"\baios-nb ([^)\n]+)", "\n".join(shell_words()))
    understood = [parse(shlex.split(words, comments=True)) for words in typed]

    assert {"up", "ask", "chat", "lab"} <= {args.command for args in understood if args}


def test_every_make_target_named_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    typed = "\n".join(shell_words())
    named = set(re.findall(r"^make (?:\w+=\S+ )?(\w+)", typed, re.MULTILINE))

    assert {"run", "test"} <= named <= targets


@by_document
def test_links_lead_somewhere(name: str):
    for target, _, anchor in re.findall(r"\]\(([^)#\s]*)(#([^)\s]+))?\)", DOCS[name]):
        if target.startswith("https://"):
            continue
        file = (ROOT / name).parent / target if target else ROOT / name
        assert file.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {title.lower().replace(" ", "-") for title in titles}, anchor


def test_the_code_map_names_only_what_exists():
    paths = {span for span in SPAN.findall(CONTRIBUTING) if re.fullmatch(r"[\w/]+(\.py|/)", span)}

    assert paths
    for path in paths:
        assert (ROOT / path).exists() or (ROOT / "aios_nb" / path).exists(), path


def test_the_code_map_names_every_folder():
    folders = {f.parent.name for f in (ROOT / "aios_nb").glob("*/__init__.py")}

    assert folders
    assert folders <= set(re.findall(r"\[(\w+)/\]\(aios_nb/\w+\)", CONTRIBUTING))


@by_document
def test_no_document_names_a_place_on_one_machine(name: str):
    assert not re.search(r"(?<![\w.~-])/(work|tmp|root|home|Users)/|\b[A-Z]:\\", DOCS[name])


def test_the_changelog_has_this_version():
    assert re.search(rf"^## {re.escape(aios_nb.__version__)}\b", DOCS["CHANGELOG.md"], re.MULTILINE)


def test_the_readme_has_one_place_for_the_measured_numbers():
    assert re.findall(r"<!-- /?bench -->", README) == ["<!-- bench -->", "<!-- /bench -->"]


@pytest.mark.parametrize(
    "phrase",
    [
        f"request has {LIMITS.body_bytes // MB} MB at most",
        f"text {envelope.TEXT_LIMIT_BYTES // MB} MB",
        f"file {LIMITS.file_bytes // MB} MB",
        f"all files of a node {LIMITS.blobs_bytes // MB // 1024} GB",
        f"{LIMITS.runs:,} runs",
        f"{envelope.DEADLINE_DEFAULT_S:g} s unless you say otherwise",
        f"`timeout_s`, {TIMEOUT_S:g} s",
        f"for {LIMITS.call_memory_days:g} days after the call",
        f"{MEMBERS_MAX:,} others and {LIMITS.records:,} agents of theirs",
        f"takes {LIMITS.agents_per_publisher} agents from a node",
        f"also asks {COUNTED[sites.SITES_ASKED]} nodes",
        f"Version {aios_nb.__version__}".lower(),
    ],
)
def test_the_readmes_numbers_are_those_of_the_code(phrase: str):
    said = " ".join(README.replace("This version, ", "version ").split())

    assert phrase in said


# PROTOCOL.md ---------------------------------------------------------------------------


def described() -> dict[str, tuple[str, str]]:
    """Of each method in the table: how it is called, and what it gives."""
    found = [(SPAN.findall(call)[0], result) for call, result in rows(PROTOCOL, "Methods")]
    return {usage.partition("(")[0]: (usage, result) for usage, result in found}


def test_the_page_has_every_method_as_it_is_called():
    usages = [usage for usage, _ in described().values()]

    assert usages == [Bound(row, None).usage for row in METHODS]


def test_the_page_has_every_method_that_answers_in_pieces():
    in_pieces = {row.name for row in METHODS if row.kind is Answers.NOTICES}

    assert {SPAN.findall(cells[0])[0] for cells in rows(PROTOCOL, "JSON-RPC")} == in_pieces


def top_level(shape: str) -> set[str]:
    """The names in `{a, b: [{c}]}` that are not inside another bracket."""
    while re.search(r"[\[{][^\[\]{}]*[\]}]", shape[1:-1]):
        shape = shape[0] + re.sub(r"[\[{][^\[\]{}]*[\]}]", "", shape[1:-1]) + shape[-1]
    return {name.strip(" :") for name in shape[1:-1].split(",")}


async def asks(text: str, ctx: Any) -> str:
    """Asks back."""
    return await ctx.ask_user("sure?")


def test_results_have_the_fields_the_page_names(tmp_path: Path):
    content = b"some bytes"
    sha256, chunk = hashlib.sha256(content).hexdigest(), base64.b64encode(content).decode()
    site = TestSite(tmp_path / "home", [asks])
    try:
        done = site.call("chat.send", agent="echo", text="hello")
        here = {"conversation": done["conversation"]}
        this = {**here, "message_id": done["message_id"]}
        waiting = site.call("chat.send", agent="asks", text="hello")
        token = site.call("tokens.create", scope="chat", prefix="tg:")["id"]
        bring_in(site, "")
        calls: dict[str, dict[str, Any]] = {
            "node.info": {},
            "node.peers": {},
            "node.callers": {},
            "nodes.allow": {"node": "a" * 32},
            "nodes.block": {"node": "b" * 32},
            "tokens.create": {"scope": "chat", "prefix": "tg:"},
            "tokens.list": {},
            "tokens.revoke": {"id": token},
            "agents.list": {},
            "agents.search": {"query": "echo"},
            "agents.card": {"agent": "echo"},
            "hub.add": {"address": ELSEWHERE, "name": "sums"},
            "hub.list": {},
            "hub.approve": {"name": "sums"},
            "hub.refresh": {},
            "hub.import": {"url": ELSEWHERE},
            "hub.remove": {"name": "sums"},
            "chat.open": {"agents": ["echo"]},
            "chat.send": {"agent": "echo", "text": "hello"},
            "chat.post": {**here, "text": "hello"},
            "chat.answer": {"message_id": waiting["message_id"], "text": "yes"},
            "chat.cancel": {"message_id": done["message_id"]},
            "chat.edit": {**this, "text": "hallo"},
            "chat.react": {**this, "reaction": "+1"},
            "chat.join": {**here, "who": "calc"},
            "chat.leave": {**here, "who": "calc"},
            "chat.rename": {**here, "title": "greetings"},
            "chat.export": here,
            "chat.list": {},
            "chat.history": here,
            "chat.delete": here,
            "blobs.put": {"sha256": sha256, "offset": 0, "chunk": chunk, "last": True},
            "blobs.get": {"sha256": sha256},
            "agents.withdraw": {"name": "asks"},
            "gossip.sync": {"digest": ""},
        }
        elsewhere = {"chat.stream", "agents.watch", "chat.watch", "chat.unwatch", "aios.message"}
        elsewhere.add("gossip.packet")  # says nothing
        assert calls.keys() | elsewhere == described().keys()
        for method, params in calls.items():
            usage, result = described()[method]
            same = {"chat.answer": "chat.send", "hub.approve": "hub.add"}.get(method)
            if same is not None:
                result = described()[same][1]
            shape = next(span for span in SPAN.findall(result) if span.startswith("{"))
            assert set(site.call(method, **params)) == top_level(shape), usage
    finally:
        site.stop()


def test_rows_have_the_fields_the_page_names():
    shapes = {
        "agents.list": envelope.AgentRow,
        "chat.history": envelope.Event,
    }
    for method, shape in shapes.items():
        inner = re.search(r"\[(\{.*?\})\]", described()[method][1])
        assert inner
        assert top_level(inner[1]) == set(shape.__struct_fields__), method
    deltas = rows(PROTOCOL, "JSON-RPC")[0][-1]
    assert top_level(SPAN.findall(deltas)[1]) == set(envelope.Delta.__struct_fields__)


def test_the_page_has_every_kind_and_status():
    said = {
        name: set(SPAN.findall(line))
        for name, line in re.findall(r"^- \*\*([^*]+)\*\*((?:.|\n  )*)", PROTOCOL, re.MULTILINE)
    }

    assert set(envelope.Kind) <= said["Rows never change."]
    assert said["Status"] == set(envelope.Status)


def test_the_page_has_every_error_and_no_other():
    in_code = {(cls.code, cls.__name__) for cls in errors.RpcError.__subclasses__()}

    assert {(int(code), name) for code, name, _ in rows(PROTOCOL, "Errors")} == in_code


def test_the_page_has_every_route_and_no_other():
    named = {path for row in rows(PROTOCOL, "Routes") for path in re.findall(r"/[\w./-]+", row[0])}

    assert {re.sub("(SHA256|NAME/.*)$", "", path) for path in named} == set(ROUTES)


def test_the_page_has_every_close_code_and_no_other():
    codes = {value for name, value in vars(websocket).items() if name.startswith("CLOSE_")}
    codes.discard(websocket.CLOSE_WAIT_S)

    assert {int(code) for code in re.findall(r"\b4[0-9]{3}\b", section(PROTOCOL, "Hello"))} == codes


def test_the_pages_limits_are_those_of_the_code():
    files = (LIMITS.file_bytes // MB, envelope.FILES_PER_MESSAGE, LIMITS.blobs_bytes // MB)

    together = (
        LIMITS.stranger_runs,
        LIMITS.stranger_calls_per_s,
        LIMITS.stranger_seconds_per_min,
    )
    kept = (
        LIMITS.stranger_log_bytes // MB,
        LIMITS.stranger_log_days,
        LIMITS.stranger_blob_bytes // MB,
        LIMITS.callers,
    )
    links = (
        LIMITS.links,
        LIMITS.links_half_open,
        LIMITS.stranger_links,
        LIMITS.stranger_handshakes_per_s,
    )

    assert [row[1] for row in rows(PROTOCOL, "Limits")] == [
        f"{LIMITS.body_bytes // MB} MB",
        f"{envelope.TEXT_LIMIT_BYTES // MB} MB each",
        "{} MB; {}; {} MB".format(*files),
        f"{LIMITS.batch_calls}; {LIMITS.ws_calls}",
        f"{LIMITS.open_streams}",
        f"{LIMITS.runs}",
        f"{envelope.DEADLINE_MAX_S:.0f}",
        f"{LIMITS.refused_per_s:g} a second",
        "{}; {}; {}; {:g} a second".format(*links),
        f"{LIMITS.stranger_held_bytes // MB} MB; {LIMITS.open_streams // 2}",
        f"{LIMITS.body_bytes // MB} MB; {PIECED_MAX}; {LIMITS.ws_calls}",
        f"{CONTEXT_BYTES // KB} KB",
        "{}; {:g} a second; {:g} s a minute".format(*together),
        "{} MB, {:g} days; {} MB; {}".format(*kept),
        f"{LIMITS.known_log_bytes // MB} MB, {LIMITS.known_log_days:g} days",
        f"{LIMITS.records}; {LIMITS.agents_per_publisher}; {MEMBERS_MAX}",
    ]


# The network of PROTOCOL.md -----------------------------------------------------------------


def test_the_page_has_every_field_of_a_presence():
    [fields] = tables(PROTOCOL, "Presence")

    assert [SPAN.findall(row[0])[0] for row in fields] == list(Said.__struct_fields__)


def test_the_page_has_every_kind_of_datagram():
    kinds, _ = tables(PROTOCOL, "Datagrams")

    assert [(int(row[0]), row[1].upper()) for row in kinds] == [
        (kind.value, kind.name) for kind in datagram.Kind
    ]


def test_the_pages_budgets_are_those_of_the_code():
    _, shown = tables(PROTOCOL, "Datagrams")
    ports, hosts = (
        [rates[scope] for scope in Scope] for rates in (budgets.PORT_HELLOS, budgets.HOST_HELLOS)
    )
    answers = [budgets.ANSWERS, budgets.ALL_ANSWERS]
    checks = [budgets.CHECKS, budgets.ALL_CHECKS]

    assert [row[1:] for row in shown] == [
        [
            mark.join(f"{round(per_s, 4):g}" for per_s, _ in rates),
            mark.join(str(burst) for _, burst in rates),
        ]
        for mark, rates in ((", ", ports), (", ", hosts), ("; ", answers), ("; ", checks))
    ]


def messages(shapes: Any) -> list[tuple[int, str, list[str]]]:
    """Number, name and fields of each kind of message."""
    return sorted(
        (
            shape.__struct_config__.tag,
            " ".join(re.findall("[A-Z][a-z]+", shape.__name__)).lower(),
            list(shape.__struct_fields__),
        )
        for shape in shapes
    )


@pytest.mark.parametrize(
    ("title", "shapes"),
    [
        ("Gossip", packets.Message.__args__),
        ("DHT", (*codec.Question.__args__, *codec.Answer.__args__)),
    ],
)
def test_the_page_has_every_message_with_its_fields(title: str, shapes: Any):
    shown = tables(PROTOCOL, title)[0]

    assert [(int(row[0]), row[1], SPAN.findall(row[2])) for row in shown] == messages(shapes)


def test_the_pages_intervals_are_those_of_the_code():
    shown = tables(PROTOCOL, "Gossip")[2]

    assert [row[1:] for row in shown[1:]] == [
        [f"{pace.gossip_s:g} s; {pace.fanout}" for pace in (LOCAL, LAN, WAN)],
        [f"{pace.probe_s:g} s; {pace.probe_most_s:g} s" for pace in (LOCAL, LAN, WAN)],
        [f"{pace.timeout_s:g} s" for pace in (LOCAL, LAN, WAN)],
        [f"{pace.sync_s:g} s" for pace in (LOCAL, LAN, WAN)],
        [f"{pace.silence_s:g} s; {pace.doubt_factor:g}" for pace in (LOCAL, LAN, WAN)],
    ]


def test_the_page_has_every_filter_and_no_other():
    [shown] = tables(PROTOCOL, "Searching")
    typed = [example for row in shown for example in SPAN.findall(row[0])]

    for example in typed:
        words, asked = filters.read_query(example)
        assert (words, asked != filters.Filters()) == ("", True), example
    assert {example.partition(":")[0] for example in typed} == {"tag", "name", "node", "live"}


def test_the_page_has_every_state_of_a_node():
    said = SPAN.findall(described()["node.peers"][1])

    assert set(Life) <= set(said)


TUNING = Tuning()


@pytest.mark.parametrize(
    ("title", "phrase"),
    [
        ("Presence", f"at most {PRESENCE_LIMIT_BYTES} bytes"),
        ("Datagrams", f"A datagram has {datagram.DATAGRAM_LIMIT_BYTES} bytes at most"),
        ("Datagrams", f"good for {TOKEN_S / 60:g} to {TOKEN_S / 30:g} minutes"),
        ("Datagrams", f"after {sessions.RENEW_S / 60:g}; a restart"),
        ("Datagrams", "after {:g}, {:g} and {:g} s".format(*greetings.ASK_AGAIN_S)),
        ("Datagrams", f"given up {greetings.GIVE_UP_S:g} s after"),
        ("Datagrams", f"at most {meeting.AMPLIFICATION_MOST} times the bytes"),
        ("Gossip", f"of messages, {packets.PACKET_LIMIT_BYTES} bytes at most"),
        ("Gossip", f"{entropy.PAGES_MAX} packets at most"),
        ("Gossip", f"more than {entropy.PULL_BUCKETS} buckets differ"),
        ("Gossip", f"up to {COUNTED[WORST + 1]} times"),
        ("Gossip", f"{COUNTED[probing.RELAYS]} others are asked"),
        ("Gossip", f"{LOCAL.sends(9)} \N{MULTIPLICATION SIGN} ⌈log10(n + 1)⌉ times"),
        ("Gossip", f"over {COUNTED[rounds.WHOLE_HOPS]} hops"),
        ("Gossip", f"{COUNTED[wanting.TRIES]} times. A node sends"),
        ("Gossip", f"{rounds.ANSWER_BYTES_PER_S // KB} KB a second of wanted"),
        ("Gossip", f"{rounds.ANSWER_BURST_BYTES // KB} KB at once"),
        ("Gossip", f"{COUNTED[trust.FORGERIES].capitalize()} wrong ones"),
        ("Gossip", "{:.0%}, {:.0%} and {:.0%}".format(*suspicion._CHECKS).replace("%", "")),
        ("Gossip", f"older than {machine.PATIENCE_SHARE * 100:g} % of the doubt"),
        ("Gossip", f"back by up to {suspicion._EARLIER_SHARE * 100:g} %"),
        ("Gossip", f"{trust.PACKETS} packets are read at once and {trust.PACKETS_PER_S} a second"),
        ("Gossip", f"{trust.ANSWER_BYTES // KB} KB in answers at once"),
        ("Gossip", f"Of {MEMBERS_MAX} members"),
        ("Gossip", f"tells {COUNTED[machine.ANNOUNCED_TO]} nodes its next incarnation"),
        ("Sync", f"{sync.PAGE_BYTES // KB} KB of JSON at most"),
        ("Sync", f"{spreading.SYNC_BURST} pages at once and {spreading.SYNC_PER_S:g} a second"),
        ("What is kept", f"keeps {LIMITS.records} records"),
        ("What is kept", f"{LIMITS.agents_per_publisher} agents of one node"),
        ("What is kept", f"the {COUNTED[sites.SITES_ASKED]} nodes"),
        ("Searching", f"{looking.STRANGERS_PER_S:g} searches a second"),
        ("Methods", f"{news.FIRST_ROWS} at most, `more`"),
        ("DHT", f"array, {codec.MESSAGE_LIMIT_BYTES} bytes at most"),
        ("DHT", f"presences, {codec.CONTACTS_MAX} at most"),
        ("DHT", f"{codec.NUMBER_BITS} bits"),
        ("DHT", f"for {TUNING.token_s / 60:g} to {TUNING.token_s / 30:g} minutes"),
        ("DHT", f"{TUNING.keys_max} keys and {TUNING.bytes_max // MB} MB"),
        ("DHT", f"where {TUNING.k} nodes are to be expected ({TUNING.small_k} in a network"),
        ("DHT", f"fewer than {TUNING.small_network})"),
        ("DHT", f"every {TUNING.republish_s / HOUR_S:g} hours"),
        ("DHT", f"once {TUNING.quorum} nodes gave it"),
        ("DHT", f"after {TUNING.hard_timeout_s:g} s it is lost"),
        ("DHT", f"longer than {TUNING.hedge_rtts:g} round trips"),
        ("DHT", f"{TUNING.hedge_floor_loopback_s * 1000:g} ms at least"),
        ("DHT", f"else {TUNING.hedge_floor_s * 1000:g} ms"),
        ("DHT", f"{TUNING.asks_max} questions at most"),
        ("DHT", f"{TUNING.requests_per_s:g} answers a second, {TUNING.requests_burst:g} at once"),
        ("DHT", f"{TUNING.contacts_per_prefix} nodes of one block"),
        ("DHT", f"{TUNING.contacts_per_prefix_in_bucket} in one bucket"),
    ],
)
def test_the_numbers_of_the_network_are_those_of_the_code(title: str, phrase: str):
    part = re.search(rf"^##+ {title}$(.*?)^##", PROTOCOL, re.DOTALL | re.MULTILINE)

    assert part
    assert phrase in " ".join(part[1].split())


def test_the_envelope_of_the_page_gets_the_answer_of_the_page(tmp_path: Path):
    site = TestSite(tmp_path / "home")
    try:
        asked = json.loads(block(PROTOCOL, "request"))
        result = site.call(asked["method"], **asked["params"])
        shown = json.loads(block(PROTOCOL, "response").replace("NODEID", site.node.node_id))
    finally:
        site.stop()

    assert shown["id"] == asked["id"]
    assert matches(json.dumps(shown["result"], **SORTED), json.dumps(result, **SORTED))


def test_the_node_shows_the_record_the_page_speaks_of(terminal: Terminal):
    with urllib.request.urlopen(f"{terminal.url}/.well-known/aios.json", timeout=WAIT_S) as answer:
        shown = json.load(answer)

    assert shown.keys() == {"v", "node_id", "record"}
    assert read_record(from_base64url(shown["record"])).record.node == shown["node_id"]
