"""Killed anywhere, the next bridge goes on: nothing is lost, and nothing is said twice."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable

from aios_bots.core.box import Box, Word
from aios_bots.core.model import Op
from aios_bots.core.pairing import Pairing, Role
from tests.bots.fuse import Fuse
from tests.bots.world import Person, World

STEP = 2
"""Behind one act is before the next: every other point is a crash."""


async def crashes(
    world: World, done: Callable[[], bool] = lambda: True, step: int = STEP
) -> AsyncIterator[int]:
    """Crash at one point after the other of what the block begins, until a story survives.

    A bridge that was killed is followed by one that may do its work to the end. ``done``: whether
    all of the story has happened.
    """
    at = 1
    while True:
        fuse = Fuse(at)
        await world.crash()
        await world.start(fuse)
        yield at
        await world.until(lambda fuse=fuse: fuse.blown or (done() and not world.busy))
        survived = not fuse.blown
        await world.again()
        await world.until(lambda: done() and not world.busy)
        if survived:
            return
        at += step


def twice(texts: list[str]) -> int:
    """How many are there more than once, counted."""
    return sum(count - 1 for count in Counter(texts).values())


async def test_messages_are_said_once_and_answered_wherever_it_is_killed(world: World) -> None:
    people = [await world.comes_in(user) for user in ("5", "6")]
    talks = [await world.talks(person) for person in people]
    kills = 0
    said: list[str] = []

    def answered() -> bool:
        last = f"parrot\nparrot: {said[-1]}"
        return all(last in world.app.texts(person.id) for person in people)

    async for at in crashes(world, answered):
        for number in range(2):
            said.append(f"{at}.{number}")
            for person in people:
                person.says(said[-1])
        kills += 1
    assert kills > 10
    for person, conversation in zip(people, talks, strict=True):
        rows = await world.said(conversation)
        assert [text for who, text in rows if who != "parrot"] == said
        answers = [f"parrot: {text}" for text in said]
        assert [text for who, text in rows if who == "parrot"] == answers
        shown = [one.text for one in world.app.messages(person.id) if one.sender == "77"]
        assert list(dict.fromkeys(shown)) == [f"parrot\n{text}" for text in answers]
        assert twice(shown) <= kills


async def test_who_comes_in_and_begins_does_so_once_wherever_it_is_killed(world: World) -> None:
    pairing, box = Pairing(world.clock, secrets.token_bytes), Box(world.folder / "box")
    people: list[Person] = []

    def answered() -> bool:
        return "parrot\nparrot: hello" in world.app.texts(people[-1].id)

    # Each of them is one more place that a start looks at: two points.
    async for at in crashes(world, answered, step=5):
        person = world.app.person(str(1000 + at))
        people.append(person)
        code, offer = pairing.offer("77", Role.MEMBER)
        box.put(Word(offer=offer))
        person.says(f"/start {code}")
        person.says("/chat parrot hello")
    assert len(people) > 8
    conversations = await world.conversations()
    for person in people:
        [mine] = [row for row in conversations if f"lo:77:{person.id}" in row["members"]]
        said = await world.said(mine["conversation"])
        assert [text for _, text in said] == ["hello", "parrot: hello"]
        assert twice(world.app.texts(person.id)) <= 1
    assert len(conversations) == len(people)


async def test_a_press_has_its_effect_once_wherever_it_is_killed(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    world.clock.now += 1000
    for number in range(100):
        ana.says(f"old {number}", ago_s=1000)
    await world.quiet()
    asked = [one for one in world.app.messages("5") if one.buttons]
    pressed = 0
    async for _ in crashes(world):
        ana.presses("Send", asked[pressed])
        pressed += 1
    assert pressed > 5
    await world.until(lambda: world.app.texts("5").count("Sent.") == pressed)
    said = [text for who, text in await world.said(conversation) if who != "parrot"]
    assert len(said) == len(set(said)) == pressed


async def test_changes_are_there_once_wherever_it_is_killed(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    told = ana.says("hello")
    await world.until(lambda: len(world.app.messages("5")) == 2)
    answer = world.app.messages("5")[1]
    edits: list[str] = []
    async for at in crashes(world):
        edits.append(f"hello {at}")
        ana.edits(told.msg_id, edits[-1])
        ana.reacts(answer.id, f"r{at}")
    assert [row["text"] for row in await world.log(conversation, "edit")] == edits
    reactions = [row["text"] for row in await world.log(conversation, "reaction")]
    assert len(reactions) == len(set(reactions)) == len(edits)


async def test_files_and_answers_are_given_once_wherever_it_is_killed(world: World) -> None:
    ana, bob = await world.comes_in("5"), await world.comes_in("6")
    files, asking = await world.talks(ana, "weigher"), await world.talks(bob, "asker")
    rounds = 0
    async for at in crashes(world):
        ana.sends(b"x" * at, f"{at}.txt")
        if rounds % 2 == 0:
            bob.says(f"ask {at}")
        else:
            bob.says(f"name {at}")
        rounds += 1
    rows = [row for row in await world.log(files, "message") if row["files"]]
    assert len(rows) == rounds
    said = await world.said(asking)
    mine = [text for who, text in said if who != "asker"]
    assert len(mine) == len(set(mine))


WORDS = ("begins with words that are enough for a message", "goes on", "and on", "and ends")


async def test_a_reply_that_grows_ends_as_one_message_wherever_it_is_killed(
    world: World, quick_edits: None
) -> None:
    ana = await world.comes_in("5", Role.OWNER)
    await world.talks(ana, "writer")
    rounds: list[int] = []
    kills = 0
    async for at in crashes(world):
        ana.says(f"write {at}")
        rounds.append(at)
        for word in WORDS:
            world.stage.write(f"{at} {word}. ")
            await world.until(lambda text=f"{at} {word}": world.ended or world.is_shown("5", text))
        world.stage.write(None)
        kills += world.ended
        await world.until(lambda text=f"{at} and ends": world.ended or world.is_shown("5", text))
    wholes = ["writer\n" + " ".join(f"{at} {word}." for word in WORDS) for at in rounds]
    for whole in wholes:
        await world.until(lambda whole=whole: whole in world.app.texts("5"))
    await world.quiet()
    shown = [one.text for one in world.app.messages("5") if one.sender == "77"]
    assert kills > 5
    assert list(dict.fromkeys(text for text in shown if text in wholes)) == wholes
    assert len(shown) - len(rounds) <= kills


async def test_a_reply_whose_first_words_were_on_their_way_at_a_crash_is_whole(
    world: World,
) -> None:
    ana = await world.comes_in("5", Role.OWNER)
    conversation = await world.talks(ana, "writer")
    ana.says("write")
    with world.app.held(chat="5", op=Op.SEND) as held:
        world.stage.write("The first words of a longer text, ")
        await held.reached.wait()
        await world.crash()
        held.reached.clear()
        await world.start()
        await held.reached.wait()
        world.stage.write("and the end.", None)
        place = world.app.place("5", "")
        end = await world.end_of(conversation, messages=2)
        await world.until(lambda: world.store.binding(place).last_seq >= end)
    whole = "writer\nThe first words of a longer text, and the end."
    await world.shows("5", "write", whole)
    await world.quiet()
    assert world.app.texts("5") == ["write", whole]
