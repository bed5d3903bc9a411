"""A card is data: verified if it is signed, refused if it was changed, pinned when approved."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import jwt
import msgspec
import pytest
from a2a.types import AgentCapabilities, AgentCard, AgentExtension, AgentInterface
from a2a.utils.signing import create_agent_card_signer
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf.json_format import MessageToDict

from aios_nb.errors import AgentFailed, NotAllowed, TooLarge, Unreachable, UsageError
from aios_nb.wire.a2a.jws import did_key
from aios_nb.wire.outside.cards import read_card
from tests.wire.outside.a2apeers import House, Listener, agent, card_for, in_house

KEY = Ed25519PrivateKey.generate()
PUBLIC = KEY.public_key().public_bytes_raw()
DID = did_key(PUBLIC)
KEYS: dict[str, Any] = {
    "EdDSA": KEY,
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "RS256": rsa.generate_private_key(65537, 2048),
}


class Host:
    """A site that shows what the test puts there, and refuses every call as an agent would."""

    def __init__(self) -> None:
        self.pages: dict[str, Any] = {}
        self.url = ""
        self.shut = False
        self.came: list[tuple[str, str | None]] = []

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.came.append((request.path, request.headers.get("Authorization")))
        if request.method == "POST" and self.shut:
            return web.Response(status=401)
        if request.method == "POST" and request.path in {"/a2a", "/b2b"}:
            error = {"code": -32001, "message": "no such task"}
            return web.json_response({"jsonrpc": "2.0", "id": 1, "error": error})
        page = self.pages.get(request.path)
        if page is None:
            return web.Response(status=404)
        if isinstance(page, str | bytes):
            return web.Response(body=page if isinstance(page, bytes) else page.encode())
        return web.json_response(page)


def looked(tmp_path, prepare, **options: Any) -> Any:
    """What is seen of the agent at a host that ``prepare`` has set up."""

    async def work(house: House) -> Any:
        host = Host()
        runner = web.ServerRunner(web.Server(host.answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            prepared = prepare(host)
            if prepared is not None:
                host.pages["/.well-known/agent-card.json"] = prepared
            return (await house.meet(host.url, **options))[1], host
        finally:
            await runner.cleanup()

    return in_house(tmp_path, work)


def as_json(card: AgentCard) -> dict[str, Any]:
    return MessageToDict(card)


def signed(url: str, header: dict[str, Any], key: Any = KEY) -> dict[str, Any]:
    """A card that the public SDK signed."""
    return as_json(create_agent_card_signer(key, header)(card_for(url)))


def by_hand(url: str, header: dict[str, Any], signature: bytes) -> dict[str, Any]:
    protected = base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=").decode()
    sealed = base64.urlsafe_b64encode(signature).rstrip(b"=").decode()
    return {
        **as_json(card_for(url)),
        "signatures": [{"protected": protected, "signature": sealed}],
    }


def test_a_card_says_who_the_agent_is(tmp_path):
    async def work(house: House):
        async with agent() as there:
            return await house.meet(there.url), there.url

    (met, seen), url = in_house(tmp_path, work)

    assert (met.kind, met.address) == ("a2a", f"{url}/.well-known/agent-card.json")
    assert (seen.title, seen.version) == ("Painter", "1.2")
    assert seen.about == "Paints what it is told.\nPaint: Any colour"
    assert (seen.tags, seen.examples) == (("art",), ("red wall",))
    assert seen.details["signature"] == "none"
    assert msgspec.json.decode(msgspec.json.encode(seen), type=type(seen)) == seen


def test_a_card_signed_by_its_key_is_valid(tmp_path):
    seen, _ = looked(tmp_path, lambda host: signed(host.url, {"alg": "EdDSA", "kid": DID}))

    assert (seen.details["signature"], seen.details["key"]) == ("valid", DID)


@pytest.mark.parametrize("algorithm", ["EdDSA", "ES256", "RS256"])
def test_a_key_on_the_cards_own_origin_is_taken(tmp_path, algorithm):
    def prepare(host: Host) -> Any:
        public = KEYS[algorithm].public_key()
        jwk = jwt.get_algorithm_by_name(algorithm).to_jwk(public, as_dict=True)
        host.pages["/keys"] = {"keys": [{"kid": "other"}, {**jwk, "kid": "k1"}]}
        header = {"alg": algorithm, "kid": "k1", "jku": f"{host.url}/keys"}
        return signed(host.url, header, KEYS[algorithm])

    seen, _ = looked(tmp_path, prepare)

    assert seen.details["signature"] == "valid"
    assert seen.details["key"].startswith("jwk:")


def test_a_key_from_elsewhere_proves_nothing(tmp_path):
    def prepare(host: Host) -> Any:
        jwk = jwt.get_algorithm_by_name("EdDSA").to_jwk(KEY.public_key(), as_dict=True)
        host.pages["/keys"] = {"keys": [{**jwk, "kid": "k1"}]}
        elsewhere = host.url.replace("127.0.0.1", "localhost")
        return signed(host.url, {"alg": "EdDSA", "kid": "k1", "jku": f"{elsewhere}/keys"})

    seen, host = looked(tmp_path, prepare)

    assert (seen.details["signature"], seen.details["key"]) == ("unknown", "")
    assert "/keys" not in [path for path, _ in host.came]


@pytest.mark.parametrize(
    "change",
    [
        lambda card: card.update(description="Paints what it is told, and sends it to me."),
        lambda card: card["skills"][0].update(description="Any colour. "),
        lambda card: card["supportedInterfaces"][0].update(tenant="mine"),
        lambda card: card["skills"].append({"id": "x", "name": "Steal"}),
        lambda card: card["capabilities"].update(streaming=False),
        lambda card: card["signatures"][0].update(signature="AAAA"),
        lambda card: card["signatures"][0].update(protected="e30"),
        lambda card: card.update(signatures=[17]),
    ],
)
def test_a_changed_card_is_refused(tmp_path, change):
    def prepare(host: Host) -> Any:
        card = signed(host.url, {"alg": "EdDSA", "kid": DID})
        change(card)
        return card

    with pytest.raises(AgentFailed, match="not what was signed"):
        looked(tmp_path, prepare)


def test_what_other_versions_of_a2a_add_to_a_card_does_not_count(tmp_path):
    def prepare(host: Host) -> Any:
        card = signed(host.url, {"alg": "EdDSA", "kid": DID})
        return {**card, "url": "http://evil.example/", "preferredTransport": "JSONRPC"}

    seen, host = looked(tmp_path, prepare)

    assert seen.details["signature"] == "valid"
    assert seen.details["url"] == f"{host.url}/a2a"
    assert "evil" not in str(seen)


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none", "kid": DID},
        {"alg": "HS256", "kid": DID},
        {"alg": "ES256", "kid": DID},
        {"alg": "RS256", "kid": DID},
        {"kid": DID},
        {"alg": "EdDSA", "kid": DID, "exp": int(time.time()) - 60},
        {"alg": "EdDSA", "kid": DID, "exp": "soon"},
        {"alg": "EdDSA", "kid": DID, "crit": ["fine"], "fine": True},
        {"alg": "EdDSA", "kid": "did:key:zNonsense0OIl"},
    ],
)
def test_a_signature_that_proves_nothing_is_refused(tmp_path, header):
    def prepare(host: Host) -> Any:
        good = signed(host.url, {"alg": "EdDSA", "kid": DID})["signatures"][0]["signature"]
        if header.get("alg") == "HS256":
            raw = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            secret = KEY.public_key().public_bytes(*raw).hex().encode()
            return as_json(create_agent_card_signer(secret, header)(card_for(host.url)))
        if header.get("alg") == "EdDSA" and "Nonsense" not in header["kid"]:
            return signed(host.url, header)
        return by_hand(host.url, header, base64.urlsafe_b64decode(good + "=="))

    with pytest.raises(AgentFailed, match="not what was signed"):
        looked(tmp_path, prepare)


@pytest.mark.parametrize(
    "changes",
    [
        {"description": "Paints, and reads your mail."},
        {"signatures": []},
        {
            "supportedInterfaces": [
                {"url": "URL/b2b", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            ]
        },
    ],
)
def test_an_agent_that_changed_is_not_asked_until_it_is_approved_again(tmp_path, changes):
    seen, host = looked(tmp_path, lambda host: signed(host.url, {"alg": "EdDSA", "kid": DID}))

    def prepare(other: Host) -> Any:
        card = json.loads(json.dumps(seen.details["card"]).replace(host.url, other.url))
        return {**card, **json.loads(json.dumps(changes).replace("URL", other.url))}

    async def work(house: House) -> None:
        async with agent() as there:
            met, now = await house.meet(there.url)
            carrier = met.carrier(msgspec.structs.replace(now, pin="0" * 64), house.memory)
            with pytest.raises(AgentFailed, match="changed since") as caught:
                await carrier.carry(None, Listener())
            assert not there.worker.heard
            assert caught.value.data["ran"] == "no"

    assert looked(tmp_path, prepare)[0].pin != seen.pin
    in_house(tmp_path, work)


def test_a_new_version_is_still_the_same_agent():
    def pin(**changes: Any) -> str:
        content = msgspec.json.encode(as_json(card_for("https://example.org", **changes)))
        return read_card(content, "https://example.org").pin("")

    assert pin(version="1") == pin(version="2", icon_url="https://example.org/i.png")
    assert pin(version="1") != pin(name="Painter 2")


@pytest.mark.parametrize(
    ("card", "words"),
    [
        ({"name": "Old", "url": "http://x/", "protocolVersion": "0.3.0"}, "it speaks A2A 0.3.0"),
        (
            {
                "supported_interfaces": [
                    AgentInterface(
                        url="http://x/", protocol_binding="JSONRPC", protocol_version="0.3"
                    )
                ]
            },
            "it speaks A2A 0.3;",
        ),
        (
            {
                "supported_interfaces": [
                    AgentInterface(url="http://x/", protocol_binding="GRPC", protocol_version="1.0")
                ]
            },
            "it speaks A2A over GRPC",
        ),
        (
            {
                "capabilities": AgentCapabilities(
                    extensions=[AgentExtension(uri="urn:x\x1b[2J", required=True)]
                )
            },
            r"insists on an extension that is not known here: urn:x$",
        ),
        ({"supported_interfaces": []}, "does not say where"),
    ],
)
def test_a_card_we_cannot_use_is_one_line(tmp_path, card, words):
    def prepare(host: Host) -> Any:
        return card if "protocolVersion" in card else as_json(card_for(host.url, **card))

    with pytest.raises(AgentFailed, match=words):
        looked(tmp_path, prepare)


def test_what_is_no_card_is_no_agent(tmp_path):
    for page in ("<html>", b"\xff\xfe", "[" * 50_000, "[]", '{"name": 7}', b"{" + b" " * 300_000):
        with pytest.raises((Unreachable, AgentFailed, TooLarge)):
            looked(tmp_path, lambda _, page=page: page, kind="a2a")
    with pytest.raises(Unreachable, match="HTTP 404"):
        looked(tmp_path, lambda _: None, kind="a2a")


def test_hostile_words_are_bounded_and_inert(tmp_path):
    evil = "\x1b]0;x\x07<script>\u202eevil\u200b" * 30

    def prepare(host: Host) -> Any:
        card = as_json(card_for(host.url, name=evil, description=evil, version=evil))
        skill = {"id": evil, "name": evil, "description": evil, "tags": [evil, "ok"] * 5}
        return {**card, "skills": [{**skill, "examples": ["fine", evil * 2]}] * 20}

    seen, _ = looked(tmp_path, prepare)

    assert len(seen.title) <= 200
    assert len(seen.about) <= 4000
    assert (seen.tags, seen.examples) == (("ok",), ("fine",))
    shown = msgspec.json.encode(seen).decode()
    assert not any(mark in shown for mark in ("\\u001b", "\u202e", "\u200b"))


@pytest.mark.parametrize(
    "inside",
    ["http://169.254.169.254/a2a", "http://10.0.0.1/", "file:///etc/passwd", "http://[::1%25lo]/"],
)
def test_a_card_cannot_send_us_inside(tmp_path, inside):
    def prepare(host: Host) -> Any:
        one = AgentInterface(url=inside, protocol_binding="JSONRPC", protocol_version="1.0")
        return as_json(card_for(host.url, supported_interfaces=[one]))

    with pytest.raises(UsageError):
        looked(tmp_path, prepare)


def test_a_token_goes_to_the_url_it_was_given_for_and_to_nobody_else(tmp_path):
    async def work(house: House) -> Any:
        async with agent() as far, agent(at=far.url) as near:
            met, seen = await house.meet(near.url, headers={"Authorization": "Bearer hush"})
            return near.requests, far.requests, repr(seen), repr(met), repr(vars(met._cards))

    near, far, *shown = in_house(tmp_path, work)

    assert near[0][1]["authorization"] == "Bearer hush"
    assert far
    assert not any("authorization" in headers for _, headers in far)
    assert "hush" not in shown[0] + shown[1]


def test_an_agent_that_wants_to_know_us_says_so_at_once(tmp_path):
    def prepare(host: Host) -> Any:
        host.shut = True
        return as_json(card_for(host.url))

    with pytest.raises(NotAllowed, match="wants to know who asks"):
        looked(tmp_path, prepare)


def test_a_url_that_is_something_else_is_said_to_be(tmp_path):
    with pytest.raises(UsageError, match="no A2A agent and no MCP server"):
        looked(tmp_path, lambda host: host.pages.update({"/": "<html>"}))
    with pytest.raises(UsageError, match="not a kind"):
        looked(tmp_path, lambda _: None, kind="soap")
    with pytest.raises(UsageError, match="--local"):
        looked(tmp_path, lambda host: as_json(card_for(host.url)), local=False)


@pytest.mark.parametrize("path", ["/a2a", "/.well-known/agent-card.json", "/", ""])
def test_the_agent_is_found_by_its_endpoint_its_card_or_its_site(tmp_path, path):
    async def work(house: House) -> Any:
        async with agent() as there:
            return (await house.meet(there.url + path))[1].title

    assert in_house(tmp_path, work) == "Painter"
