from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from aios_nb.cli.lab import DEFAULTS
from tests.cli.conftest import ROOT, WAIT_S

HEAVY = {"aiohttp", "asyncio", "msgspec", "cryptography", "prompt_toolkit", "sqlite3", "IPython"}


@pytest.mark.parametrize("args", [["--help"], ["ask", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(args: list[str]):
    code = (
        "import sys; from aios_nb.cli import main\n"
        f"code = main({args!r})\n"
        "print(','.join(sorted(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert set(done.stderr.strip().split(",")) & HEAVY == set()


def test_up_prints_one_line_of_json_and_stops_cleanly(cli, tmp_path):
    agents = Path(__file__).with_name("agents_for_tests.py")
    up = cli.start("--name", "alice", "--agents", str(agents))
    said = up.said
    assert set(said) == {"node_id", "name", "url", "mcp", "token", "home"}
    assert said["name"] == "alice"
    assert said["url"].startswith("http://127.0.0.1:")
    assert said["mcp"] == said["url"] + "/mcp"
    assert said["home"] == str(cli.home)
    assert stat.S_IMODE(cli.home.stat().st_mode) == 0o700
    assert cli("ask", "loud", "x").stdout == "done\n"
    code, rest, errors = up.stop()
    assert (code, rest) == (0, "")
    assert "printed while loading" in errors
    assert "printed while running" in errors
    assert said["token"] not in errors
    assert cli("status").returncode == 3


def test_an_interrupt_stops_a_node_with_success(cli):
    assert cli.start("--name", "bob").stop(signal.SIGINT)[0] == 0


def welcome(cli, *args):
    """What ``up`` prints to a person, before the line about Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-m", "aios_nb", "up", *args],
        env=_env(cli),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline() for _ in range(5)]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0
    return lines


def test_up_without_json_says_how_to_ask(cli):
    lines = welcome(cli, "--name", "carol")
    assert lines[0].startswith("carol is up at http://127.0.0.1:")
    assert "echo" in lines[1]
    assert "aios-nb ask --node carol" in lines[2]
    url = lines[0].split()[-1]
    assert re.fullmatch(rf"  join    aios-nb up --join {url}#[a-z2-7]{{32}}\n", lines[4])


@pytest.mark.parametrize(
    ("args", "url"),
    [
        (["--public-url", "https://agents.example.org/"], "https://agents.example.org"),
        (["--allow-host", "lab.example.org", "--port", "0"], r"http://lab\.example\.org:[0-9]+"),
        ([], r"http://127\.0\.0\.1:[0-9]+"),
    ],
)
def test_up_says_how_others_join_and_in_which_network(cli, args, url):
    lines = welcome(cli, "--network", "lab", *args)
    assert lines[0].endswith(" in the network lab\n")
    said = lines[4].split(maxsplit=1)[1]
    assert re.fullmatch(rf"aios-nb up --join {url}#[a-z2-7]{{32}} --network lab\n", said)


def test_a_node_that_knows_no_other_says_how_to_join_one(cli):
    up = cli.start("--name", "alice")
    try:
        done = cli("peers")
        assert (done.returncode, done.stdout) == (0, "")
        assert "--join URL" in done.stderr
        told = cli.json("peers")
        assert (told["peers"], told["waiting"]) == ([], [])
        assert set(told["traffic"].values()) == {0}
    finally:
        up.stop()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--agents", "no-such-file.py"], "no-such-file.py"),
        (["--name", "Not A Name"], "not-a-name"),
        (["--host", "0.0.0.0"], "--public-url"),
    ],
)
def test_what_keeps_a_node_from_starting_is_one_line(cli, args, said):
    done = cli("up", "--json", *args)
    assert done.returncode == 1
    told = json.loads(done.stdout)["error"]
    assert said in f"{told['message']} {told['hint']}"
    assert done.stderr.startswith("aios-nb: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_agents_file_that_breaks_is_one_line(cli, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("import aios_nb\n1 / 0\n")
    done = cli("up", "--agents", str(broken))
    assert done.returncode == 1
    assert "broken.py:2" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_taken_name_gets_a_number_and_is_said(cli):
    first, second = cli.start("--name", "alice"), cli.start("--name", "alice")
    first.stop()
    assert second.said["name"] == "alice-2"
    assert "alice is running already; this node is alice-2" in second.stop()[2]


def test_two_nodes_must_be_told_apart(cli):
    first, second = cli.start("--name", "alice"), cli.start("--name", "bob")
    try:
        done = cli("ask", "echo", "hello")
        assert done.returncode == 3
        assert "alice" in done.stderr
        assert "--node" in done.stderr
        assert cli("ask", "--node", "bob", "echo", "hello").stdout == "hello\n"
        assert cli("ask", "echo", "hello", AIOS_NODE="alice").stdout == "hello\n"
        done = cli("ask", "--node", "alcie", "echo", "hello")
        assert done.returncode == 3
        assert "alice" in done.stderr
        nodes = cli.json("status")["nodes"]
        assert [node["name"] for node in nodes] == ["alice", "bob"]
        assert "bob" in cli("status").stdout
    finally:
        first.stop()
        second.stop()


def test_without_a_node_every_command_says_so(cli):
    for command in (["status"], ["ask", "echo", "x"], ["chat"], ["chats"], ["token"], ["agents"]):
        done = cli(*command)
        assert done.returncode == 3, command
        assert done.stderr == "aios-nb: no node is running (start one: aios-nb up)\n"


def test_an_impostor_on_the_port_of_a_dead_node_is_named(cli):
    up = cli.start("--name", "alice")
    run = cli.home / "run" / "alice.json"
    kept = run.read_bytes()
    up.stop()
    other = cli.start("--name", "mallory", "--port", up.said["url"].rpartition(":")[2])
    try:
        # Alice's run file is back and her lock is held, but mallory answers on her port.
        run.write_bytes(kept)
        run.chmod(0o600)
        with (cli.home / "run" / "alice.lock").open("r+b") as lock:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
            done = cli("ask", "--node", "alice", "echo", "x")
            assert done.returncode == 1
            assert "is not node" in done.stderr
            assert "no token was sent" in done.stderr
            assert cli("doctor").returncode == 1
    finally:
        other.stop()


def test_lab_and_bench_pass_their_options_on(cli):
    import jupyterlab

    assert cli("lab", "--version").stdout.strip() == jupyterlab.__version__
    assert "JupyterLab" in cli("lab", "--help").stdout
    assert cli("bench", "--help").returncode == 0
    assert cli("bench", "--no-such-option").returncode == 2


def test_the_address_that_lab_prints_leads_to_the_quickstart(cli, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "aios_nb", "lab", "--no-browser", "--ServerApp.port=0"],
        env={**_env(cli), "HOME": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        address = next(line for line in process.stderr if "http://127.0.0.1:" in line)
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert "/lab/tree/quickstart.ipynb?token=" in address


def test_lab_saves_widgets_by_default_and_keeps_the_users_own_defaults(cli, tmp_path):
    theirs = tmp_path / "theirs" / "labconfig" / "default_setting_overrides.json"
    theirs.parent.mkdir(parents=True)
    theirs.write_text(
        '{"@jupyterlab/notebook-extension:tracker": {"autoStartDefaultKernel": true}}'
    )
    runtime = tmp_path / "runtime"
    own = {
        "HOME": str(tmp_path),
        "JUPYTER_CONFIG_PATH": str(tmp_path / "theirs"),
        "JUPYTER_RUNTIME_DIR": str(runtime),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "aios_nb", "lab", "--no-browser", "--ServerApp.port=0"],
        env={**_env(cli), **own},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        next(line for line in process.stderr if "To access the server" in line)
        server = json.loads((runtime / f"jpserver-{process.pid}.json").read_text())

        def setting(plugin, name):
            url = f"{server['url']}lab/api/settings/{plugin}?token={server['token']}"
            with _opened(url) as answer:
                told = json.load(answer)
            return told["raw"], told["schema"]["properties"][name]["default"]

        widgets = setting("@jupyter-widgets/jupyterlab-manager:plugin", "saveState")
        tracker = setting("@jupyterlab/notebook-extension:tracker", "autoStartDefaultKernel")
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert widgets == ("{}", True), "a default: in the user's settings is nothing"
    assert tracker == ("{}", True)


def test_binder_saves_widgets_as_lab_does():
    binder = json.loads((ROOT / "binder" / "overrides.json").read_text())
    ours = DEFAULTS / "labconfig" / "default_setting_overrides.json"
    assert json.loads(ours.read_text()).items() <= binder.items()


def test_lab_opens_the_quickstart_of_a_checkout(tmp_path):
    from aios_nb.cli.lab import quickstart

    found = quickstart(tmp_path)
    assert found is not None
    assert found.name == "quickstart.ipynb"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "say what to do"),
        (["serach"], "search"),
        (["ask"], "AGENT"),
        (["status", "--bogus"], "--bogus"),
        (["up", "--port", "99999"], "99999"),
        (["up", "--join", "ftp://example.org"], "is not the URL of a node"),
        (["up", "--join", "127.0.0.1:8765"], "is not the URL of a node"),
        (["up", "--join", "http://me:s3cret@example.org"], "no user or password"),
        (["up", "--join", "http://example.org/path"], "more than scheme, host and port"),
        (["up", "--join", "http://example.org#short"], "32 characters"),
        (["up", "--network", "No Name"], "cannot be the name of a network"),
        (["search", "-n", "0", "x"], "between"),
        (["ask", "echo", "--deadline", "-1", "x"], "deadline"),
    ],
)
def test_what_cannot_be_meant_is_exit_code_2_and_one_line(cli, args, said):
    done = cli(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("aios-nb: ")
    assert said in last


def _opened(url: str):
    """The answer of a server that has said its address; it listens a moment later."""
    until = time.monotonic() + WAIT_S
    while True:
        try:
            return urllib.request.urlopen(url, timeout=WAIT_S)
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _env(cli) -> dict[str, str]:
    return {
        **os.environ,
        "AIOS_HOME": str(cli.home),
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }


def test_two_signals_in_one_moment_are_one_wish(cli):
    for first, second in ((signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGTERM)):
        up = cli.start("--name", "alice")
        up.process.send_signal(first)
        up.process.send_signal(second)
        up.process.send_signal(second)
        up.process.wait(60)  # on a slow machine one more would come after a while
        code, _, errors = up.stop()
        assert (code, errors) == (0, "")
        assert not (cli.home / "run" / "alice.json").exists()


def test_a_signal_after_the_stop_does_not_spoil_the_exit_code(tmp_path):
    code = (
        "import os, signal\n"
        "from aios_nb.cli.serve import _Signals\n"
        "signals = _Signals(); signals.node_is_up()\n"
        "os.kill(os.getpid(), signal.SIGTERM); signals.wait(); signals.ignore()\n"
        "for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):\n"
        "    os.kill(os.getpid(), number)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_who_asks_again_after_a_while_is_not_kept_waiting():
    code = (
        "import os, signal, time\n"
        "from aios_nb.cli import serve\n"
        "signals = serve._Signals(); signals.node_is_up()\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "signals._first_at -= serve.FORCE_AFTER_S\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "signals.wait(); print('still here')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (130, b"")


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_start_that_takes_long(cli, tmp_path, number, exit_code):
    slow = tmp_path / "slow.py"
    slow.write_text("import time\nprint('loading', flush=True)\ntime.sleep(600)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "aios_nb", "up", "--name", "alice", "--agents", str(slow)],
        env=_env(cli),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "loading\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == exit_code
    assert errors.count("\n") == 1
    assert "Traceback" not in errors


def test_an_agent_that_takes_the_place_of_another_is_told_of(cli, tmp_path):
    agents = tmp_path / "mine.py"
    agents.write_text(
        "import aios_nb as aios\n"
        "@aios.agent\ndef twice(text): return '1'\n"
        "@aios.agent(name='twice')\ndef again(text): return '2'\n"
        "@aios.agent\ndef echo(text): return '3'\n"
    )
    other = tmp_path / "other.py"
    other.write_text("import aios_nb as aios\n@aios.agent\ndef twice(text): return '4'\n")
    up = cli.start("--agents", str(agents), "--agents", str(other))
    lines = up.stop()[2].splitlines()
    assert len(lines) == 3
    assert "two agents are called twice" in lines[0]
    assert "echo" in lines[1]
    assert "hides the built-in" in lines[1]
    assert "other.py" in lines[2]


@pytest.mark.parametrize(
    "args", [["up", "--port", "x"], ["search", "-n", "1.5", "x"], ["ask", "--deadline", "soon"]]
)
def test_a_number_that_is_none_is_said_in_plain_words(cli, args):
    done = cli(*args)
    assert done.returncode == 2
    assert "invalid" not in done.stderr
    assert "_" not in done.stderr
    assert repr(args[2]) in done.stderr


def test_a_home_that_is_a_file_gets_a_hint(cli):
    cli.home.write_text("")
    done = cli("up")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "AIOS_HOME" in done.stderr
