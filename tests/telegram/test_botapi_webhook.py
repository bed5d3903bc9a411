"""Webhooks: the secret, the order, and pushing again until somebody takes it."""

from __future__ import annotations

import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

SECRET = "A_secret-of-32-letters-or-more-0123"


class Door:
    """A bot's own server; ``plan`` are the answers to the next pushes, then 200."""

    def __init__(self) -> None:
        self.pushes: list[tuple[str | None, dict]] = []
        self.plan: deque[int | dict] = deque()
        door = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                door.pushes.append((self.headers.get("X-Telegram-Bot-Api-Secret-Token"), body))
                answer = door.plan.popleft() if door.plan else 200
                data = json.dumps(answer).encode() if isinstance(answer, dict) else b""
                self.send_response(200 if isinstance(answer, dict) else answer)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def texts(self) -> list[str]:
        return [body["message"]["text"] for _, body in self.pushes]


@pytest.fixture
def door():
    door = Door()
    yield door
    door.close()


def test_updates_are_pushed_with_the_secret_and_in_order(botapi, client, ada, door):
    ada.says("from before")
    assert client.set_webhook(url=door.url, secret_token=SECRET) is True
    for number in range(5):
        ada.says(str(number))
    botapi.wait(lambda: len(door.pushes) == 6)
    assert door.texts() == ["from before", "0", "1", "2", "3", "4"]
    assert {secret for secret, _ in door.pushes} == {SECRET}
    assert client.parsed(door.pushes[0][1]).message.text == "from before"
    botapi.wait(lambda: not botapi.bot.updates.pending)
    assert client.get_webhook_info().pending_update_count == 0


def test_a_push_that_fails_comes_again_and_holds_up_its_chat_only(botapi, client, ada, door):
    bob = botapi.person("Bob")
    door.plan.extend([500, 403])
    client.set_webhook(url=door.url)
    ada.says("first")
    botapi.wait(lambda: door.pushes)
    bob.says("meanwhile")
    ada.says("second")
    botapi.wait(lambda: not botapi.bot.updates.pending)
    mine = [body["message"] for _, body in door.pushes if body["message"]["from"]["id"] == ada.id]
    assert [message["text"] for message in mine][-2:] == ["first", "second"]
    assert len(door.pushes) == 5
    info = client.get_webhook_info()
    assert info.url == door.url
    assert "Wrong response from the webhook: " in info.last_error_message


def test_nobody_at_home_is_said_and_tried_again(botapi, client, ada, door):
    url = door.url.replace("/hook", "")
    door.close()
    client.set_webhook(url=url)
    ada.says("hello")
    botapi.wait(lambda: len(botapi.bot.webhook.deliveries) > 1)
    info = client.get_webhook_info()
    assert info.last_error_message == "Connection refused"
    assert info.pending_update_count == 1
    client.delete_webhook()
    assert [update.message.text for update in client.get_updates()] == ["hello"]


def test_polling_and_webhook_exclude_each_other(botapi, client, ada, door):
    poll = client.begin(client.bot.get_updates(timeout=20))
    botapi.wait(lambda: botapi.record.of("getUpdates"))
    client.set_webhook(url=door.url)
    with pytest.raises(client.Error, match="terminated by setWebhook request"):
        poll.result(20)
    with pytest.raises(client.Error, match="can't use getUpdates method while webhook is active"):
        client.get_updates()
    assert client.delete_webhook() is True
    assert list(client.get_updates()) == []


def test_waiting_updates_can_be_dropped(botapi, client, ada, door):
    ada.says("old")
    client.delete_webhook(drop_pending_updates=True)
    assert list(client.get_updates()) == []


def test_the_answer_to_a_push_can_be_a_call(botapi, client, ada, door):
    door.plan.append({"method": "sendMessage", "chat_id": ada.id, "text": "at once"})
    client.set_webhook(url=door.url)
    ada.says("hello")
    botapi.wait(lambda: "at once" in ada.chat().texts())


@pytest.mark.parametrize(
    ("url", "secret", "why"),
    [
        ("http://example.com/x", "", "An HTTPS URL must be provided"),
        ("https://example.com:1234/x", "", "only on ports 80, 88, 443 or 8443"),
        ("no url", "", "invalid webhook URL"),
        ("https://example.com/x", "not allowed!", "unallowed characters"),
    ],
)
def test_webhooks_that_telegram_refuses(botapi, client, url, secret, why):
    botapi.settings.public_webhooks_only = True
    with pytest.raises(client.Error, match=f"(?i){why}"):
        client.set_webhook(url=url, secret_token=secret)


def test_a_revoked_token_is_unknown_and_gets_no_pushes(botapi, client, ada, door):
    client.set_webhook(url=door.url, secret_token=SECRET)
    ada.says("one")
    botapi.wait(lambda: botapi.bot.updates.confirmed)
    botapi.revoke()
    ada.says("two")
    with pytest.raises(client.Error, match=r"(?i)unauthorized|token"):
        client.get_me()
    assert door.texts() == ["one"]
    assert [update.body["message"]["text"] for update in botapi.bot.updates.pending] == ["two"]
