"""What goes out arrives: in order, once, and no chat waits for another."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

from aios_bots.adapters.loopback import Loopback
from aios_bots.core import delivery, reach
from aios_bots.core.adapter import (
    BadStyle,
    CallError,
    Flooded,
    Impossible,
    NotTaken,
    Unreachable,
    Unsure,
)
from aios_bots.core.model import Attachment, Button, Op, Outgoing, Place, Span, SpanKind
from aios_bots.core.pacing import Rates
from aios_bots.core.postman import PARKED_KEPT, Postman
from aios_bots.core.store import Binding, BotStore
from aios_nb.errors import NotRunning
from tests.bots.world import FAST, HANG_S, LOOK_S
from tests.clock import Clock

FILE = Attachment("f" * 64, "a.txt", "text/plain", 3)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "PAUSE_S", 0.005)
    monkeypatch.setattr(delivery, "SHUT_MIN_S", 0.01)


class Mail:
    """A postman at work, until the end of the block."""

    def __init__(self, path: Path, clock: Clock, rates: Rates = FAST) -> None:
        self._path, self._clock, self._rates = path, clock, rates
        self.app = Loopback("77", clock=clock)
        self.app.group("-9")
        self.files: dict[str, bytes | Exception] = {FILE.ref: b"abc"}
        self.store = BotStore.open(path, "77", clock)
        self._run: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.crash()

    async def start(self) -> None:
        self.postman = Postman(self.store, self.app, self._content, rates=self._rates)
        self._run = asyncio.create_task(self.postman.run())
        await asyncio.sleep(0)

    async def crash(self) -> None:
        if self._run is not None:
            task, self._run = self._run, None
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await self.store.close()

    async def again(self) -> None:
        await self.crash()
        self.store = BotStore.open(self._path, "77", self._clock)
        await self.start()

    async def _content(self, file: Attachment) -> bytes:
        found = self.files[file.ref]
        if isinstance(found, Exception):
            raise found
        return found

    async def send(self, key: str, chat: str = "5", **more: Any) -> Outgoing:
        given = {"key": key, "place": Place("77", chat), "op": Op.SEND, "text": key, **more}
        out = Outgoing(**given)
        await self.postman.put([out])
        return out

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until that is so. Not all of it is told by an event, so it is looked at often."""
        async with asyncio.timeout(HANG_S):
            while not true():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_S)

    async def empty(self) -> None:
        await self.until(lambda: not self.postman.status().waiting)

    @property
    def noted(self) -> list[str]:
        """What the owner can read about."""
        return [line.what for line in self.store.people.audit()]

    async def arrives(self, key: str) -> None:
        await self.until(lambda: self.state(key) == "sent")

    def state(self, key: str) -> str:
        return self.store.outbox.fate(key).state


@pytest.fixture
def mail(tmp_path: Path, clock: Clock) -> Mail:
    return Mail(tmp_path / "bot.db", clock)


async def test_calls_go_in_order_within_a_chat(mail: Mail) -> None:
    async with mail:
        keys = [f"n{number}" for number in range(30)]
        for key in keys:
            await mail.send(key)
        await mail.empty()
        assert mail.app.texts("5") == keys


async def test_the_same_key_is_one_call(mail: Mail) -> None:
    async with mail:
        await mail.send("a")
        await mail.arrives("a")
        await mail.send("a")
        await mail.again()
        await mail.send("a")
        await mail.empty()
        assert mail.app.texts("5") == ["a"]


async def test_a_chat_that_the_app_closes_leaves_the_others_alone(mail: Mail) -> None:
    async with mail:
        mail.app.fail(Flooded(1000), chat="5")
        await mail.send("first")
        await mail.until(lambda: bool(mail.postman.status().gates))
        await mail.send("second")
        assert not await mail.postman.preview(
            Outgoing(key="", place=Place("77", "5"), op=Op.EDIT, text="x", target="1")
        )
        mail.postman.typing(Place("77", "5"))
        for chat in ("6", "7", "8"):
            await mail.send(f"to {chat}", chat)
            await mail.arrives(f"to {chat}")
        assert len(mail.app.made("5")) == 1
        assert mail.postman.status().waiting == 2
        assert 900 < mail.postman.status().gates["5"] <= 1000
        # The wait is kept: a restart does not call earlier.
        await mail.again()
        await mail.send("to 9", "9")
        await mail.arrives("to 9")
        assert len(mail.app.made("5")) == 1
        assert "5" in mail.postman.status().gates


async def test_after_the_wait_all_goes_in_its_order(mail: Mail) -> None:
    async with mail:
        mail.app.fail(Flooded(0.01), chat="5", times=3)
        for key in ("a", "b", "c"):
            await mail.send(key)
        await mail.empty()
        assert mail.app.texts("5") == ["a", "b", "c"]


async def test_a_send_of_unknown_fate_is_repeated_once_and_counted(mail: Mail) -> None:
    async with mail:
        mail.app.fail(Unsure("reset"), op=Op.SEND, after=True)
        await mail.send("a")
        await mail.empty()
        assert mail.app.texts("5") == ["a", "a"]
        assert mail.postman.status().repeated == 1
        mail.app.fail(Unsure("reset"), op=Op.SEND, times=2)
        await mail.send("b")
        await mail.send("c")
        await mail.empty()
        assert mail.app.texts("5") == ["a", "a", "c"]
        assert mail.state("b") == "uncertain"
        assert mail.postman.status().uncertain == 1


async def test_an_outage_does_not_use_up_the_one_repeat(mail: Mail) -> None:
    async with mail:
        mail.app.fail(Unsure("reset"), times=8)
        await mail.send("a")
        await mail.empty()
        assert mail.app.texts("5") == ["a"]
        assert len(mail.app.made("5", Op.SEND)) == 2


async def test_an_edit_of_unknown_fate_is_made_until_it_is_there(mail: Mail) -> None:
    async with mail:
        await mail.send("a")
        mail.app.fail(Unsure("reset"), op=Op.EDIT, times=4)
        await mail.send("a:end", op=Op.EDIT, text="new", target_key="a")
        await mail.empty()
        assert mail.app.texts("5") == ["new"]


async def test_what_the_app_surely_did_not_get_is_made_until_it_does(mail: Mail) -> None:
    async with mail:
        mail.app.fail(NotTaken("no connection"), times=6)
        await mail.send("a")
        await mail.send("b")
        await mail.empty()
        assert mail.app.texts("5") == ["a", "b"]
        assert mail.postman.status().repeated == 0


async def test_an_app_that_is_away_is_asked_by_one_call_at_a_time(mail: Mail) -> None:
    async with mail:
        mail.app.fail(NotTaken("no connection"), times=-1)
        chats = [str(100 + number) for number in range(20)]
        for chat in chats:
            await mail.send(f"to {chat}", chat)
        await mail.until(lambda: mail.postman.status().away)
        mail.app.mend()
        mail.postman.retry()
        await mail.empty()
        assert all(mail.app.texts(chat) == [f"to {chat}"] for chat in chats)
        assert not mail.postman.status().away


async def test_a_chat_that_does_not_want_the_bot_is_parked(mail: Mail) -> None:
    async with mail:
        await mail.store.bind(Binding(Place("77", "5"), "c1"))
        mail.app.close_chat("5")
        for number in range(PARKED_KEPT + 5):
            await mail.send(f"n{number}")
        await mail.until(lambda: "5" in mail.postman.status().parked)
        await mail.send("last")
        assert mail.noted == ["shut out"]
        assert len(mail.app.made("5")) == 1
        assert mail.postman.status().waiting == 0
        assert mail.state("n0") == "dead"
        await mail.again()  # and stays so
        await mail.send("to 6", "6")
        await mail.arrives("to 6")
        assert len(mail.app.made("5")) == 1
        mail.app.close_chat("5", closed=False)
        assert await mail.postman.let_in("5")
        await mail.empty()
        assert mail.app.texts("5")[-1] == "last"
        assert len(mail.app.texts("5")) == PARKED_KEPT


async def test_a_chat_that_moved_gets_everything_at_its_new_id(mail: Mail) -> None:
    async with mail:
        await mail.send("a", "-9")
        await mail.empty()
        mail.app.move("-9", "-100")
        await mail.send("b", "-9")
        await mail.send("a:end", "-9", op=Op.EDIT, text="a, edited", target_key="a")
        await mail.empty()
        await mail.send("c", "-9")
        await mail.empty()
        assert mail.app.texts("-100") == ["a, edited", "b", "c"]
        assert mail.noted == ["moved"]


async def test_a_style_that_the_app_does_not_take_goes_plain(mail: Mail) -> None:
    async with mail:
        mail.app.fail(BadStyle("can't parse"), op=Op.SEND)
        await mail.send("a", spans=(Span(SpanKind.BOLD, 0, 1),))
        await mail.empty()
        [message] = mail.app.messages("5")
        assert (message.text, message.spans) == ("a", ())


async def test_an_app_without_edits_gets_the_last_word_as_a_message(mail: Mail) -> None:
    async with mail:
        mail.app.lacks(Op.EDIT)
        await mail.send("a")
        await mail.send("a:end", op=Op.EDIT, text="whole", target_key="a", event_id="e1")
        await mail.empty()
        assert mail.app.texts("5") == ["a", "whole"]
        assert not mail.app.caps.edits


async def test_an_app_without_files_gets_a_line_for_each(mail: Mail) -> None:
    async with mail:
        mail.app.lacks_files()
        await mail.send("look", files=(FILE,))
        await mail.send("whole", as_file="answer.md")
        await mail.empty()
        assert mail.app.texts("5") == [
            "look\n\n[a.txt: cannot be sent here]",
            "[answer.md: cannot be sent here]",
        ]


async def test_a_message_that_somebody_deleted_is_said_again_when_it_changes(mail: Mail) -> None:
    async with mail:
        await mail.send("a", conversation="c", event_id="e1")
        await mail.empty()
        mail.app.delete("5", mail.app.messages("5")[0].id)
        await mail.send(
            "a:1", op=Op.EDIT, text="new", target_key="a", conversation="c", event_id="e1"
        )
        await mail.send(
            "a:2", op=Op.EDIT, text="newer", target_key="a", conversation="c", event_id="e1"
        )
        await mail.empty()
        assert mail.app.texts("5") == ["newer"]


async def test_what_the_app_will_never_take_holds_nothing_up(mail: Mail) -> None:
    async with mail:
        mail.app.fail(Impossible("no"), chat="5")
        await mail.send("bad")
        await mail.send("good")
        await mail.empty()
        assert mail.app.texts("5") == ["good"]
        assert mail.postman.status().dead == 1
        assert mail.state("bad") == "dead"


async def test_a_file_of_a_node_that_is_away_waits_and_one_that_is_gone_is_a_line(
    mail: Mail,
) -> None:
    async with mail:
        mail.files[FILE.ref] = NotRunning("away")
        await mail.send("later", files=(FILE,))
        await mail.send("to 6", "6")
        await mail.arrives("to 6")
        assert not mail.postman.status().away
        mail.files[FILE.ref] = b"abc"
        await mail.empty()
        assert mail.app.messages("5")[0].files == (b"abc",)
        mail.files[FILE.ref] = ValueError("gone")
        await mail.send("never", files=(FILE,))
        await mail.empty()
        assert mail.app.texts("5")[1] == "never\n\n[a.txt: could not be read]"


async def test_an_adapter_that_breaks_leaves_no_row_behind(mail: Mail) -> None:
    async with mail:
        mail.app.fail(CallError("what is that"), chat="5")
        await mail.send("odd")
        await mail.send("next")
        await mail.empty()
        assert mail.app.texts("5")[-1] == "next"


async def test_an_answer_to_a_press_does_not_wait_behind_messages(mail: Mail) -> None:
    async with mail:
        asked = mail.app.asks()
        with mail.app.held(chat="5", op=Op.SEND) as held:
            await mail.send("slow")
            await held.reached.wait()
            await mail.send("answer", op=Op.ANSWER, target=asked, text="yes")
            await mail.arrives("answer")
        await mail.empty()
        assert mail.app.answers[asked].text == "yes"


async def test_a_preview_gives_way_to_what_is_final(mail: Mail) -> None:
    async with mail:
        await mail.send("a")
        await mail.arrives("a")
        preview = Outgoing(key="p", place=Place("77", "5"), op=Op.EDIT, text="soon", target_key="a")
        assert await mail.postman.preview(preview)
        with mail.app.held(chat="5", op=Op.EDIT) as held:
            slow = asyncio.create_task(mail.postman.preview(preview))
            await held.reached.wait()
            await mail.send("a:end", op=Op.EDIT, text="whole", target_key="a")
            assert mail.state("a:end") == "new"  # it waits for the one that is out
        await mail.empty()
        await slow
        assert mail.app.texts("5") == ["whole"]


async def test_buttons_go_when_a_message_is_edited(mail: Mail) -> None:
    async with mail:
        await mail.send("a", buttons=((Button("Yes", "b1"),),))
        await mail.send("a:1", op=Op.EDIT, text="done", target_key="a")
        await mail.empty()
        assert mail.app.messages("5")[0].buttons == ()


async def test_nothing_is_begun_after_a_drain_and_the_rest_waits_for_the_next(
    mail: Mail,
) -> None:
    async with mail:
        await mail.send("a")
        assert await mail.postman.drain(0.2)
        mail.app.fail(Flooded(1000), chat="5")
        await mail.send("b")
        await mail.until(lambda: bool(mail.postman.status().gates))
        assert not await mail.postman.drain(0.05)
        await mail.again()
        assert mail.postman.status().waiting == 1


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_in_a_send_repeats_it_once(mail: Mail, after: bool) -> None:
    """Before its effect, or behind it: the app cannot tell us which."""
    async with mail:
        with mail.app.held(chat="5", op=Op.SEND, after=after) as held:
            await mail.send("a")
            await mail.send("b")
            await held.reached.wait()
            await mail.again()
        await mail.empty()
        assert mail.app.texts("5") == (["a", "a", "b"] if after else ["a", "b"])
        assert mail.postman.status().repeated == 1


async def test_unreachable_while_asking_parks_too(mail: Mail) -> None:
    async with mail:
        mail.app.fail(Unsure("reset"), op=Op.SEND)
        mail.app.fail(Unreachable("blocked"), op=Op.TYPING, times=-1)
        await mail.send("a")
        await mail.until(lambda: "5" in mail.postman.status().parked)
        assert mail.state("a") == "new"
