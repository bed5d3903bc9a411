from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import aios_nb as aios

EXAMPLES = Path(__file__).parents[1] / "examples"


@aios.agent(name="counter", about="Says how often it was asked", access="known")
def counter(text, ctx):
    return f"{text} {sum(message.text == text for message in ctx.messages)}"


def run(site, *tasks: str, token: str):
    url = site.node.run_info.url
    return subprocess.run(
        # Isolated: neither our package nor anything else is in its path.
        [sys.executable, "-I", str(EXAMPLES / "envelope.py"), url, *tasks],
        env={**os.environ, "AIOS_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_program_with_a_scoped_token_speaks_the_papers_envelope(make_site):
    site = make_site(counter)
    token = site.call("tokens.create", scope="chat", prefix="example:")["token"]

    done = run(site, "counter", "tick", "tick", token=token)

    assert (done.returncode, done.stderr) == (0, "")
    node = site.node.node_id
    assert done.stdout.splitlines() == [
        line
        for answer in ("tick 0", "tick 1")
        for line in (
            f"counter@{node}: {answer}",
            f"  status success, way ['{node}', 'counter@{node}']",
        )
    ]


def test_a_program_is_told_in_one_line_what_it_may_not(make_site):
    site = make_site()
    token = site.call("tokens.create", scope="chat", prefix="example:")["token"]

    refused = run(site, "calc", "6 * 7", token=token)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("no such agent")
    assert refused.stderr.count("\n") == 1

    owner = site.call("tokens.create", scope="chat", prefix="other:", **{"as": "owner"})["token"]
    assert ": 42\n" in run(site, "calc", "6 * 7", token=owner).stdout
