"""Two real nodes that know nothing of each other but A2A: one offers, the other brings it in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aios_nb.client.files import get_file, put_file
from aios_nb.errors import AgentFailed, NoSuchAgent, RpcError
from aios_nb.identity import node_id_of
from aios_nb.wire.a2a.jws import key_of
from tests.sites import TestSite
from tests.wire.a2a.stage import Stage

WAIT_S = 30


class Pair:
    """A node with agents, and one that brings them in."""

    def __init__(self, home: Path, there: Stage, here: TestSite) -> None:
        self.home = home
        """Of the other one."""
        self.there = there
        self.here = here

    def bring(self, agent: str, **options: Any) -> Any:
        address = f"{self.there.node.url}/agents/{agent}"
        return self.here.call("hub.add", address=address, local=True, **options)

    def ask(self, agent: str, text: str, **more: Any) -> Any:
        return self.here.call("chat.send", agent=agent, text=text, **more)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    home = tmp_path_factory.mktemp("there")
    there = Stage(home, name="there")
    here = TestSite(tmp_path_factory.mktemp("here"), name="here")
    made = Pair(home, there, here)
    for agent in ("parrot", "poet", "asker", "grump"):
        made.bring(agent, name=agent)
    yield made
    here.stop()
    there.stop()


def test_its_card_is_proven_to_be_its_nodes(pair):
    [row] = [one for one in pair.here.call("hub.list")["imports"] if one["name"] == "parrot"]

    assert (row["kind"], row["signature"], row["live"]) == ("a2a", "valid", True)
    assert node_id_of(key_of(row["key"])) == pair.there.node.node_id


def test_words_data_and_files_go_there_and_back(pair):
    client = pair.here.node.client
    file = pair.here.node.run(lambda: put_file(client, b"shout this", "quiet.txt", "text/plain"))

    assert pair.ask("parrot", "hi")["text"] == "hi"
    assert pair.ask("parrot", "", data={"a": [1]})["data"] == {"heard": {"a": [1]}}
    [loud] = pair.ask("parrot", "", files=[file])["files"]
    assert loud["name"] == "loud.txt"
    assert pair.here.node.run(lambda: get_file(client, loud)) == b"SHOUT THIS"


def test_a_conversation_goes_on_where_it_was(pair):
    first = pair.ask("parrot", "one")
    pair.ask("parrot", "two", conversation=first["conversation"])
    pair.ask("parrot", "three")

    said = [event["text"] for event in pair.here.history(first["conversation"])]
    assert said == ["one", "one", "two", "two"]
    # There, too, it is one conversation, and another one.
    with closing(sqlite3.connect(pair.home / "there.db")) as database:
        [(count,)] = database.execute(
            "SELECT count(DISTINCT conversation) FROM events WHERE text IN ('one', 'two', 'three')"
        )
    assert count == 2


def test_it_streams_and_asks_back(pair):
    pair.there.open_gate("go")
    deltas, result = pair.here.stream(agent="poet", text="go")
    assert "".join(delta["text"] for delta in deltas) == result["text"] == "one, two"

    asked = pair.ask("asker", "twice")
    assert (asked["status"], asked["text"]) == ("input_required", "who are you?")
    again = pair.here.call("chat.answer", message_id=asked["message_id"], text="Ada")
    assert (again["status"], again["text"]) == ("input_required", "how old?")
    done = pair.here.call("chat.answer", message_id=asked["message_id"], text="36")
    assert (done["status"], done["text"]) == ("done", "hello Ada 36")


def test_a_cancel_here_is_a_cancel_there(pair):
    asking = pair.here.start("chat.send", agent="poet", text="stay", message_id="m-stay")
    pair.there.reached("stay")

    pair.here.call("chat.cancel", message_id="m-stay")

    with pytest.raises(RpcError):
        asking.result(WAIT_S)

    async def over() -> None:
        while pair.there.rooms.chat.exchange._calls:
            call = next(iter(pair.there.rooms.chat.exchange._calls.values()))
            await call.runs[0].changed(within_s=0.05)

    pair.there.node.run(over)


def test_what_fails_there_is_one_line_here(pair):
    with pytest.raises(AgentFailed) as caught:
        pair.ask("grump", "hi")
    assert caught.value.message.startswith("it failed")
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_agents_that_are_not_for_us_cannot_be_brought_in(pair):
    for agent in ("hermit", "friend", "nobody"):
        with pytest.raises(RpcError, match="no A2A agent and no MCP server"):
            pair.bring(agent)
    with pytest.raises(NoSuchAgent):
        pair.ask("hermit", "hi")


def test_a_token_from_the_environment_opens_more(pair, monkeypatch):
    monkeypatch.setenv("THERE_TOKEN", pair.there.new_token("x:"))

    pair.bring("friend", name="friend", token_env="THERE_TOKEN")

    assert pair.ask("friend", "hi")["text"] == "for those with a token"


def test_a_sites_catalog_lists_what_can_be_brought_in(pair):
    listed = pair.here.call("hub.import", url=pair.there.node.url, local=True)["entries"]

    kinds = {entry["name"]: entry["kind"] for entry in listed}
    assert "Hermit" not in kinds
    [parrot] = [entry for entry in listed if entry["name"] == "Parrot"]
    assert pair.here.call("hub.add", address=parrot["url"], local=True)["name"] == "parrot"
    [tools] = [entry for entry in listed if entry["kind"] == "mcp"]
    brought = pair.here.call("hub.add", address=tools["url"], local=True, name="tools")
    assert brought["kind"] == "mcp"
    assert "agents_list" in brought["tools"]
