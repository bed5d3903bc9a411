"""Agents from files and modules."""

from __future__ import annotations

import sys

import pytest

from aios_nb.agents import declared, load_agents
from aios_nb.errors import UsageError


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)

    def make(name, source):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(source)
        return str(path)

    yield make
    for name in set(sys.modules) - before:
        del sys.modules[name]


AGENT = "from aios_nb.agents import agent\n@agent\ndef adder(text):\n    'Adds.'\n    return text\n"


def test_a_file_gives_its_agents_and_declares_nothing_else(write):
    found = load_agents(write("mine.py", AGENT + "@agent\nasync def other(text): ...\n"))
    assert [d.name for d in found] == ["adder", "other"]
    assert found[0].run("x") == "x"
    assert not declared


def test_a_file_is_run_once_each_time_and_not_as_main(write):
    path = write("mine.py", AGENT + "import sys\nsys.ran = [*getattr(sys, 'ran', []), __name__]\n")
    load_agents(path)
    assert sys.ran == ["aios_agents_mine"]
    load_agents(path)
    assert len(sys.ran) == 2
    del sys.ran


def test_modules_beside_the_file_can_be_imported(write):
    write("deep/beside.py", "word = 'beside'")
    path = write("deep/mine.py", "import beside\n" + AGENT + "    \nadder.word = beside.word\n")
    assert load_agents(path)[0].run.word == "beside"


def test_dataclasses_and_late_annotations_work_in_a_file(write):
    source = (
        "from __future__ import annotations\nimport dataclasses, msgspec\n"
        "@dataclasses.dataclass\nclass A:\n    x: int\n"
        "class B(msgspec.Struct):\n    y: int\n" + AGENT.replace("from __future__", "")
    )
    assert load_agents(write("json.py", source))[0].name == "adder"
    assert sys.modules["json"].__name__ == "json"
    assert hasattr(sys.modules["json"], "dumps")


def test_a_module_gives_its_agents_also_when_it_was_imported_before(write):
    write("package/__init__.py", "")
    write("package/mine_mod.py", AGENT)
    assert [d.name for d in load_agents("package.mine_mod")] == ["adder"]
    assert [d.name for d in load_agents("package.mine_mod")] == ["adder"]


@pytest.mark.parametrize(
    ("name", "source", "told"),
    [
        ("bad.py", "x = 1\ndef f(:\n", r"bad\.py:2: invalid syntax"),
        ("bad.py", "x = 1\n\nraise ValueError('boom\\nmore')\n", r"bad\.py:3: ValueError: boom$"),
        ("bad.py", "def f():\n    1/0\nf()\n", r"bad\.py:2: ZeroDivisionError: division by zero"),
        ("bad.py", "import sys\nsys.exit(3)\n", r"bad\.py:2: SystemExit: 3"),
        ("bad.py", "import nowhere_to_be_found\n", r"bad\.py:1: ModuleNotFoundError"),
        ("bad.py", "x = 1\n", r"no agents in .*bad\.py \(put @aios\.agent"),
        ("bad.py", "x = '\0'\n", r"bad\.py: .*null bytes"),
        (
            "bad.py",
            "from aios_nb.agents import agent\n@agent\ndef f(): ...\n",
            r"bad\.py:[23]: f takes parameters: none \(an agent takes",
        ),
    ],
)
def test_a_mistake_in_a_file_is_one_line_with_its_place(write, name, source, told):
    with pytest.raises(UsageError, match=told) as found:
        load_agents(write(name, source))
    assert "\n" not in str(found.value)


def test_an_error_in_a_module_beside_the_file_names_the_line_that_led_there(write):
    write("beside_bad.py", "1/0\n")
    with pytest.raises(UsageError, match=r"mine\.py:1: ZeroDivisionError"):
        load_agents(write("mine.py", "import beside_bad\n"))
    write("beside_worse.py", "x = (\n")
    with pytest.raises(UsageError, match=r"beside_worse\.py:1: "):
        load_agents(write("mine.py", "import beside_worse\n"))


def test_a_missing_file_folder_or_module_is_one_line(write, tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*none\.py: No such file"):
        load_agents("none.py")
    with pytest.raises(UsageError, match="is a folder"):
        load_agents(f"{tmp_path}/")
    with pytest.raises(UsageError, match=r"no module 'no_such' \(for a file, say FILE\.py"):
        load_agents("no_such")
    with pytest.raises(UsageError, match="no module"):
        load_agents("no_such.sub")
    with pytest.raises(UsageError, match="no module"):
        load_agents("")
    write("broken_mod.py", "\n1/0\n")
    with pytest.raises(UsageError, match=r"broken_mod\.py:2: ZeroDivisionError"):
        load_agents("broken_mod")


def test_a_hidden_agent_is_one_warning(write, caplog):
    again = "@agent(name='adder')\ndef second(text): ...\n@agent\ndef clock(text): ...\n"
    load_agents(write("mine.py", AGENT + again))
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == 2
    assert "two agents are called adder" in said[0]
    assert "clock" in said[1]
