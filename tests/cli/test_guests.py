"""``aios-nb hub``: programs of others brought in, reviewed and forgotten from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aios_nb.agents.definition import describe
from tests.sites import TestSite


async def tides(text: str) -> str:
    """Knows the tides."""
    return f"high at {text}"


async def other(text: str) -> str:
    """Says something else."""
    return f"now: {text}"


@pytest.fixture
def theirs(tmp_path: Path) -> Any:
    site = TestSite(
        tmp_path / "theirs", [describe(tides, access="public")], name="b", network="elsewhere"
    )
    yield site
    site.stop()


def test_a_program_is_brought_in_reviewed_and_forgotten(site: Any, theirs: TestSite):
    url = f"{theirs.node.url}/agents/tides/"
    added = site("hub", "add", url, "--local", "--name", "sea")
    assert (added.returncode, added.stderr) == (0, "")
    assert added.stdout == "sea is here: Tides, an A2A agent; not verified, for you alone\n"
    assert site("hub", "add", url, "--local", "--name", "sea").stdout == added.stdout  # harmless
    assert site("ask", "sea", "six").stdout == "high at six\n"
    [row] = site.json("hub", "list")["imports"]
    assert (row["name"], row["kind"], row["live"]) == ("sea", "a2a", True)
    assert "a2a, not verified" in site("agents").stdout
    assert "its card is signed by did:key:" in site("card", "sea").stdout

    theirs.node.host(describe(other, name="tides", access="public"))
    shown = site("hub", "refresh", "sea").stdout
    assert "changed" in shown.splitlines()[1]
    assert "aios-nb hub approve sea" in shown
    blocked = site("ask", "sea", "six")
    assert blocked.returncode == 1
    assert "sea is not what was approved any more" in blocked.stderr
    assert "`aios-nb hub approve sea`" in blocked.stderr
    assert "Says something else." in site("card", "sea").stdout
    assert site("hub", "approve", "sea").stdout == "sea is taken as it is now\n"
    assert site("ask", "sea", "six").stdout == "now: six\n"

    assert site("hub", "remove", "sea").stdout == "sea is forgotten\n"
    assert "no program of others yet" in site("hub").stderr
    listed = site("hub", "import", theirs.node.url, "--local").stdout
    assert f"aios-nb hub add {theirs.node.url}/mcp" in listed


@pytest.mark.parametrize(
    ("args", "code", "complaint"),
    [
        (["add"], 2, "URL"),
        (["add", "sums.example"], 2, "is no URL"),
        (["add", "npx", "server"], 2, "a command stands behind --"),
        (["add", "file:///etc/passwd"], 1, "http"),
        (["add", "http://169.254.169.254/"], 1, "169.254.169.254"),
        (["add", "http://127.0.0.1:1/"], 1, "--local"),
        (["add", "https://a.example/", "--access", "all"], 2, "--access"),
        (["add", "--", "no-such-program-here"], 1, "no-such-program-here"),
        (["approve", "nobody"], 1, "no import 'nobody'"),
        (["remove"], 2, "NAME"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(
    site: Any, args: list[str], code: int, complaint: str
):
    done = site("hub", *args)
    assert (done.returncode, done.stdout) == (code, "")
    assert complaint in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
