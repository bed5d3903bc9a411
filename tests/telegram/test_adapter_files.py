"""Files up and down: what they are, not what they are called; and no larger than they may be."""

from __future__ import annotations

import contextlib

import pytest
from aiohttp import web

from aios_bots.adapters.telegram import Telegram, calling
from aios_bots.core.adapter import Absent, BadStyle, Impossible, NotTaken, Unsure
from aios_bots.core.model import Attachment, Op, Span, SpanKind
from aios_bots.core.secret import Secret
from tests.telegram.adapting import holding, listening, nothing, opened, out, run
from tests.telegram.botapi import BotApi, Message, Settings
from tests.telegram.botapi.files import DOT

MIB = 1 << 20
JPEG = b"\xff\xd8\xff\xe0" + bytes(100)


def file(name: str = "a.txt", mime: str = "text/plain") -> tuple[Attachment, ...]:
    return (Attachment("ab", name, mime, 4),)


def media(message: Message) -> str:
    (kind,) = message.media
    return kind


# Out


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("plot.png", DOT, "photo"),
        ("no-ending", DOT, "photo"),
        ("photo.jpg", JPEG, "photo"),
        ("photo.png", b"<svg onload=alert(1)>", "document"),
        ("anim.gif", b"GIF89a" + bytes(50), "document"),
        ("notes.txt", b"hello", "document"),
    ],
)
def test_a_picture_is_one_by_its_bytes(botapi: BotApi, ada, name, data, kind):
    async def story() -> None:
        async with opened(botapi) as adapter:
            number = await adapter.call(out(ada.id, files=file(name)), holding(data))
            message = ada.chat().messages[int(number)]
            assert media(message) == kind
            stored = botapi.world.files.find(_ids(message)["file_id"])
            assert stored.data == data
            assert stored.name == name

    run(story())


def _ids(message: Message) -> dict:
    found = message.media[media(message)]
    return found[-1] if isinstance(found, list) else found


def test_what_is_too_much_for_a_picture_is_a_file(botapi: BotApi, ada):
    large = DOT + bytes(10 * MIB)

    async def story() -> None:
        async with opened(botapi) as adapter:
            number = await adapter.call(out(ada.id, files=file("plot.png")), holding(large))
            assert media(ada.chat().messages[int(number)]) == "document"
            assert not botapi.record.of("sendPhoto")

    run(story())


def test_a_picture_that_the_server_cannot_show_is_a_file(botapi: BotApi, ada):
    refusal = {"ok": False, "description": "Bad Request: PHOTO_INVALID_DIMENSIONS"}
    botapi.faults.answer("sendPhoto", 400, refusal)

    async def story() -> None:
        async with opened(botapi) as adapter:
            number = await adapter.call(out(ada.id, files=file("plot.png")), holding(DOT))
            assert media(ada.chat().messages[int(number)]) == "document"

    run(story())


@pytest.mark.parametrize("data", [DOT, b"plain"])
def test_a_caption_has_its_styles_and_can_be_edited(botapi: BotApi, ada, data):
    async def story() -> None:
        async with opened(botapi) as adapter:
            bold = (Span(SpanKind.BOLD, 3, 3),)
            send = out(ada.id, text="🎉 see", spans=bold, files=file("x.png"))
            number = await adapter.call(send, holding(data))
            message = ada.chat().messages[int(number)]
            (mark,) = message.caption.entities
            assert (mark["type"], message.caption.part(mark)) == ("bold", "see")
            edit = out(ada.id, Op.EDIT, "🎉 saw", spans=bold, target=number)
            await adapter.call(edit, nothing)
            await adapter.call(edit, nothing)  # is what it says already
            assert message.versions == ["🎉 see", "🎉 saw"]
            assert message.caption.entities == (mark,)
            beyond = out(ada.id, text="x", spans=(Span(SpanKind.BOLD, -1, 9),), files=file())
            with pytest.raises(BadStyle):
                await adapter.call(beyond, holding(data))

    run(story())


def test_a_long_text_goes_as_a_file(botapi: BotApi, ada):
    text = "# all of it\n" + "🎉 and more\n" * 9000

    async def story() -> None:
        async with opened(botapi) as adapter:
            call = out(ada.id, text=text, as_file="../answer.md")
            number = await adapter.call(call, nothing)
            message = ada.chat().messages[int(number)]
            stored = botapi.world.files.find(_ids(message)["file_id"])
            assert (stored.data.decode(), stored.name) == (text, "answer.md")
            assert message.words == ""

    run(story())


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\x.exe", "x.exe"),
        ('a"; filename="b.exe', "a'; filename='b.exe"),
        ("line\r\nX-Evil: 1.txt", "1.txt"),
        ("\u202egnp.exe", "gnp.exe"),
        ("", "file"),
        ("..", "file"),
        ("naïve 🎉.txt", "naïve 🎉.txt"),
    ],
)
def test_names_lead_nowhere(botapi: BotApi, ada, name, safe):
    async def story() -> None:
        async with opened(botapi) as adapter:
            number = await adapter.call(out(ada.id, files=file(name)), holding(b"data"))
            message = ada.chat().messages[int(number)]
            assert _ids(message)["file_name"] == safe

    run(story())


def test_files_out_have_a_limit(botapi: BotApi, ada):
    async def story() -> None:
        async with opened(botapi) as adapter:
            most = adapter.caps.file_bytes
            assert most == 50 * MIB
            with pytest.raises(Impossible, match="empty"):
                await adapter.call(out(ada.id, files=file()), holding(b""))
            with pytest.raises(Impossible, match="too large"):
                await adapter.call(out(ada.id, files=file()), holding(bytes(most + 1)))
            assert not botapi.record.of("sendDocument")

    run(story())


def test_a_server_with_a_lower_limit_refuses_for_good():
    with BotApi(settings=Settings(upload_bytes=MIB)) as api:
        bob = api.person("Bob")
        bob.starts()

        async def story() -> None:
            async with opened(api) as adapter:
                with pytest.raises(Impossible):
                    await adapter.call(out(bob.id, files=file()), holding(bytes(3 * MIB)))

        run(story())


def test_a_file_that_cannot_be_read_is_not_sent(botapi: BotApi, ada):
    class Gone(Exception):
        pass

    async def content(_file: Attachment) -> bytes:
        raise Gone

    async def story() -> None:
        async with opened(botapi) as adapter:
            with pytest.raises(Gone):
                await adapter.call(out(ada.id, files=file()), content)
            assert not botapi.record.of("sendDocument", "sendPhoto")

    run(story())


# In


def test_files_of_people_come_down(botapi: BotApi, ada):
    async def story() -> None:
        async with opened(botapi) as adapter, listening(adapter) as taken:
            ada.sends("photo", DOT, "look")
            ada.sends("document", b"%PDF", name="../a b#?%.pdf", mime="application/pdf")
            ada.sends("voice", b"OggS")
            await taken.until(lambda: len(taken.raw) == 3)
            seen = taken.seen
            assert [one.files[0].name for one in seen] == ["photo.jpg", "a b#?%.pdf", "voice.ogg"]
            assert [await adapter.fetch(one.files[0]) for one in seen] == [DOT, b"%PDF", b"OggS"]

    run(story())


def test_no_more_than_twenty_megabytes_come_down(botapi: BotApi, ada, monkeypatch):
    monkeypatch.setattr(calling, "DOWNLOAD_MAX_BYTES", MIB)
    sent = ada.sends("document", bytes(2 * MIB))
    ref = sent.media["document"]["file_id"]

    async def story() -> None:
        async with opened(botapi) as adapter:
            with pytest.raises(Impossible, match="larger than 1 MB"):
                await adapter.fetch(Attachment(ref, size=2 * MIB))
            assert not botapi.record.of("getFile")
            # Who sent it said less, and so did the server: what comes is counted.
            stored = botapi.world.files.find(ref)
            for size in (2 * MIB, 5):
                stored.size = size
                with pytest.raises(Impossible, match="larger than 1 MB"):
                    await adapter.fetch(Attachment(ref, size=5))

    run(story())


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../../x", "a/../../x", "http://127.0.0.1:1/x", "a\\..\\b", "", None, 7],
)
def test_a_server_cannot_send_us_elsewhere(botapi: BotApi, path):
    answer = {"ok": True, "result": {"file_id": "x", "file_path": path}}
    botapi.faults.answer("getFile", 200, answer)

    async def story() -> None:
        async with opened(botapi) as adapter:
            with pytest.raises(Impossible, match="file"):
                await adapter.fetch(Attachment("x"))

    run(story())


@pytest.mark.parametrize("status", [404, 500])
def test_a_server_without_files_is_asked_once(botapi: BotApi, ada, status):
    botapi.faults.answer("getFile", status, times=None)

    async def story() -> None:
        async with opened(botapi) as adapter:
            for _ in range(2):
                with pytest.raises(Absent):
                    await adapter.fetch(Attachment("x"))
            assert botapi.record.counts["getFile"] == 1
            assert any("getFile" in note for note in adapter.notes)

    run(story())


def test_a_download_that_breaks_may_be_made_again(botapi: BotApi, ada):
    ref = ada.sends("document", b"data").media["document"]["file_id"]

    async def story() -> None:
        async with opened(botapi) as adapter:
            botapi.faults.cut("getFile")
            with pytest.raises(Unsure):
                await adapter.fetch(Attachment(ref))
            botapi.faults.cut("download")
            with pytest.raises((Unsure, NotTaken)):
                await adapter.fetch(Attachment(ref))
            botapi.faults.answer("download", 502)
            with pytest.raises(Unsure):
                await adapter.fetch(Attachment(ref))
            assert await adapter.fetch(Attachment(ref)) == b"data"
            with pytest.raises(Impossible):
                await adapter.fetch(Attachment("nobody knows this"))

    run(story())


def test_a_download_that_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr(calling, "DOWNLOAD_MAX_BYTES", MIB)

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            return web.json_response({"ok": True, "result": {"file_path": "x", "username": "b"}})
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:  # chunks, whose sum nobody says beforehand
                await response.write(bytes(MIB // 4))
        return response

    async def story() -> None:
        app = web.Application()
        app.router.add_route("*", "/{any:.*}", answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/bot"
        adapter = Telegram(Secret("1:" + "x" * 35), api_url=url)
        await adapter.open()
        try:
            with pytest.raises(Impossible, match="larger than 1 MB"):
                await adapter.fetch(Attachment("x"))
        finally:
            await adapter.close()
            await runner.cleanup()

    run(story())
