"""How calls fail: with a code, a sentence, and sometimes what to do next."""

from __future__ import annotations

from typing import Any

PREFIXES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    413: "Request Entity Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
}

QUERY_TOO_OLD = "query is too old and response timeout expired or query ID is invalid"
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)


class ApiError(Exception):
    """What the caller gets instead of a result."""

    def __init__(self, code: int, why: str = "", **parameters: Any) -> None:
        self.code = code
        self.description = f"{PREFIXES[code]}: {why}" if why else PREFIXES[code]
        self.parameters = parameters
        super().__init__(self.description)

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "ok": False,
            "error_code": self.code,
            "description": self.description,
        }
        if self.parameters:
            body["parameters"] = self.parameters
        return body


def bad(why: str) -> ApiError:
    return ApiError(400, why)


def forbidden(why: str) -> ApiError:
    return ApiError(403, why)


def flooded(seconds: int) -> ApiError:
    return ApiError(429, f"retry after {seconds}", retry_after=seconds)


def migrated(chat_id: int) -> ApiError:
    why = "group chat was upgraded to a supergroup chat"
    return ApiError(400, why, migrate_to_chat_id=chat_id)
