from __future__ import annotations

from typing import Any

import pytest

from aios_nb.errors import UsageError
from aios_nb.notebook import helptext, meant
from aios_nb.notebook.filling import filling
from aios_nb.notebook.parser import COMMANDS, OFFER, parse, read


def given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, [], False)}


@pytest.mark.parametrize(
    ("line", "command", "values"),
    [
        ("", "status", {}),
        ("ask echo it's fine", "ask", {"agent": "echo", "text": "it's fine"}),
        ("ask calc -5 + 3", "ask", {"agent": "calc", "text": "-5 + 3"}),
        ("ask  echo   two  spaces ", "ask", {"agent": "echo", "text": "two  spaces"}),
        ('ask echo "quoted as a whole"', "ask", {"agent": "echo", "text": "quoted as a whole"}),
        ('ask echo "a" and "b"', "ask", {"agent": "echo", "text": '"a" and "b"'}),
        (
            "ask --deadline 5 echo --conversation=last hi --there",
            "ask",
            {"agent": "echo", "text": "hi --there", "deadline": 5.0, "conversation": "last"},
        ),
        ("ask echo -- --deadline 5", "ask", {"agent": "echo", "text": "--deadline 5"}),
        ("ask echo -- what does --file do", "ask",
         {"agent": "echo", "text": "what does --file do"}),
        ("ask slow x --deadline 3", "ask", {"agent": "slow", "text": "x", "deadline": 3.0}),
        ("ask echo it's it --file 'a b.txt' --file=c", "ask",
         {"agent": "echo", "text": "it's it", "file": ["a b.txt", "c"]}),
        ('ask echo "what is --deadline 3"', "ask",
         {"agent": "echo", "text": "what is --deadline 3"}),
        ("ask echo what about --file", "ask", {"agent": "echo", "text": "what about --file"}),
        ("ask echo what about --files", "ask", {"agent": "echo", "text": "what about --files"}),
        ("ask echo -- 2 --deadlin 5", "ask", {"agent": "echo", "text": "2 --deadlin 5"}),
        ("ask echo ls --color auto", "ask", {"agent": "echo", "text": "ls --color auto"}),
        ("search sum up -n 3", "search", {"words": "sum up", "limit": 3}),
        ("search -n=3 what's up", "search", {"words": "what's up", "limit": 3}),
        ("search plot -n5", "search", {"words": "plot", "limit": 5}),
        ("search -n5 plot", "search", {"words": "plot", "limit": 5}),
        ("search plot -n5 a csv", "search", {"words": "plot -n5 a csv"}),
        ("search -- plot -n5", "search", {"words": "plot -n5"}),
        ("search sm-n5", "search", {"words": "sm-n5"}),
        ("search plot -x5", "search", {"words": "plot -x5"}),
        ("log -n12", "log", {"limit": 12}),
        ("ask calc -n5", "ask", {"agent": "calc", "text": "-n5"}),
        ("export 'my talk' out file.md --force", "export",
         {"c": "my talk", "file": "out file.md", "force": True}),
        ("up --join a --join b#c --port 80", "up", {"join": ["a", "b#c"], "port": 80}),
        ("chat", "chat", {}),
        ("ask @echo @calc hi", "ask", {"agent": "echo", "text": "@calc hi"}),
        ("chat @echo", "chat", {"agent": "echo"}),
        ("CHAT echo --new", "chat", {"agent": "echo", "new": True}),
    ],
)  # fmt: skip
def test_a_line_says_what_it_says(line: str, command: str, values: dict[str, Any]):
    parsed = parse(line)
    assert parsed.command.name == command
    assert given(parsed.values) == values


@pytest.mark.parametrize(
    ("line", "command", "values"),
    [
        ("# how it is", "status", {}),
        ("agents # of this node", "agents", {}),
        ("agents #", "agents", {}),
        ("telegram   # the bridge", "telegram", {}),
        ("card echo # who signed it", "card", {"agent": "echo"}),
        ("card --help # all about it", "help", {"command": "card"}),
        ("chat echo --new   # a chat under the cell", "chat", {"agent": "echo", "new": True}),
        ("delete last  # the one of today", "delete", {"c": "last"}),
        ("delete Sums # 3", "delete", {"c": "Sums # 3"}),
        ("delete 'my # talk'  # gone", "delete", {"c": "my # talk"}),
        ("up --name='a # b' # c", "up", {"name": "a # b"}),
        ("export last talk#1.md --force  # again", "export",
         {"c": "last", "file": "talk#1.md", "force": True}),
        ("search sum of the numbers   # agents of all", "search", {"words": "sum of the numbers"}),
        ("search sum up -n 3  # three", "search", {"words": "sum up", "limit": 3}),
        ("search what is # for", "search", {"words": "what is # for"}),
        ("search 'a  # b'", "search", {"words": "a  # b"}),
        ("search issue  #12", "search", {"words": "issue  #12"}),
        ("hub # all there is", "hub", {}),
        ("hub plot  # a csv", "hub", {"words": "plot"}),
        ("hub add https://a.example # theirs", "hub add", {"url": "https://a.example"}),
        ("hub add -- run --it  # so", "hub add", {"command": "run --it  # so"}),
        ("ask echo what is  # for", "ask", {"agent": "echo", "text": "what is  # for"}),
        ("rename last Talk # 2", "rename", {"c": "last", "title": "Talk # 2"}),
    ],
)  # fmt: skip
def test_a_remark_is_no_word_but_a_question_is_taken_as_it_is(
    line: str, command: str, values: dict[str, Any]
):
    parsed = parse(line)
    assert parsed.command.name == command
    assert given(parsed.values) == values


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("serch x", "did you mean search"),
        ("nothing like it", "%aios? lists all"),
        ("stop", "did you mean down?"),
        ("Quit", "did you mean down?"),
        ("start", "did you mean up?"),
        ("join https://a.example", "did you mean up --join URL?"),
        ("ls", "did you mean agents?"),
        ("find a plotter", "did you mean search?"),
        ("talk echo", "did you mean ask?"),
        ("remove echo", "did you mean withdraw?"),
        ("card", "needs AGENT"),
        ("card a b", "too many words for %aios card: b (%aios card AGENT)"),
        ("log 50", "too many words for %aios log: 50 (did you mean %aios log -n 50?)"),
        ("log all of it", "(%aios log [-n N])"),
        ("up my-node", "(did you mean %aios up --name my-node?)"),
        ("up https://bob.example", "(did you mean %aios up --join https://bob.example?)"),
        ("up 8080", "(did you mean %aios up --port 8080?)"),
        ("up ./here", "(%aios up [--name NAME] [--join URL[#NODEID]]… "),
        ("telegram pair guest", "(did you mean %aios telegram pair --role guest?)"),
        ("telegram stop now", "too many words for %aios telegram stop: now (%aios telegram stop)"),
        ("chats -n", "-n needs N (%aios chats [-n N])"),
        ("search", "needs WORDS"),
        ("search # agents for a job", "needs WORDS"),
        ("up --name # a", "--name needs NAME"),
        ("ask echo --deadlin 5 hi", "did you mean --deadline"),
        ("ask echo hi --deadlin 5", "did you mean --deadline"),
        ("ask echo hi --deadlin 5 --file a", "did you mean --deadline"),
        ("export last talk.md --forse", "did you mean --force"),
        ("agents --all", "takes no options"),
        ("up --port x", "not a port"),
        ("up --name", "--name needs NAME"),
        ("log -n", "-n needs N"),
        ("log --limit", "--limit needs N"),
        ("search x -n 1000", "between 1 and 200"),
        ("search x -n1000", "between 1 and 200"),
        ("log -n0", "between 1 and 200"),
        ("search what is -n 1000", "as words: %aios search -- WORDS"),
        ("ask echo wait for --deadline soon", "as words: %aios ask AGENT -- TEXT"),
    ],
)
def test_a_wrong_line_is_told_in_one(line: str, said: str):
    with pytest.raises(UsageError) as caught:
        parse(line)
    assert said in str(caught.value)


@pytest.mark.parametrize("line", ["echo hi", "@echo hi"])
def test_where_the_command_was_forgotten_the_agent_is_known(line: str):
    with pytest.raises(UsageError, match=r"did you mean %aios ask echo …\?"):
        parse(line, agents=["calc", "echo"])


def test_other_words_for_a_command_lead_to_commands_that_are_there():
    assert {said.split()[0] for said in meant.SAME.values()} <= set(COMMANDS)
    assert not set(meant.SAME) & set(COMMANDS)


def test_values_of_an_agents_options_need_no_quotes():
    line = "my-agent --about Adds numbers, it's fine --tags math, sums --access known --idempotent"
    assert given(read(OFFER, line).values) == {
        "name": "my-agent",
        "about": "Adds numbers, it's fine",
        "tags": ["math", "sums"],
        "access": "known",
        "idempotent": True,
    }
    with pytest.raises(UsageError, match="did you mean known"):
        read(OFFER, "x --access knwn")
    with pytest.raises(UsageError, match="does not know --abut"):
        read(OFFER, "x --abut what")


def test_help_tells_of_every_command_and_every_option():
    everything = helptext.overview()
    for name, command in COMMANDS.items():
        assert f"\n  {name}" in everything
        assert command.about in " ".join(everything.split())
        alone = helptext.of(name)
        assert max(map(len, alone.splitlines())) <= helptext.LINE
        for option in command.options:
            assert all(flag in alone for flag in option.flags)
            assert option.about in " ".join(alone.split())
        for example in command.examples:
            line = example.partition("%aios ")[2] or example
            assert parse(line).command is command
        assert ("` -- ` before it" in alone) == command.options_last
    assert all(option.flags[-1] in helptext.offering() for option in OFFER.options)
    for text in (everything, helptext.offering()):
        assert max(map(len, text.splitlines())) <= helptext.LINE
    for line in everything.splitlines():
        assert line.count("[") == line.count("]")  # an option stays with its value


def test_only_names_of_variables_are_filled_in():
    names = {"who": "Ada", "n": 3, "_": "last", "größe": 7}
    text = '{who} {n} {_} {größe} {who.upper} {n + 1} {} {{who}} {"a": 1} {missing} ${x}'
    assert filling(names)(text) == (
        'Ada 3 last 7 {who.upper} {n + 1} {} {Ada} {"a": 1} {missing} ${x}'
    )
    assert filling({"who": "local"}, names)("{who}") == "local"
    assert filling({"a": "{who}"}, names)("{a}") == "{who}"
