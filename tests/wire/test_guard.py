"""The door: names, origins, tokens, rates; first alone, then on every route."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from aios_nb.access import ANYONE, Caller, Principal, owner_of
from aios_nb.config import Limits
from aios_nb.errors import UsageError
from aios_nb.wire.guard import Bucket, Guard, Need, Peer, Refusal, _digest
from aios_nb.wire.server import ROUTES

OWNER = owner_of("a" * 32)
TOKEN = "t" * 43
PORT = 4711
HERE = Peer(loopback=True)
FAR = Peer()
OTHER_USER = Peer(loopback=True, foreign=True)
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def guard(**options: Any) -> Guard:
    options.setdefault("limits", Limits(refused_per_s=1e6))
    made = Guard(TOKEN, OWNER, **options)
    made.bound(PORT)
    return made


def status(answer: object) -> int:
    assert isinstance(answer, Refusal)
    return answer.status


# Host and Origin ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1:4711", "localhost:4711", "[::1]:4711", "LocalHost:4711"]
)
def test_the_node_answers_under_its_own_names(host):
    assert guard().screen({"Host": host}) is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "evil.example:4711",
        "127.0.0.1",
        "127.0.0.1:80",
        "localhost:4712",
        "localhost.:4711",
        "127.0.0.2:4711",
        "0.0.0.0:4711",
        "127.0.0.1:4711 ",
        "localhost:4711@evil.example",
    ],
)
def test_other_names_are_misdirected(host):
    assert status(guard().screen({"Host": host} if host is not None else {})) == 421


@pytest.mark.parametrize("origin", ["http://127.0.0.1:4711", "http://localhost:4711"])
def test_its_own_pages_may_call(origin):
    assert guard().screen({"Host": "localhost:4711", "Origin": origin}) is None


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "http://127.0.0.1:4712",
        "http://127.0.0.1",
        "http://localhost:8888",
        "https://127.0.0.1:4711",
        "http://127.0.0.1:4711.evil.example",
        "http://127.0.0.1:4711/",
        "file://",
    ],
)
def test_other_pages_may_not(origin):
    assert status(guard().screen({"Host": "localhost:4711", "Origin": origin})) == 403


def test_before_it_is_bound_no_name_is_right():
    assert status(Guard(TOKEN, OWNER).screen({"Host": "127.0.0.1:0"})) == 421


def test_a_public_url_and_allowed_hosts_add_their_names_only():
    wide = guard(public_url="https://Node.Example.org", allow_hosts=("box.lan",))
    for host in ("node.example.org", "node.example.org:443", "box.lan", "box.lan:4711"):
        assert wide.screen({"Host": host}) is None
    assert status(wide.screen({"Host": "example.org"})) == 421
    good = {"Host": "box.lan", "Origin": "https://node.example.org"}
    assert wide.screen(good) is None
    assert status(wide.screen({"Host": "box.lan", "Origin": "http://node.example.org"})) == 403


@pytest.mark.parametrize("url", ["node.example.org", "ftp://x", "https://", "http://h:99999"])
def test_a_public_url_must_be_one(url):
    with pytest.raises(UsageError):
        Guard(TOKEN, OWNER, public_url=url)


def test_conformance_is_for_loopback_only():
    with pytest.raises(UsageError, match="loopback"):
        Guard(TOKEN, OWNER, conformance=True, allow_hosts=("box.lan",))


# Who ------------------------------------------------------------------------------------


def test_the_token_makes_the_owner_and_nothing_else_does():
    assert guard().identify(BEARER, HERE, Need.TOKEN) == OWNER
    assert guard().identify({"Authorization": f"bearer  {TOKEN} "}, HERE, Need.TOKEN) == OWNER


@pytest.mark.parametrize(
    "shown",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN} x",
        "Bearer " + "u" * 43,
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN.upper()}",
        "Bearer \udcff",
    ],
)
@pytest.mark.parametrize("need", [Need.TOKEN, Need.HELLO])
def test_no_or_a_wrong_token_is_never_the_owner(shown, need):
    headers = {} if shown is None else {"Authorization": shown}
    who = guard().identify(headers, HERE, need)
    if need is Need.HELLO and shown is None:
        assert who == ANYONE  # it proves itself on the socket
    else:
        assert status(who) == 401
        assert dict(who.headers)["WWW-Authenticate"].startswith("Bearer")


def test_an_empty_token_cannot_be_set():
    with pytest.raises(UsageError):
        Guard("", OWNER)


def test_another_user_of_the_machine_is_refused_with_and_without_the_token():
    for need in (Need.TOKEN, Need.HELLO):
        assert status(guard().identify(BEARER, OTHER_USER, need)) == 403
    assert status(guard().identify({}, OTHER_USER, Need.HELLO)) == 403
    assert status(guard().identify({}, OTHER_USER, Need.TOKEN)) == 401
    assert guard().identify(BEARER, OTHER_USER, Need.NOTHING) == ANYONE


def test_open_routes_see_anyone_even_with_the_token():
    assert guard().identify(BEARER, HERE, Need.NOTHING) == ANYONE


def test_a_scoped_token_is_found_by_its_hash_and_is_not_the_owner():
    bridge = Principal(Caller.TOKEN, "tg:")
    known = {_digest("scoped"): bridge}
    door = guard(scoped=known.get)
    assert door.identify({"Authorization": "Bearer scoped"}, HERE, Need.TOKEN) == bridge
    assert status(door.identify({"Authorization": "Bearer other"}, HERE, Need.TOKEN)) == 401


@pytest.mark.parametrize(
    ("options", "peer", "more", "taken"),
    [
        ({}, HERE, {}, True),
        ({"allow_hosts": ("box.lan",)}, FAR, {}, False),
        ({"allow_hosts": ("box.lan",)}, HERE, {}, True),
        ({"allow_hosts": ("box.lan",)}, HERE, {"X-Forwarded-For": "10.0.0.9"}, False),
        ({"public_url": "http://box.lan"}, FAR, {}, False),
        ({"public_url": "https://box.lan"}, HERE, {"X-Forwarded-For": "10.0.0.9"}, True),
        ({"public_url": "https://box.lan"}, FAR, {}, True),
    ],
)
def test_a_token_is_not_taken_over_plain_http_off_loopback(options, peer, more, taken):
    who = guard(**options).identify(BEARER | more, peer, Need.TOKEN)
    assert who == OWNER if taken else status(who) == 403


def test_without_a_token_the_conformance_caller_is_anyone():
    assert guard(conformance=True).identify({}, HERE, Need.TOKEN) == ANYONE
    wrong = {"Authorization": "Bearer wrong"}
    assert status(guard(conformance=True).identify(wrong, HERE, Need.TOKEN)) == 401


# Rates ----------------------------------------------------------------------------------


def test_a_bucket_refills_with_time():
    now = [0.0]
    bucket = Bucket(10, lambda: now[0])
    assert sum(bucket.take() for _ in range(100)) == 20
    now[0] += 0.5
    assert sum(bucket.take() for _ in range(100)) == 5
    now[0] += 1000
    assert sum(bucket.take() for _ in range(100)) == 20


def test_refusals_run_out_but_the_owner_still_gets_in():
    door = guard(limits=Limits(refused_per_s=5), clock=lambda: 0.0)
    codes = [status(door.identify({}, HERE, Need.TOKEN)) for _ in range(50)]
    assert codes == [401] * 10 + [429] * 40
    assert status(door.screen({"Host": "evil.example"})) == 429
    assert status(door.identify({}, HERE, Need.NOTHING)) == 429
    assert dict(door.identify({}, HERE, Need.NOTHING).headers)["Retry-After"] == "1"
    assert door.identify(BEARER, HERE, Need.TOKEN) == OWNER
    assert door.identify({}, HERE, Need.HELLO) == ANYONE


def test_a_crowd_outside_does_not_keep_local_clients_from_the_door():
    door = guard(limits=Limits(refused_per_s=1), allow_hosts=("box.lan",), clock=lambda: 0.0)
    codes = [door.identify({}, FAR, Need.HELLO) for _ in range(50)]
    assert status(codes[-1]) == 429
    assert door.identify({}, HERE, Need.HELLO) == ANYONE
    through_a_proxy = {"X-Forwarded-For": "10.0.0.9"}
    assert status(door.identify(through_a_proxy, HERE, Need.HELLO)) == 429


def test_who_shows_the_token_is_told_what_is_wrong_however_many_were_refused():
    door = guard(limits=Limits(refused_per_s=1), clock=lambda: 0.0)
    wrong = {"Host": "evil.example"}
    assert [status(door.screen(wrong, HERE)) for _ in range(3)] == [421, 421, 429]
    assert status(door.screen(wrong | BEARER, HERE)) == 421
    assert status(door.screen(wrong | BEARER, OTHER_USER)) == 429
    assert status(door.screen(wrong | {"Authorization": "Bearer x"}, HERE)) == 429
    lost = Refusal(404, "nothing here")
    assert door.refuse(lost, BEARER, HERE) is lost
    assert status(door.refuse(lost)) == 429
    assert status(door.identify({}, HERE, Need.NOTHING)) == 429
    assert door.identify(BEARER, HERE, Need.NOTHING) == ANYONE


# On every route -------------------------------------------------------------------------

SHA = "0" * 64
EVIL = {
    "host": {"Host": "evil.example"},
    "origin": {"Origin": "http://evil.example"},
    "null": {"Origin": "null"},
    "neighbour": {"Origin": "http://127.0.0.1:1"},
}
CALL = json.dumps(
    {"jsonrpc": "2.0", "method": "chat.send", "params": ["e", "hi"], "id": 1}
).encode()
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Protocol": "aios-rpc-1",
}
EVERYWHERE = [
    *(
        (method, path + (SHA if path.endswith("/") else ""), route.need)
        for path, route in ROUTES.items()
        for method in sorted(route.methods)
    ),
    ("GET", "/nowhere", Need.NOTHING),
    ("OPTIONS", "/rpc", Need.TOKEN),
    ("OPTIONS", "/ws", Need.HELLO),
    ("DELETE", f"/blobs/{SHA}", Need.TOKEN),
]


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize(("method", "path", "need"), EVERYWHERE)
def test_no_route_answers_a_foreign_name_or_page(serving, method, path, need, evil):
    async def main():
        async with serving() as site:
            headers = (UPGRADE if path == "/ws" else {}) | EVIL[evil]
            body = CALL if path == "/rpc" else b""
            answer = await site.http(method, path, body, headers)
            return answer, site.calls, list(site.shelf.readers)

    answer, calls, files = asyncio.run(main())
    assert answer.status == (421 if evil == "host" else 403)
    assert not any(name.startswith("access-control") for name in answer.headers)
    assert calls == []
    assert files == []
    if method != "HEAD":
        assert answer.json["error"]
        assert answer.body.count(b"\n") == 1


@pytest.mark.parametrize(("method", "path", "need"), EVERYWHERE)
@pytest.mark.parametrize("shown", [None, "", "wrong", "the-right-token"])
def test_every_route_that_needs_the_token_refuses_without_it(serving, method, path, need, shown):
    async def main():
        async with serving() as site:
            headers = {} if shown is None else {"Authorization": f"Bearer {shown}"}
            if path == "/ws":
                headers |= UPGRADE
                if shown is None:
                    return None  # tested with the hello
            answer = await site.http(
                method, path, CALL if path == "/rpc" else b"", headers, token=None
            )
            return answer, site.calls

    got = asyncio.run(main())
    if got is None:
        return
    answer, calls = got
    if need is Need.OPEN and shown is None:
        assert answer.status == 200
        assert [who for _, who, _ in calls] == [ANYONE]
        return
    assert calls == []
    known = path.removesuffix(SHA) in ROUTES
    if not known:
        assert answer.status == 404
    elif method not in ROUTES[path.removesuffix(SHA)].methods:
        assert answer.status == 405
        assert method not in answer.headers["allow"]
    elif need is Need.NOTHING:
        assert answer.status == 200
    else:
        assert answer.status == 401
        assert "bearer" in answer.headers["www-authenticate"].lower()


def test_our_own_page_may_ask_but_gets_no_cors_header(serving):
    async def main():
        async with serving() as site:
            origin = {"Origin": site.url}
            asked = await site.http("OPTIONS", "/rpc", headers=origin)
            called = await site.rpc(CALL, origin)
            return asked, called

    asked, called = asyncio.run(main())
    assert asked.status == 405
    assert called.status == 200
    for answer in (asked, called):
        assert not any(name.startswith("access-control") for name in answer.headers)


def test_no_answer_tells_a_version_and_each_says_nosniff(serving):
    async def main():
        async with serving() as site:
            answers = [await site.http(method, path) for method, path, _ in EVERYWHERE]
            broken = await site.raw(b"NONSENSE\r\n\r\n")
            return answers, broken

    answers, broken = asyncio.run(main())
    for answer in answers:
        assert answer.headers["server"] == "aios-nb"
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert b"aiohttp" not in broken
    assert b"Python" not in broken
    assert broken.startswith(b"HTTP/1.0 400")


def test_two_host_headers_do_not_pass(serving):
    async def main():
        async with serving() as site:
            lines = (
                f"Host: {site.host}\r\nHost: evil.example\r\nAuthorization: Bearer {site.token}\r\n"
            )
            size = f"Connection: close\r\nContent-Length: {len(CALL)}\r\n\r\n"
            head = f"POST /rpc HTTP/1.1\r\n{lines}{size}"
            answer = await site.raw(head.encode() + CALL)
            lines = (
                f"Host: {site.host}\r\nAuthorization: Bearer {site.token}\r\nConnection: close\r\n"
            )
            absolute = f"GET http://evil.example/healthz HTTP/1.1\r\n{lines}\r\n"
            return answer, await site.raw(absolute.encode()), site.calls

    twice, absolute, calls = asyncio.run(main())
    assert twice.split(b" ", 2)[1] in (b"400", b"421")
    assert absolute.split(b" ", 2)[1] in (b"400", b"404", b"421")
    assert calls == []


def test_a_flood_without_a_token_is_slowed_and_the_owner_is_not(serving):
    async def main():
        async with serving(limits=Limits(refused_per_s=2)) as site:
            async with aiohttp.ClientSession() as stranger:
                codes = []
                for _ in range(30):
                    async with stranger.post(f"{site.url}/rpc", data=CALL) as answer:
                        codes.append(answer.status)
            return codes, (await site.rpc(CALL)).status

    codes, owner = asyncio.run(main())
    assert set(codes) == {401, 429}
    assert codes[-1] == 429
    assert owner == 200


def test_the_owner_is_never_told_of_a_missing_token(serving):
    async def main():
        async with serving(limits=Limits(refused_per_s=1)) as site:
            asks = [("DELETE", "/rpc", {}), ("GET", "/nowhere", {}), ("POST", "/rpc", EVIL["host"])]
            for _ in range(3):
                await site.http("GET", "/nowhere", token=None)
            return [(await site.http(m, path, headers=more)).status for m, path, more in asks]

    assert asyncio.run(main()) == [405, 404, 421]
