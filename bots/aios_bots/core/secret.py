"""A bot's token, kept out of everything that is shown, saved or logged.

Who has the token is the bot. It leaks by being printed: a library logs the address it calls, an
object shows itself in a notebook, which is saved; an exception quotes the request.
"""

from __future__ import annotations

import hmac
import logging
import re
import stat
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakSet

from aios_nb.errors import AiosError, UsageError

MASK = "TOKEN"
NOISY = ("httpx", "httpcore", "telegram", "telegram.ext")
"""Loggers of libraries that write the addresses they call."""
TOKEN_ENV = "TELEGRAM_BOT_TOKEN"  # noqa: S105 - the name of it
_SHAPE = re.compile(r"(?<!\d)(?<!sha)\d+(?::|%3A)[A-Za-z0-9_-]{30,}", re.IGNORECASE)
"""A hash, sha256:…, is none."""
_TOKEN = re.compile(r"(\d{1,20}):[A-Za-z0-9_-]{1,200}")
_KNOWN: WeakSet[Secret]
_FILE_MAX_BYTES = 4096


class Secret:
    """A token that never shows itself: only ``reveal`` gives it."""

    __slots__ = ("__weakref__", "_value")

    def __init__(self, value: str) -> None:
        value = value.strip()
        if _TOKEN.fullmatch(value) is None:
            raise UsageError(
                "that is not a bot token", hint="BotFather gives one such as 123456:ABC…"
            ) from None
        self._value = value
        _KNOWN.add(self)

    def reveal(self) -> str:
        """The token itself, for the one call that needs it."""
        return self._value

    @property
    def account(self) -> str:
        """The bot's id, which is no secret."""
        return self._value.partition(":")[0]

    def __repr__(self) -> str:
        return f"<token of bot {self.account}>"

    __str__ = __repr__

    def __format__(self, _spec: str) -> str:
        return repr(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value, other._value)

    def __hash__(self) -> int:
        return hash(self.account)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, _memo: Any) -> Secret:
        return self

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        raise TypeError("a token is not pickled")


_KNOWN = WeakSet()


def load(environ: Mapping[str, str], file: Path | None = None) -> Secret:
    """The token from the environment, else from a file that only its owner can read."""
    if environ.get(TOKEN_ENV):
        return Secret(environ[TOKEN_ENV])
    if file is None:
        raise UsageError(
            "no bot token", hint=f"put it into {TOKEN_ENV}, or into a file of mode 600"
        )
    try:
        mode = file.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageError(f"others can read {file.name}", hint=f"chmod 600 {file}")
        with file.open("rb") as opened:
            text = opened.read(_FILE_MAX_BYTES).decode("ascii", "replace")
    except OSError as error:
        raise UsageError(
            f"cannot read {file.name}: {error.strerror}", hint="it should hold the bot token alone"
        ) from error
    return Secret(text)


def scrubbed(text: str) -> str:
    """The text without any token: of the known ones, and of what looks like one."""
    for secret in list(_KNOWN):
        value = secret.reveal()
        for form in (value, value.replace(":", "%3A"), value.replace(":", "%3a")):
            if form in text:
                text = text.replace(form, MASK)
    return _SHAPE.sub(MASK, text)


def described(error: BaseException) -> str:
    """What an exception says, for people: without a token, in one line."""
    said = " ".join(scrubbed(str(error)).split())
    if isinstance(error, AiosError) and said:  # one of ours is a sentence
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


class TokenFilter(logging.Filter):
    """Takes tokens out of what is logged: message, arguments, exception, stack, extras."""

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            said = record.getMessage()
        except Exception:  # noqa: BLE001 - arguments that do not fit; the handler will say so
            said = str(record.msg)
            record.args = tuple(scrubbed(repr(arg)) for arg in _listed(record.args))
        clean = scrubbed(said)
        if clean != said:
            record.msg, record.args = clean, None
        if record.exc_info and not record.exc_text:
            text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            clean = scrubbed(text)
            if clean != text:
                record.exc_text, record.exc_info = clean, None
        for name in ("exc_text", "stack_info"):
            text = getattr(record, name)
            if text:
                setattr(record, name, scrubbed(text))
        for name, value in list(vars(record).items()):
            if name not in _OWN and isinstance(value, str):
                setattr(record, name, scrubbed(value))
        return True


_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message"}


def _listed(args: Any) -> Iterable[Any]:
    return args if isinstance(args, tuple) else () if args is None else (args,)


def guard_logs() -> Callable[[], None]:
    """Keep tokens out of the logs from now on; gives what undoes it.

    Libraries that write addresses are quiet below WARNING, and what they or anybody else writes
    is filtered at every handler of the root logger that is there now.
    """
    guard = TokenFilter()
    undo: list[Callable[[], None]] = []
    for name in NOISY:
        logger = logging.getLogger(name)
        undo.append(lambda logger=logger, level=logger.level: logger.setLevel(level))  # type: ignore[misc]
        if logger.getEffectiveLevel() < logging.WARNING:
            logger.setLevel(logging.WARNING)
        logger.addFilter(guard)
        undo.append(lambda logger=logger: logger.removeFilter(guard))  # type: ignore[misc]
    for handler in [*logging.getLogger().handlers, *_last_resort()]:
        handler.addFilter(guard)
        undo.append(lambda handler=handler: handler.removeFilter(guard))  # type: ignore[misc]

    def undone() -> None:
        while undo:
            undo.pop()()

    return undone


def _last_resort() -> list[logging.Handler]:
    return [logging.lastResort] if logging.lastResort is not None else []
