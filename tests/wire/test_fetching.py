"""Nobody gets us to knock where it could not knock itself, nor to take more than we want."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from aiohttp import web

from aios_nb.errors import TooLarge, Unreachable, UsageError
from aios_nb.records import Scope
from aios_nb.wire import places
from aios_nb.wire.fetching import Fetcher, refused
from aios_nb.wire.fetching import _next as next_place
from aios_nb.wire.places import Place, checked

WAIT_S = 30
SECRET = {"Authorization": "Bearer hush"}
PAGES = {
    "/json": (b'{"a": 1}', {"Set-Cookie": "track=1"}),
    "/html": (b"<html>", {"Content-Type": "text/html"}),
    "/deep": (b"[" * 100_000, {}),
    "/long": (b"x" * 10_000, {}),
    "/bomb": (gzip.compress(b"\0" * 5_000_000), {"Content-Encoding": "gzip"}),
}


class Site:
    """A server that remembers who came, and sends people where the test says."""

    def __init__(self) -> None:
        self.came: list[tuple[str, str, dict[str, str]]] = []
        self.moved: dict[str, tuple[int, str]] = {}
        self.port = 0
        self.wait = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.came.append((request.method, request.path, dict(request.headers)))
        if request.path in self.moved:
            status, target = self.moved[request.path]
            return web.Response(status=status, headers={"Location": target})
        if request.path in PAGES:
            content, headers = PAGES[request.path]
            return web.Response(body=content, headers=headers)
        if request.path == "/silent":
            await self.wait.wait()
        if request.path not in {"/drip", "/endless"}:
            return web.Response(text=request.path)
        response = web.StreamResponse()
        await response.prepare(request)
        while not self.wait.is_set():
            await response.write(b"x" * 1000)
            if request.path == "/drip":
                await self.wait.wait()
        return response


def with_site(work: Callable[[Site], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        site = Site()
        runner = web.ServerRunner(web.Server(site.answer), handler_cancellation=True)
        await runner.setup()
        for host in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):  # one machine plays several
            await web.TCPSite(runner, host, site.port).start()
            site.port = runner.addresses[0][1]
        try:
            async with asyncio.timeout(WAIT_S):
                return await work(site)
        finally:
            site.wait.set()
            await runner.cleanup()

    return asyncio.run(main())


class Names:
    """A resolver; what it says can change from one question to the next."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def out_there(monkeypatch):
    """127.0.0.2 plays a public address."""
    real = places.scope_of
    monkeypatch.setattr(
        places, "scope_of", lambda ip: Scope.GLOBAL if ip == "127.0.0.2" else real(ip)
    )


def fetch(url: str, **options: Any) -> Any:
    async def main() -> Any:
        async with asyncio.timeout(WAIT_S), Fetcher(**options) as fetcher:
            return await fetcher.get(url)

    return asyncio.run(main())


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/",
        "gopher://127.0.0.1:6379/_INFO",
        "data:application/json,{}",
        "//example.org/",
        "example.org",
        "http://",
        "http://user:hush@example.org/",
        "http://hush@example.org/",
        "http://example.org:0/",
        "http://example.org:99999/",
        "http://example.org\\@127.0.0.1/",
        "http://exa mple.org/",
        "http://example.org/\r\nHost: x",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.0.0.1./",
        "http://[fe80::1%25eth0]/",
        "http://[::1",
        "http://example.org/" + "a" * 3000,
    ],
)
def test_only_plain_web_addresses_are_fetched(url):
    with pytest.raises(UsageError) as caught:
        fetch(url, local=True)
    assert "hush" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "198.18.0.1",
        "[::]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[fc00::1]",
        "[ff02::1]",
        "[fec0::1]",
        "[::ffff:10.0.0.1]",
        "[::ffff:169.254.169.254]",
        "[::10.0.0.1]",
        "[::ffff:0:10.0.0.1]",
        "[64:ff9b::10.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[2002:a00:1::]",
        "[2001:0:1::1]",
    ],
)
def test_what_is_not_public_is_never_called(address, local):
    with pytest.raises(UsageError, match="not called from here"):
        fetch(f"http://{address}/", local=local, timeout_s=5)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]", "localhost"]
)
def test_this_machine_is_called_only_if_that_is_meant(address):
    with pytest.raises(UsageError, match="--local"):
        fetch(f"http://{address}:1/")
    with pytest.raises(Unreachable, match="refused") as caught:
        fetch(f"http://{address}:1/", local=True)
    assert caught.value.data["ran"] == "no"


@pytest.mark.parametrize(
    "answer",
    [
        ["10.0.0.1"],
        ["8.8.8.8", "10.0.0.1"],
        ["2606:4700::1111", "::1"],
        ["169.254.169.254"],
        ["nonsense"],
    ],
)
def test_a_name_that_leads_inside_is_refused_whatever_else_it_stands_for(answer):
    with pytest.raises(UsageError, match=r"rebind\.test is .*not called"):
        fetch("http://rebind.test/", resolve=Names(answer))


def test_a_name_is_looked_up_once_and_the_connection_goes_where_was_looked():
    async def work(site: Site) -> Any:
        names = Names(["127.0.0.1"], ["10.0.0.1"])
        async with Fetcher(local=True, resolve=names) as fetcher:
            first = await fetcher.get(f"http://rebind.test:{site.port}/json")
            with pytest.raises(UsageError):
                await fetcher.get(f"http://rebind.test:{site.port}/json")
        return first, names.asked, site.came

    first, asked, came = with_site(work)

    assert first.json() == {"a": 1}
    assert len(asked) == 2
    assert len(came) == 1
    assert came[0][2]["Host"].startswith("rebind.test")


def test_a_name_nobody_knows_is_one_line():
    with pytest.raises(Unreachable, match=r"nobody knows the name nowhere\.invalid"):
        asyncio.run(checked("nowhere.invalid", 80, local=False))


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("http://127.0.0.1:{port}/json", "this machine"),
        ("http://localhost:{port}/json", "this machine"),
        ("http://10.0.0.1/", "private network"),
        ("http://169.254.169.254/latest/meta-data", "no public server"),
        ("file:///etc/passwd", "not a URL"),
        ("http://u:p@127.0.0.2:{port}/json", "user or a password"),
        ("http://[::ffff:127.0.0.1]:{port}/json", "this machine"),
    ],
)
def test_a_public_server_cannot_send_us_inside(out_there, target, problem):
    async def work(site: Site) -> Any:
        site.moved["/away"] = (302, target.format(port=site.port))
        async with Fetcher(local=True) as fetcher:  # even if this machine is meant
            with pytest.raises(UsageError, match=problem):
                await fetcher.get(f"http://127.0.0.2:{site.port}/away")
        return site.came

    assert [path for _, path, _ in with_site(work)] == ["/away"]


def test_redirects_are_few_and_never_lose_the_lock():
    async def work(site: Site) -> Any:
        site.moved |= {"/1": (301, "/2"), "/2": (307, "3"), "/3": (308, "/json"), "/0": (302, "/1")}
        async with Fetcher(local=True) as fetcher:
            found = await fetcher.get(f"{site.url}/1")
            with pytest.raises(Unreachable, match="again and again"):
                await fetcher.get(f"{site.url}/0")
        return found

    found = with_site(work)

    assert found.url.endswith("/json")
    secure = Place.parse("https://example.org/a")
    assert next_place("GET", secure, 302, "/b").url == "https://example.org/b"
    with pytest.raises(Unreachable, match="without TLS"):
        next_place("GET", secure, 302, "http://example.org/b")


def test_what_is_posted_goes_nowhere_else():
    async def work(site: Site) -> Any:
        site.moved |= {
            "/slash": (307, "/slash/"),
            "/seeother": (303, "/json"),
            "/away": (307, f"http://127.0.0.3:{site.port}/json"),
        }

        async def post(path: str) -> Any:
            async with fetcher.stream("POST", f"{site.url}{path}", b"{}") as flow:
                return await flow.read()

        async with Fetcher(local=True) as fetcher:
            moved = await post("/slash")
            for path in ("/seeother", "/away"):
                with pytest.raises(Unreachable, match="sends us to"):
                    await post(path)
        return moved, [(method, path) for method, path, _ in site.came]

    moved, came = with_site(work)

    assert moved.body == b"/slash/"
    assert came == [
        ("POST", "/slash"),
        ("POST", "/slash/"),
        ("POST", "/seeother"),
        ("POST", "/away"),
    ]


def test_a_secret_goes_to_its_own_origin_alone(out_there):
    async def work(site: Site) -> Any:
        site.moved["/away"] = (302, f"http://127.0.0.3:{site.port}/json")
        async with Fetcher(local=True, secrets=SECRET, origin=site.url) as fetcher:
            await fetcher.get(f"{site.url}/away")
            await fetcher.get(f"http://localhost:{site.port}/json")
        open_line = f"http://127.0.0.2:{site.port}"
        async with Fetcher(secrets=SECRET, origin=open_line) as fetcher:
            with pytest.raises(UsageError, match="https only"):
                await fetcher.get(f"{open_line}/json")
        return [headers.get("Authorization") for _, _, headers in site.came]

    assert with_site(work) == ["Bearer hush", None, None]


def test_no_more_is_taken_than_was_meant():
    async def work(site: Site) -> None:
        async with Fetcher(local=True, limit_bytes=5000) as fetcher:
            for path in ("/long", "/endless", "/bomb"):
                with pytest.raises(TooLarge):
                    await fetcher.get(site.url + path)
            assert (await fetcher.get(f"{site.url}/short")).body == b"/short"

    with_site(work)


def test_nobody_is_waited_for_for_ever():
    async def work(site: Site) -> None:
        async with Fetcher(local=True, timeout_s=0.2) as fetcher:
            for path in ("/silent", "/drip"):
                with pytest.raises(Unreachable, match="in time") as caught:
                    await fetcher.get(site.url + path)
                assert caught.value.data["ran"] == "unknown"

    with_site(work)


def test_what_is_no_json_is_said_in_one_line():
    async def work(site: Site) -> None:
        async with Fetcher(local=True) as fetcher:
            assert await fetcher.get_json(f"{site.url}/json") == {"a": 1}
            for path in ("/html?key=hush", "/deep?key=hush"):
                with pytest.raises(Unreachable, match="no JSON") as caught:
                    await fetcher.get_json(site.url + path)
                assert "hush" not in str(caught.value)
            site.moved["/teapot"] = (418, "")
            with pytest.raises(Unreachable, match="HTTP 418"):
                await fetcher.get_json(f"{site.url}/teapot")
            assert not any("Cookie" in headers for _, _, headers in site.came)

    with_site(work)
    assert refused("http://x/", 500).data["status"] == 500


def test_the_environment_sends_nothing_through_a_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    async def work(site: Site) -> Any:
        async with Fetcher(local=True) as fetcher:
            return await fetcher.get_json(f"{site.url}/json")

    assert with_site(work) == {"a": 1}
