from __future__ import annotations

import json
import sqlite3
from contextlib import closing

from aios_nb.people.checks import Health, machine, storage
from aios_nb.people.layout import size


def _health(report, about):
    return {check["health"] for check in report["checks"] if check["about"] == about}


def test_a_healthy_machine_has_nothing_to_fix(site):
    done = site("doctor", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert report["ok"] is True
    assert _health(report, "nodes") == {"ok"}
    assert _health(report, "wal") == {"ok"}
    assert "proved its key" in site("doctor").stdout


def test_a_fresh_machine_has_nothing_to_fix(cli):
    assert cli("doctor").returncode == 0
    assert not cli.home.exists()


def test_a_home_open_to_others_is_named_with_its_cure(cli):
    cli.home.mkdir(mode=0o755)
    (cli.home / "keys").mkdir()
    key = cli.home / "keys" / "node.key"
    key.write_text("secret")
    key.chmod(0o644)
    done = cli("doctor")
    assert done.returncode == 1
    assert f"chmod 700 {cli.home}" in done.stdout
    assert f"chmod 600 {key}" in done.stdout


def test_a_run_file_left_by_a_killed_node_is_a_warning(cli):
    up = cli.start("--name", "alice")
    up.process.kill()
    up.stop()
    done = cli("doctor")
    assert done.returncode == 0
    assert "left by nodes that died: alice" in done.stdout


def test_a_clock_in_the_past_is_found():
    assert machine.clock(0).health is Health.FAIL
    assert machine.clock(machine.NOT_BEFORE_UNIX + 1).health is Health.OK


def test_versions_are_compared_as_numbers():
    assert machine._fits("3.14.5", ">=", "3.9")
    assert not machine._fits("2.9", ">=", "2.10")
    assert machine._fits("2.99", "<", "3")
    assert not machine._fits("3.0.1", "<", "3")
    assert machine._fits("2.2.3", "==", "2.2.3")


def test_a_missing_package_is_named():
    assert machine._missing("no-such-package>=1") == "no-such-package is missing"
    assert "wanted >=99" in (machine._missing("pytest>=99") or "")
    assert machine._missing("pytest>=1") is None


def test_a_system_without_the_table_of_connections_is_a_warning(tmp_path):
    assert machine.uid_rule(tmp_path / "none").health is Health.WARN


def test_locks_and_wal_are_tried_on_the_very_disk(tmp_path):
    assert storage.locks(tmp_path).health is Health.OK
    assert storage.wal(tmp_path).health is Health.OK
    assert list(tmp_path.iterdir()) == []
    assert storage.wal(tmp_path / "none").health is Health.FAIL


def test_sizes_read_well():
    assert [size(count) for count in (0, 1023, 1536, 5 << 30)] == [
        "0 bytes",
        "1023 bytes",
        "1.5 KB",
        "5.0 GB",
    ]


def test_a_database_that_is_none_is_named_with_what_to_do(cli):
    cli.start("--name", "alice").stop()
    assert cli("doctor").returncode == 0
    path = cli.home / "alice.db"
    path.write_bytes(b"junk" * 1000)
    done = cli("doctor")
    assert done.returncode == 1
    assert f"{path} cannot be read" in done.stdout
    assert "put back a copy" in done.stdout


def test_a_database_of_a_newer_version_is_named(cli):
    cli.start("--name", "alice").stop()
    with closing(sqlite3.connect(cli.home / "alice.db")) as database:
        database.execute("PRAGMA user_version = 999")
    before = sorted(cli.home.iterdir())
    report = json.loads(cli("doctor", "--json").stdout)
    assert _health(report, "databases") == {"fail"}
    assert "newer" in str(report)
    assert sorted(cli.home.iterdir()) == before


def test_a_damaged_database_is_found_without_changing_it(cli):
    cli.start("--name", "alice").stop()
    path = cli.home / "alice.db"
    content = bytearray(path.read_bytes())
    for page in range(2, len(content) // 4096):
        content[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    path.write_bytes(content)
    assert storage.database(path).health is Health.FAIL
    assert path.read_bytes() == content


def test_a_damaged_key_is_named_with_what_to_do(cli):
    cli.start("--name", "alice").stop()
    (cli.home / "keys" / "alice.key").write_text("junk")
    done = cli("doctor")
    assert done.returncode == 1
    assert "alice.key is damaged" in done.stdout
    assert "put back a copy" in done.stdout
