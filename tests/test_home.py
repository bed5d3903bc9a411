from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aios_nb import home as home_module
from aios_nb.envelope import NAME
from aios_nb.errors import HomeError, NameTaken, NotRunning, UsageError
from aios_nb.home import Claim, Home, RunInfo, boot_id, default_name
from aios_nb.identity import Identity

ROOT = Path(__file__).parent.parent
NOWHERE: dict[str, str] = {}
"""An environment outside a notebook."""


@pytest.fixture
def home(aios_home: Path) -> Home:
    return Home(aios_home)


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def info(name: str, **more: object) -> RunInfo:
    fields = {"node_id": "a" * 32, "url": "http://127.0.0.1:1", "token": "s3cret"} | more
    return msgspec.convert(
        {"name": name, **fields, "pid": os.getpid(), "boot_id": boot_id()}, RunInfo
    )


def instead_of_waiting(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[float]:
    """Run ``act`` in place of the first pause of a claim."""
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            act()

    monkeypatch.setattr(home_module, "_pause", pause)
    return pauses


# Folders


def test_a_home_is_made_for_its_owner_only(home: Home):
    old = os.umask(0)
    try:
        home.claim("alice").release()
    finally:
        os.umask(old)
    for folder in (home.path, *(home.path / name for name in ("keys", "run", "blobs"))):
        assert mode(folder) == 0o700
    assert mode(home.lock_path("alice")) == 0o600


def test_looking_at_a_home_makes_nothing(home: Home):
    assert home.running() == []
    with pytest.raises(NotRunning):
        home.find(None, NOWHERE)
    assert not home.path.exists()


def test_everything_of_a_node_is_under_its_name(home: Home):
    assert home.key_path("alice") == home.path / "keys" / "alice.key"
    assert home.db_path("alice") == home.path / "alice.db"
    assert home.blobs_path("alice") == home.path / "blobs" / "alice"
    assert home.run_path("alice") == home.path / "run" / "alice.json"
    assert home.lock_path("alice") == home.path / "run" / "alice.lock"


def test_the_default_home_is_the_one_of_the_environment(aios_home: Path):
    assert Home().path == aios_home


def test_a_home_that_was_opened_to_others_is_closed_again(home: Home):
    home.claim("alice").release()
    for folder in (home.path, home.path / "keys", home.path / "run"):
        folder.chmod(0o755)
    home.claim("alice").release()
    assert {mode(home.path), mode(home.path / "keys"), mode(home.path / "run")} == {0o700}


def test_an_empty_folder_is_closed_and_used(home: Home):
    home.path.mkdir(mode=0o755)
    home.claim("alice").release()
    assert mode(home.path) == 0o700


def test_a_folder_with_other_things_is_not_closed_to_others(home: Home):
    home.path.mkdir()
    home.path.chmod(0o755)
    (home.path / "thesis.tex").touch()
    with pytest.raises(HomeError, match="holds other things") as caught:
        home.claim("alice")
    assert "AIOS_HOME" in str(caught.value)
    assert mode(home.path) == 0o755
    assert [entry.name for entry in home.path.iterdir()] == ["thesis.tex"]


def test_a_home_of_another_user_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch):
    home.prepare()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(HomeError, match="belongs to another user"):
        home.claim("alice")


def test_a_disk_that_keeps_no_permissions_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch):
    home.path.mkdir()
    home.path.chmod(0o755)
    monkeypatch.setattr(Path, "chmod", lambda *_: None)
    with pytest.raises(HomeError, match="stays open"):
        home.claim("alice")


@pytest.mark.parametrize("below", ["", "sub"])
def test_a_file_in_the_place_of_the_home_is_one_clear_line(home: Home, below: str):
    home.path.touch(mode=0o600)
    with pytest.raises(HomeError) as caught:
        Home(home.path / below).claim("alice")
    assert "\n" not in str(caught.value)
    assert Home(home.path / below).running() == []


def test_a_disk_without_locks_is_one_clear_line(home: Home, monkeypatch: pytest.MonkeyPatch):
    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    before = open_files()
    with pytest.raises(HomeError, match="cannot be locked") as caught:
        home.claim("alice")
    assert "local disk" in str(caught.value)
    assert open_files() == before


# Names


@pytest.mark.parametrize("name", ["", "Alice", "../alice", "a/b", "-a", "a" * 49, "é", "a\n", "."])
def test_a_bad_name_is_refused_with_one_that_would_do(home: Home, name: str):
    with pytest.raises(UsageError) as caught:
        home.claim(name)
    assert caught.value.hint
    assert NAME.fullmatch(caught.value.hint.rpartition(" ")[2])
    for path in (home.key_path, home.db_path, home.blobs_path, home.run_path, home.lock_path):
        with pytest.raises(UsageError):
            path(name)
    assert not home.path.exists()


def test_a_node_does_not_take_the_database_of_the_bridge(home: Home):
    with pytest.raises(UsageError, match="bridge"):
        home.claim("telegram-123456789")


def test_outside_a_notebook_a_node_is_called_node():
    assert default_name(NOWHERE) == ("node", False)
    assert default_name({"JPY_SESSION_NAME": ""}) == ("node", False)


def test_a_notebooks_node_is_called_after_its_path():
    name, from_path = default_name({"JPY_SESSION_NAME": "/home/me/My Analysis (2).ipynb"})
    assert from_path
    assert name.startswith("my-analysis-2-")
    assert default_name({"JPY_SESSION_NAME": "/home/me/My Analysis (2).ipynb"})[0] == name
    assert default_name({"JPY_SESSION_NAME": "/home/you/My Analysis (2).ipynb"})[0] != name


def test_one_notebook_has_one_name_however_its_accents_are_stored():
    joined = default_name({"JPY_SESSION_NAME": "/a/caf\u00e9.ipynb"})
    apart = default_name({"JPY_SESSION_NAME": "/a/cafe\u0301.ipynb"})
    assert joined == apart
    assert joined[0].startswith("cafe-")


@given(st.text(min_size=1, max_size=300))
def test_any_path_gives_a_valid_name(path: str):
    name, from_path = default_name({"JPY_SESSION_NAME": path})
    assert from_path
    assert NAME.fullmatch(name)


def test_a_path_of_bytes_that_are_no_text_gives_a_valid_name():
    assert NAME.fullmatch(default_name({"JPY_SESSION_NAME": "/a/\udcff.ipynb"})[0])


# Claims


def test_a_free_name_is_had_at_once(home: Home, monkeypatch: pytest.MonkeyPatch):
    pauses = instead_of_waiting(monkeypatch, lambda: None)
    with home.claim("alice") as claim:
        assert claim.name == "alice"
        assert claim.sibling_of is None
        assert claim.held
        assert home.is_held("alice")
    assert not claim.held
    assert not home.is_held("alice")
    assert pauses == []


def test_a_taken_name_is_waited_for(home: Home, monkeypatch: pytest.MonkeyPatch):
    first = home.claim("alice")
    pauses = instead_of_waiting(monkeypatch, first.release)
    with home.claim("alice", wait_s=60) as second:
        assert second.name == "alice"
        assert second.sibling_of is None
    assert len(pauses) == 1


def test_a_name_that_stays_taken_gets_a_numbered_sibling(home: Home):
    with home.claim("alice"), home.claim("alice", wait_s=0) as second:
        assert (second.name, second.sibling_of) == ("alice-2", "alice")
        with home.claim("alice", wait_s=0) as third:
            assert (third.name, third.sibling_of) == ("alice-3", "alice")


def test_a_notebooks_name_is_waited_for_too(home: Home, monkeypatch: pytest.MonkeyPatch):
    notebook = {"JPY_SESSION_NAME": "/home/me/a.ipynb"}
    first = home.claim(None, environ=notebook)
    instead_of_waiting(monkeypatch, first.release)
    with home.claim(None, wait_s=60, environ=notebook) as second:
        assert second.name == first.name


def test_the_fallback_name_takes_the_next_number_at_once(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    pauses = instead_of_waiting(monkeypatch, lambda: None)
    with home.claim(environ=NOWHERE) as first, home.claim(environ=NOWHERE) as second:
        assert (first.name, second.name) == ("node", "node-2")
        assert second.sibling_of is None
    assert pauses == []


def test_a_long_name_and_its_number_stay_a_valid_name(home: Home):
    name = "a" * 48
    with home.claim(name), home.claim(name, wait_s=0) as second:
        assert NAME.fullmatch(second.name)
        assert second.name == "a" * 46 + "-2"


def test_when_all_siblings_are_taken_it_says_so(home: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(home_module, "SIBLINGS_MAX", 1)
    with (
        home.claim("alice"),
        home.claim("alice", wait_s=0),
        pytest.raises(NameTaken, match="choose another"),
    ):
        home.claim("alice", wait_s=0)


def test_a_claim_can_be_released_twice(home: Home):
    first = home.claim("alice")
    first.release()
    with home.claim("alice") as second:
        first.release()
        assert second.held
        assert home.is_held("alice")


def test_a_home_reached_by_another_path_is_the_same_home(home: Home, tmp_path: Path):
    with home.claim("alice"):
        link = tmp_path / "link"
        link.symlink_to(home.path)
        with Home(link).claim("alice", wait_s=0) as other:
            assert other.name == "alice-2"


def test_two_threads_never_get_one_name(home: Home):
    claims: list[Claim] = []
    threads = [
        threading.Thread(target=lambda: claims.append(home.claim(environ=NOWHERE)))
        for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({claim.name for claim in claims}) == 10
    for claim in claims:
        claim.release()


def test_a_reader_that_looks_at_a_lock_does_not_make_a_starter_fail(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    home.claim("node").release()
    reader = os.open(home.lock_path("node"), os.O_RDONLY)
    fcntl.flock(reader, fcntl.LOCK_SH)
    pauses = instead_of_waiting(monkeypatch, lambda: os.close(reader))
    with home.claim(environ=NOWHERE) as claim:
        assert claim.name == "node"
    assert len(pauses) == 1


def test_looking_does_not_end_the_lock(home: Home):
    with home.claim("alice"):
        assert home.is_held("alice")
        assert _run(home, "print(home.is_held('alice'))") == "True"
        assert _run(home, "print(home.claim('alice', wait_s=0).name)") == "alice-2"


def test_a_network_disk_whose_locks_are_the_processs_keeps_names_apart_too(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    # There flock acts like lockf: a second lock of one process succeeds, and closing any
    # descriptor of the file ends the first.
    monkeypatch.setattr(fcntl, "flock", fcntl.lockf)
    likewise = "import fcntl; fcntl.flock = fcntl.lockf;"
    with home.claim("alice"):
        assert home.is_held("alice")
        with home.claim("alice", wait_s=0) as second:
            assert second.name == "alice-2"
        assert _run(home, likewise + "print(home.is_held('alice'))") == "True"
    assert _run(home, likewise + "print(home.is_held('alice'))") == "False"


def test_a_folder_cleared_by_hand_does_not_give_a_lock_on_a_deleted_file(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    path = home.lock_path("alice")
    real = fcntl.flock

    def cleared_first(fd: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        path.unlink()
        real(fd, how)

    home.prepare()
    monkeypatch.setattr(fcntl, "flock", cleared_first)
    monkeypatch.setattr(home_module, "_pause", lambda _: None)
    with home.claim("alice") as claim:
        assert claim.name == "alice"
        assert path.exists()
        assert _run(home, "print(home.is_held('alice'))") == "True"


def test_starting_and_stopping_leaves_no_descriptor_open(home: Home):
    home.claim("alice").release()
    before = open_files()
    for _ in range(20):
        with home.claim("alice") as claim:
            claim.publish(info("alice"))
            home.claim("alice", wait_s=0).release()
            assert len(home.running()) == 1
    assert open_files() == before


# Run files


def test_a_running_node_is_found_and_a_stopped_one_is_not(home: Home):
    with home.claim("alice") as claim:
        assert home.running() == []
        claim.publish(info("alice"))
        assert home.running() == [info("alice", started_at=home.running()[0].started_at)]
        assert home.find("alice", NOWHERE).token == "s3cret"
        assert mode(home.run_path("alice")) == 0o600
    assert home.running() == []
    assert not home.run_path("alice").exists()
    assert sorted(entry.name for entry in (home.path / "run").iterdir()) == ["alice.lock"]


def test_publishing_again_replaces_what_was_said(home: Home):
    with home.claim("alice") as claim:
        claim.publish(info("alice", url="http://127.0.0.1:1"))
        claim.publish(info("alice", url="http://127.0.0.1:2"))
        assert home.find(None, NOWHERE).url == "http://127.0.0.1:2"


def test_only_the_holder_of_a_name_publishes_under_it(home: Home):
    with home.claim("alice") as claim, pytest.raises(ValueError, match="alice"):
        claim.publish(info("bob"))
    with pytest.raises(HomeError, match="not held"):
        claim.publish(info("alice"))


def test_a_run_info_knows_its_process_and_does_not_show_its_token():
    shown = RunInfo(name="alice", node_id="a" * 32, url="http://127.0.0.1:1", token="s3cret")
    assert shown.pid == os.getpid()
    assert shown.boot_id == boot_id()
    assert shown.started_at.endswith("Z")
    for text in (repr(shown), str(shown), f"{shown}", repr([shown])):
        assert "s3cret" not in text


def test_a_run_file_without_a_lock_is_ignored_and_left_alone(home: Home):
    home.prepare()
    for name in ("alice", "bob"):
        home.run_path(name).write_bytes(msgspec.json.encode(info(name)))
        home.run_path(name).chmod(0o600)
    home.lock_path("bob").touch()
    assert home.running() == []
    assert home.run_path("alice").exists()
    assert home.run_path("bob").exists()


def test_a_new_claim_clears_what_a_killed_node_left(home: Home):
    home.prepare()
    home.run_path("alice").write_bytes(msgspec.json.encode(info("alice")))
    home.run_path("alice").chmod(0o600)
    with home.claim("alice"):
        assert home.running() == []
        assert not home.run_path("alice").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"name":"alice"}',
        b" " * 20_000,
        msgspec.json.encode(info("bob")),
    ],
)
def test_a_run_file_that_says_nothing_useful_is_ignored(home: Home, content: bytes):
    with home.claim("alice"):
        home.run_path("alice").write_bytes(content)
        home.run_path("alice").chmod(0o600)
        assert home.running() == []


def test_a_run_file_that_others_could_have_written_is_ignored(home: Home):
    with home.claim("alice") as claim:
        claim.publish(info("alice"))
        home.run_path("alice").chmod(0o666)
        assert home.running() == []


def test_a_node_on_another_machine_that_shares_the_home_is_not_running_here(home: Home):
    with home.claim("alice") as claim:
        claim.publish(msgspec.structs.replace(info("alice"), boot_id="elsewhere"))
        assert home.running() == ([] if boot_id() else [home.find("alice", NOWHERE)])


def test_other_files_beside_the_run_files_do_no_harm(home: Home):
    with home.claim("alice") as claim:
        claim.publish(info("alice"))
        for name in ("README.json", ".hidden.json", "x.txt", "telegram-123456.json"):
            (home.path / "run" / name).touch()
        (home.path / "run" / "bob.json").mkdir()
        assert [found.name for found in home.running()] == ["alice"]


# Finding


@contextlib.contextmanager
def _nodes(home: Home, *names: str) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(home.claim(name)).publish(info(name))
        yield


def test_the_only_running_node_is_meant(home: Home):
    with _nodes(home, "alice"):
        assert home.find(None, NOWHERE).name == "alice"


def test_a_node_is_named_by_option_then_by_environment(home: Home):
    with _nodes(home, "alice", "bob"):
        assert home.find("bob", {"AIOS_NODE": "alice"}).name == "bob"
        assert home.find(None, {"AIOS_NODE": "alice"}).name == "alice"


def test_when_several_run_and_none_is_named_they_are_listed(home: Home):
    with _nodes(home, "alice", "bob"), pytest.raises(NotRunning) as caught:
        home.find(None, {"AIOS_NODE": ""})
    assert "alice, bob" in str(caught.value)
    assert "--node" in str(caught.value)


def test_when_none_runs_it_says_how_to_start_one(home: Home):
    with pytest.raises(NotRunning, match="aios-nb up"):
        home.find(None, NOWHERE)
    with pytest.raises(NotRunning, match="aios-nb up --name alice"):
        home.find("alice", NOWHERE)
    with pytest.raises(NotRunning, match="aios-nb up --name my-node"):
        home.find("My Node", NOWHERE)


def test_a_wrong_name_offers_the_near_ones(home: Home):
    with _nodes(home, "alice", "bob"):
        with pytest.raises(NotRunning, match="did you mean alice"):
            home.find("alcie", NOWHERE)
        with pytest.raises(NotRunning, match="running: alice, bob"):
            home.find("zzzzzz", NOWHERE)
        with pytest.raises(NotRunning):
            home.find("../../etc/passwd", NOWHERE)


def test_a_node_that_is_still_starting_is_said_to_be(home: Home):
    with home.claim("alice"), pytest.raises(NotRunning, match="still starting"):
        home.find("alice", NOWHERE)


# Other processes

PRELUDE = """
import os, sys
from pathlib import Path
from aios_nb.home import Home, RunInfo
home = Home(Path(sys.argv[1]))
def say(*words): print(*words, flush=True)
def wait(): return sys.stdin.readline()
"""
HOLD = """
from aios_nb.identity import Identity
claim = home.claim(sys.argv[2] or None)
identity = Identity.load_or_create(home.key_path(claim.name))
claim.publish(RunInfo(name=claim.name, node_id=identity.node_id, url="http://x", token="t"))
say(claim.name, identity.node_id)
wait()
claim.release()
"""


class Child:
    """A process that says things and waits to be told to go on."""

    def __init__(self, home: Home, code: str, *args: str, **environ: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, home.path, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | environ,
        )

    def hear(self) -> list[str]:
        assert self.process.stdout
        return self.process.stdout.readline().split()

    def go_on(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        if self.process.stdin and not self.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        if self.process.stdout:
            self.process.stdout.close()
        self.process.wait()


@pytest.fixture
def start(home: Home) -> Iterator[Callable[..., Child]]:
    children: list[Child] = []

    def start(code: str, *args: str, **environ: str) -> Child:
        children.append(Child(home, code, *args, **environ))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.end()


def _run(home: Home, code: str, *args: str) -> str:
    command = [sys.executable, "-c", PRELUDE + code, home.path, *args]
    return subprocess.check_output(command, text=True, cwd=ROOT).strip()


Start = Callable[..., Child]


def test_two_processes_do_not_hold_one_name(home: Home, start: Start):
    first = start(HOLD, "alice")
    name, node_id = first.hear()
    assert name == "alice"
    with home.claim("alice", wait_s=0) as second:
        assert (second.name, second.sibling_of) == ("alice-2", "alice")
        assert Identity.load_or_create(home.key_path(second.name)).node_id != node_id
    assert [found.node_id for found in home.running()] == [node_id]
    first.go_on()
    first.end()
    assert home.running() == []
    with home.claim("alice", wait_s=0) as again:
        assert again.name == "alice"


def test_a_killed_node_started_again_at_once_is_the_same_node(home: Home, start: Start):
    first = start(HOLD, "alice")
    before = first.hear()
    first.kill()
    assert home.run_path("alice").exists()
    assert home.running() == []
    second = start(HOLD, "alice")
    assert second.hear() == before
    assert [found.pid for found in home.running()] == [second.process.pid]


def test_s26_two_notebooks_restarted_in_the_other_order_keep_their_identity(start: Start):
    one, two = {"JPY_SESSION_NAME": "/me/a.ipynb"}, {"JPY_SESSION_NAME": "/me/b.ipynb"}
    first, second = start(HOLD, "", **one), start(HOLD, "", **two)
    was_one, was_two = first.hear(), second.hear()
    assert was_one[1] != was_two[1]
    first.kill()
    second.kill()
    second, first = start(HOLD, "", **two), start(HOLD, "", **one)
    assert (first.hear(), second.hear()) == (was_one, was_two)


def test_a_restarting_kernel_waits_for_its_old_self(start: Start):
    notebook = {"JPY_SESSION_NAME": "/me/a.ipynb"}
    old = start(HOLD, "", **notebook)
    before = old.hear()
    told = """
import aios_nb.home as module
real = module._pause
def pause(seconds):
    say("waiting")
    module._pause = real
    wait()
module._pause = pause
"""
    patient = HOLD.replace("sys.argv[2] or None", "sys.argv[2] or None, wait_s=60")
    new = start(told + patient, "", **notebook)
    assert new.hear() == ["waiting"]
    old.kill()
    new.go_on()
    assert new.hear() == before


def test_twenty_starters_at_once_get_twenty_names(home: Home, start: Start):
    race = 'say("ready"); wait(); say(home.claim().name); wait()'
    racers = [start(race) for _ in range(20)]
    for racer in racers:
        assert racer.hear() == ["ready"]
    for racer in racers:
        racer.go_on()
        home.is_held("node")  # a reader in their midst
    names = {racer.hear()[0] for racer in racers}
    assert names == {"node", *(f"node-{number}" for number in range(2, 21))}


def test_a_forked_child_that_outlives_a_killed_node_does_not_keep_its_name(
    home: Home, start: Start
):
    forks = """
claim = home.claim("alice")
claim.publish(RunInfo(name="alice", node_id="a" * 32, url="http://x", token="t"))
if os.fork() == 0:
    claim.release()  # not the child's to release
    say(os.getpid(), claim.held, home.is_held("alice"), home.run_path("alice").exists())
    wait()
    os._exit(0)
import time
while True:
    time.sleep(60)
"""
    parent = start(forks)
    child, *seen = parent.hear()
    try:
        assert seen == ["False", "True", "True"]
        assert home.is_held("alice")
        parent.kill()
        os.kill(int(child), 0)  # it lives
        with home.claim("alice", wait_s=0) as claim:
            assert claim.name == "alice"
    finally:
        os.kill(int(child), signal.SIGKILL)


def test_a_started_program_does_not_keep_the_name(home: Home, start: Start):
    spawns = """
import subprocess
claim = home.claim("alice")
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False)
say(child.pid)
wait()
"""
    parent = start(spawns)
    (child,) = parent.hear()
    try:
        os.kill(int(child), signal.SIGSTOP)  # so that it cannot end with its parent
        parent.kill()
        with home.claim("alice", wait_s=0) as claim:
            assert claim.name == "alice"
    finally:
        os.kill(int(child), signal.SIGKILL)


def test_a_child_forked_amid_claims_of_another_thread_is_not_stuck(start: Start):
    busy = """
import threading, warnings
warnings.simplefilter("ignore")
stop = threading.Event()
def churn():
    while not stop.is_set():
        home.claim("alice", wait_s=0).release()
        home.is_held("alice")
thread = threading.Thread(target=churn)
thread.start()
for _ in range(30):
    child = os.fork()
    if child == 0:
        home.claim("bob").release()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
say("fine")
"""
    assert start(busy).hear() == ["fine"]


def test_where_there_are_no_such_locks_importing_works_and_claiming_says_so():
    windows = """
import sys, os, threading, subprocess, pathlib, msgspec, tempfile, concurrent.futures
sys.platform = "win32"
sys.modules["fcntl"] = None
for name in ("register_at_fork", "geteuid", "fchmod", "O_CLOEXEC", "O_NONBLOCK"):
    delattr(os, name)
from aios_nb.home import Home
home = Home(pathlib.Path(sys.argv[1]))
assert home.running() == []
try:
    home.claim("alice")
except Exception as error:
    print(type(error).__name__, error)
"""
    command = [sys.executable, "-c", windows, "nowhere"]
    said = subprocess.check_output(command, text=True, cwd=ROOT)
    assert said == "HomeError Windows is not supported (use WSL, Linux or macOS)\n"
    assert not (ROOT / "nowhere").exists()
