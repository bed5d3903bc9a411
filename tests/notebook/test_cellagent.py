"""``%%agent``: the cell runs as usual, and what it defines is an agent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import aios_nb as aios
from tests.notebook.consoles import Console, console, held

ADDER = """%%agent adder --about Adds the numbers, it's easy --tags math, sums --example 2 and 3
def adder(text):
    return sum(int(word) for word in text.split() if word.isdigit())
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with console(tmp_path_factory.mktemp("cellagent")) as made:
        yield made


def version(name: str) -> str:
    return str(aios.node().card(name).card["version"])


def test_a_function_is_offered_with_its_card(page: Console):
    ran = page.good(ADDER)
    assert "adder is offered: version 1, for everyone" in ran.text
    card = aios.node().card("adder")
    assert card.card["about"] == "Adds the numbers, it's easy"
    assert card.card["tags"] == ["math", "sums"]
    assert card.card["examples"] == ["2 and 3"]
    assert card.signature == "yours, signed and published"
    assert page.good("%aios ask adder 3 and 4").text == "7"
    assert page.names["adder"]("1 1") == 2, "unchanged"


def test_running_the_cell_again_replaces_it_raises_the_version_and_keeps_the_talk(page: Console):
    page.good(ADDER.replace("adder", "again"))
    reply = page.good("%aios ask again 1 2").value
    louder = ADDER.replace("adder", "again").replace("sum(", "'sum: %s' % sum(")
    assert "version 2" in page.good(louder).text
    later = reply.ask("3 4")
    assert later == "sum: 7"
    assert later.conversation == reply.conversation
    assert len(aios.node().history(reply.conversation).messages) == 4
    page.good(louder)
    assert version("again") == "3"


def test_a_decorated_function_counts_in_the_same_way_and_an_authors_version_stays(page: Console):
    cell = "import aios_nb as aios\n@aios.agent\ndef counted(text):\n    return text"
    for number in "123":
        page.good(cell)
        assert version("counted") == number
    own = "%%agent dated --version 2026.1\ndef dated(text): return text"
    page.good(own)
    page.good(own)
    assert version("dated") == "2026.1"


def test_the_cell_gives_its_last_line_and_keeps_its_names(page: Console):
    ran = page.good(
        "%%agent tester\nimport math\nLIMIT = 3\ndef tester(text): return text * LIMIT\ntester('a')"
    )
    assert ran.value == "aaa"
    assert page.names["LIMIT"] == 3
    assert page.good("%%agent tester\ndef tester(text): return text\ntester('a');").value is None
    with_magic = "%%agent tester\nhere = %pwd\ndef tester(text): return here\n"
    page.good(with_magic)
    assert page.good("%aios ask tester x").text == page.names["here"]


@pytest.mark.parametrize(
    ("cell", "answer"),
    [
        (
            "%%agent my-shout\ndef helper(x): return x.upper()\ndef my_shout(t): return helper(t)",
            "HI",
        ),
        ("%%agent only\ndef something_else(text): return text[::-1]", "ih"),
        ("%%agent teller\nclass Teller:\n    def run(self, text): return text + '!'", "hi!"),
        ("%%agent later\nasync def later(text):\n    return 'later'", "later"),
    ],
)
def test_the_function_of_that_name_or_the_only_one_is_meant(page: Console, cell: str, answer: str):
    page.good(cell)
    assert page.good(f"%aios ask {cell.split()[1]} hi").text == answer


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%%agent x\ny = 1", "defines no function and no class (def x(text): …)"),
        ("%%agent x\ndef a(t): ...\ndef b(t): ...", "this cell defines a, b, but no x"),
        ("%%agent\ndef a(t): ...", "%%agent needs NAME"),
        ("%%agent Big\ndef big(t): ...", "cannot be an agent's name"),
        ("%%agent x --access everyone\ndef x(t): ...", "there is no access 'everyone'"),
        ("%%agent x --abuot y\ndef x(t): ...", "did you mean --about"),
        ("%%agent x\ndef x(a, b, c): ...", "x takes parameter without default: c"),
        ("%%agent x\ndef x(t): ...\nawait something", "cannot await"),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_nothing_is_offered(
    page: Console, cell: str, said: str
):
    assert said in page.error(cell)
    assert not any(row.name == "x" for row in aios.node().agents())


def test_an_agent_that_was_withdrawn_goes_on_counting(page: Console):
    cell = "%%agent fleeting\ndef fleeting(text): return text"
    page.good(cell)
    page.good("%aios withdraw fleeting")
    assert "version 2" in page.good(cell).text
    page.good("%aios withdraw fleeting")


def test_who_does_not_say_what_it_does_is_told_that_people_find_it_by_that(page: Console):
    bare = "def quiet(text):{} return text"
    assert "people find it by what it does" in page.good(f"%%agent quiet\n{bare.format('')}").text
    for told in ("%%agent quiet --about Says it\n" + bare.format(""),
                 "%%agent quiet\n" + bare.format("\n    'Says it.'\n   ")):  # fmt: skip
        assert "people find it" not in page.good(told).text


def test_settings_may_be_in_variables(page: Console):
    page.good("seconds, who, what = 7, 'private', 'Says --title and {who}'")
    page.good(
        "%%agent varied --timeout {seconds} --access {who} --about {what}, {which}\n"
        "def varied(text): return text"
    )
    card = aios.node().card("varied").card
    assert (card["timeout_s"], card["access"]) == (7, "private")
    assert card["about"] == "Says --title and {who}, {which}"
    assert card["title"] == "Varied"


def test_settings_are_given_above_the_function_or_behind_the_magic(page: Console):
    cell = (
        "import aios_nb as aios\n@aios.agent(about='Says it again')\ndef twice(text): return text"
    )
    assert "twice is offered: version 1" in page.good(f"%%agent twice\n{cell}").text
    assert aios.node().card("twice").card["about"] == "Says it again"
    for line in ("twice --tags words", "thrice"):
        assert "in one place" in page.error(f"%%agent {line}\n{cell}")
    assert not any(row.name == "thrice" for row in aios.node().agents())


def test_an_error_in_the_cell_is_shown_as_that_of_any_cell(page: Console):
    ran = page.run("%%agent broken\ndef broken(text):\n    return 1 / 0\nbroken('x')")
    assert not ran.ok
    assert "ZeroDivisionError" in ran.printed
    assert "line 4" in ran.printed
    assert "cellagent.py" not in ran.printed
    assert "run_cell_magic" not in ran.printed
    assert not any(row.name == "broken" for row in aios.node().agents())
    ran = page.run("%%agent broken\ndef broken(text)\n    return 1")
    assert not ran.ok
    assert "SyntaxError" in ran.printed
    assert "line 2" in ran.printed
    assert "cellagent.py" not in ran.printed


def test_an_error_while_its_object_is_made_is_shown_from_the_cell_on(page: Console):
    made = "class Made:\n    def __init__(self): 1 / 0\n    def run(self, text): return text"
    ran = page.run(f"%%agent made\n{made}")
    assert not ran.ok
    assert "ZeroDivisionError" in ran.printed
    assert "line 3" in ran.printed
    assert ".py" not in ran.printed


def test_a_cell_that_fails_says_which_version_goes_on_answering(page: Console):
    page.good("%%agent steady\ndef steady(text): return 'one'")
    for broken in ("def steady(text) return 'two'", "1 / 0\ndef steady(text): return 'two'"):
        ran = page.run(f"%%agent steady\n{broken}")
        assert not ran.ok
        assert "steady is not changed: version 1 is still offered" in ran.text
    assert page.good("%aios ask steady x").text == "one"
    assert "still offered" not in page.run("%%agent never\n1 / 0").text

    own = (
        "%%agent steady\nimport aios_nb as aios\n@aios.agent\ndef steady(text): return 'two'\n1 / 0"
    )
    ran = page.run(own)
    assert not ran.ok
    assert "steady is offered all the same: version 2" in ran.text
    assert page.good("%aios ask steady x").text == "two"


def test_a_cell_that_fails_does_not_wait_for_a_node_that_hangs(page: Console):
    page.good("%%agent calm\ndef calm(text): return 'one'")
    with held(aios.node()):
        ran = page.run("%%agent calm\n1 / 0\ndef calm(text): return 'two'")
    assert not ran.ok
    assert "ZeroDivisionError" in ran.printed
    assert "calm is not changed: version 1 is still offered" in ran.text


def test_a_cell_that_is_interrupted_says_no_more(page: Console):
    page.good("%%agent left\ndef left(text): return 'one'")
    ran = page.run("%%agent left\ndef left(text): return 'two'\nraise KeyboardInterrupt")
    assert not ran.ok
    assert ran.text == ""


def test_an_agent_offered_while_there_is_no_node_comes_with_the_next(page: Console):
    page.good("%aios down")
    assert "when the node is up" in page.good("%%agent early\ndef early(text): return 'here'").text
    page.good("%aios up")
    assert page.good("%aios ask early x").text == "here"
