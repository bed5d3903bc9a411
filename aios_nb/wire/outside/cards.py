"""The card of an A2A 1.0 agent, read as data: what it says, in bounds, and what its pin covers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from aios_nb.config import KB
from aios_nb.errors import AgentFailed, TooLarge
from aios_nb.richtext import one_line, plain
from aios_nb.wire.a2a.jws import canonical, without_empty
from aios_nb.wire.places import shown

CARD_LIMIT_BYTES = 256 * KB
WELL_KNOWN = "/.well-known/agent-card.json"
BINDING = "JSONRPC"
TITLE_CHARS = 200
ABOUT_CHARS = 4000
TAGS_MAX, TAG_CHARS = 32, 60
EXAMPLES_MAX, EXAMPLE_CHARS = 20, 500
_SKILLS_TOLD = 20
_DEPTH_MAX = 32
_EMPTY: tuple[Any, ...] = (None, "", [], {})

_TEXT, _FLAG, _CHOICE, _ANY = "text", "flag", "choice", "any"
"""A flag that is false says as little as one that is missing; a choice that is false is one."""
_FLOW = {"tokenUrl": _TEXT, "refreshUrl": _TEXT, "scopes": {"*": _TEXT}}
_SCHEME = {"description": _TEXT}
_NEEDS = [{"schemes": {"*": {"list": [_TEXT]}}}]
_CARD: dict[str, Any] = {
    "name": _TEXT,
    "description": _TEXT,
    "supportedInterfaces": [
        {"url": _TEXT, "protocolBinding": _TEXT, "tenant": _TEXT, "protocolVersion": _TEXT}
    ],
    "provider": {"url": _TEXT, "organization": _TEXT},
    "version": _TEXT,
    "documentationUrl": _TEXT,
    "capabilities": {
        "streaming": _CHOICE,
        "pushNotifications": _CHOICE,
        "extendedAgentCard": _CHOICE,
        "extensions": [
            {"uri": _TEXT, "description": _TEXT, "required": _FLAG, "params": _ANY}
        ],
    },
    "securitySchemes": {
        "*": {
            "apiKeySecurityScheme": {**_SCHEME, "location": _TEXT, "name": _TEXT},
            "httpAuthSecurityScheme": {**_SCHEME, "scheme": _TEXT, "bearerFormat": _TEXT},
            "oauth2SecurityScheme": {
                **_SCHEME,
                "oauth2MetadataUrl": _TEXT,
                "flows": {
                    "authorizationCode": {
                        **_FLOW, "authorizationUrl": _TEXT, "pkceRequired": _FLAG
                    },
                    "clientCredentials": _FLOW,
                    "implicit": {**_FLOW, "authorizationUrl": _TEXT},
                    "password": _FLOW,
                    "deviceCode": {**_FLOW, "deviceAuthorizationUrl": _TEXT},
                },
            },
            "openIdConnectSecurityScheme": {**_SCHEME, "openIdConnectUrl": _TEXT},
            "mtlsSecurityScheme": _SCHEME,
        }
    },
    "securityRequirements": _NEEDS,
    "defaultInputModes": [_TEXT],
    "defaultOutputModes": [_TEXT],
    "skills": [
        {
            "id": _TEXT,
            "name": _TEXT,
            "description": _TEXT,
            "tags": [_TEXT],
            "examples": [_TEXT],
            "inputModes": [_TEXT],
            "outputModes": [_TEXT],
            "securityRequirements": _NEEDS,
        }
    ],
    "iconUrl": _TEXT,
}  # fmt: skip
"""What A2A 1.0 knows of a card. Signatures cover this part; other fields are for other versions."""
_VOLATILE = ("version", "documentationUrl", "iconUrl")
"""May change without making it another agent."""


class NoCard(AgentFailed):
    """What is there is something else."""


class Interface(msgspec.Struct, frozen=True):
    """Where and how the agent is asked."""

    url: str
    tenant: str = ""
    streaming: bool = False


class Card(msgspec.Struct, frozen=True):
    """A card as A2A 1.0 reads it: ``known`` has no field that a signature could leave out."""

    known: dict[str, Any]
    raw: dict[str, Any]
    """As it came, without its signatures."""
    signatures: list[Any]

    @property
    def title(self) -> str:
        return one_line(self.known["name"], TITLE_CHARS)

    @property
    def about(self) -> str:
        told = {self.known["name"], self.known.get("description", "")}
        said = [self.known.get("description", "")]
        for skill in self.known.get("skills", [])[:_SKILLS_TOLD]:
            words = (skill.get("name", ""), skill.get("description", ""))
            said.append(": ".join(word for word in words if word and word not in told))
        return plain("\n".join(filter(None, said)))[:ABOUT_CHARS]

    @property
    def version(self) -> str:
        return one_line(self.known.get("version", ""), TITLE_CHARS)

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self._of_skills("tags", TAG_CHARS))[:TAGS_MAX]

    @property
    def examples(self) -> tuple[str, ...]:
        return tuple(self._of_skills("examples", EXAMPLE_CHARS))[:EXAMPLES_MAX]

    def shown(self) -> dict[str, Any]:
        """All that is known of it, safe to show."""
        cleaned: dict[str, Any] = _cleaned(self.known)
        return cleaned

    def pin(self, key: str) -> str:
        """The hash of what must not change unnoticed, who signs it included."""
        held = {name: value for name, value in self.known.items() if name not in _VOLATILE}
        return hashlib.sha256(canonical([held, key])).hexdigest()

    def _of_skills(self, field: str, most_chars: int) -> Iterable[str]:
        found = (
            one_line(one) for skill in self.known.get("skills", []) for one in skill.get(field, [])
        )
        return dict.fromkeys(one for one in found if 0 < len(one) <= most_chars)


def read_card(content: bytes, url: str) -> Card:
    """The card that came from ``url``. Raises ``AgentFailed`` or ``TooLarge``."""
    if len(content) > CARD_LIMIT_BYTES:
        raise TooLarge(f"the agent card at {shown(url)} has more than {CARD_LIMIT_BYTES} bytes")
    try:
        raw = msgspec.json.decode(content)
        known = _known(raw, _CARD)
        signatures = raw.pop("signatures", None) or []
        canonical(known)  # what has no canonical form can be neither signed nor pinned
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, AttributeError, RecursionError):
        raise NoCard(f"what is at {shown(url)} is no agent card") from None
    if not isinstance(signatures, list) or not known or not known.get("name"):
        raise NoCard(f"what is at {shown(url)} is no agent card")
    if not known.get("supportedInterfaces"):
        version = one_line(str(raw.get("protocolVersion", "")), 20)
        if "url" in raw or version:
            raise _old(version or "0.3")
        raise AgentFailed(f"the agent card at {shown(url)} does not say where its agent is")
    return Card(known, raw, signatures)


def interface_of(card: dict[str, Any]) -> Interface:
    """How to ask the agent of this card; the first way it names that we know.

    Raises ``AgentFailed`` if there is none.
    """
    offered = card.get("supportedInterfaces") or []
    needed = [
        one_line(one.get("uri", ""), TITLE_CHARS)
        for one in card.get("capabilities", {}).get("extensions", [])
        if one.get("required")
    ]
    if needed:
        raise AgentFailed(f"it insists on an extension that is not known here: {needed[0]}")
    ours = [one for one in offered if one.get("protocolBinding", "").upper() == BINDING]
    if not ours:
        named = ", ".join(one_line(one.get("protocolBinding", "?"), 20) for one in offered[:5])
        raise AgentFailed(f"it speaks A2A over {named}; this program speaks A2A over JSON-RPC")
    for one in ours:
        if one.get("protocolVersion", "").partition(".")[0] == "1":
            streaming = card.get("capabilities", {}).get("streaming") is True
            return Interface(one.get("url", ""), one.get("tenant", ""), streaming)
    raise _old(one_line(ours[0].get("protocolVersion", ""), 20) or "0.3")


def _old(version: str) -> AgentFailed:
    return AgentFailed(
        f"it speaks A2A {version}; this program speaks A2A 1.0", hint="ask its owner to update it"
    )


def _known(value: Any, shape: Any, depth: int = _DEPTH_MAX) -> Any:
    """The part of a value that has this shape. Raises ``ValueError`` for another shape."""
    if depth == 0:
        raise ValueError("nested too deep")
    if value is None or shape == _ANY:
        return without_empty(value)
    if isinstance(shape, str):
        if not isinstance(value, str if shape == _TEXT else bool):
            raise ValueError("another type")  # noqa: TRY004
        return None if shape == _FLAG and value is False else value
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise ValueError("no list")  # noqa: TRY004
        items = (_known(one, shape[0], depth - 1) for one in value)
        return [one for one in items if one not in _EMPTY]
    if not isinstance(value, dict):
        raise ValueError("no object")  # noqa: TRY004
    named = dict.fromkeys(value, shape["*"]) if "*" in shape else shape
    fields = ((name, _known(value.get(name), kind, depth - 1)) for name, kind in named.items())
    return {name: one for name, one in fields if one not in _EMPTY}


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {one_line(key): _cleaned(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_cleaned(one) for one in value]
    return plain(value) if isinstance(value, str) else value
