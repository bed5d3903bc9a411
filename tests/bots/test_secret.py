"""The token shows itself nowhere."""

from __future__ import annotations

import copy
import io
import json
import logging
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from aios_bots.core.secret import (
    TOKEN_ENV,
    Secret,
    TokenFilter,
    described,
    guard_logs,
    load,
    scrubbed,
)
from aios_nb.errors import UsageError

TOKEN = "123456:" + "AbC-_9" * 6
SHORT = "42:short"


@pytest.fixture
def secret() -> Secret:
    return Secret(TOKEN)


@pytest.fixture
def written() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger with one filtered handler, and what it wrote."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(message)s %(extra)s", defaults={"extra": ""}))
    handler.addFilter(TokenFilter())
    logger = logging.getLogger("test.secret")
    logger.addHandler(handler)
    logger.propagate = False
    yield logger, out
    logger.removeHandler(handler)
    logger.propagate = True


@pytest.mark.parametrize(
    "show", [repr, str, "{}".format, "{:>50}".format, "%s".__mod__, ascii, lambda s: repr([s])]
)
def test_no_way_of_printing_shows_it(secret: Secret, show) -> None:
    assert TOKEN not in show(secret)
    assert TOKEN.split(":")[1] not in show(secret)
    assert "123456" in show(secret)


@pytest.mark.parametrize("save", [pickle.dumps, json.dumps, msgspec.json.encode, vars])
def test_no_way_of_saving_takes_it(secret: Secret, save) -> None:
    with pytest.raises(TypeError):
        save(secret)


def test_it_is_given_to_who_asks_and_to_copies(secret: Secret) -> None:
    assert secret.reveal() == TOKEN
    assert copy.deepcopy({"a": secret})["a"] is copy.copy(secret) is secret
    assert secret == Secret(TOKEN)
    assert secret != Secret(SHORT)
    assert secret.account == "123456"


@pytest.mark.parametrize("text", ["", "hello", "987654", "12:a b", "x:" + "a" * 40])
def test_what_is_no_token_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        Secret(text)
    assert not text or text not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        f"POST https://api.example/bot{TOKEN}/getMe",
        TOKEN.replace(":", "%3A"),
        f"a {TOKEN} b {TOKEN}",
    ],
)
def test_what_looks_like_a_token_is_taken_out(text: str) -> None:
    clean = scrubbed(text)
    assert TOKEN.split(":")[1] not in clean
    assert "TOKEN" in clean


def test_a_known_token_is_taken_out_whatever_it_looks_like() -> None:
    assert scrubbed("42:other /bot42:short/x") == "42:other /bot42:short/x"
    kept = Secret(SHORT)
    assert scrubbed("42:other /bot42:short/x") == "42:other /botTOKEN/x"
    assert kept.account == "42"


def test_other_texts_stay_as_they_are() -> None:
    text = "12:30 http://127.0.0.1:8080/x sha256:" + "a" * 64
    assert scrubbed(text) == text


@pytest.mark.parametrize(
    "write",
    [
        lambda log: log.error("bot" + TOKEN),  # noqa: G003 - as others write it
        lambda log: log.error("calling %s", f"http://a/bot{TOKEN}/x"),
        lambda log: log.error("calling %(url)s", {"url": TOKEN}),
        lambda log: log.error("odd %s %s", TOKEN),  # noqa: PLE1206 - and this
        lambda log: log.error("plain", extra={"extra": TOKEN}),
        lambda log: log.error("plain", exc_info=ValueError(f"no route to {TOKEN}")),
        lambda log: log.error("plain", stack_info=True),  # this very line is in the stack
    ],
)
def test_no_log_has_it(written, monkeypatch: pytest.MonkeyPatch, write, capsys) -> None:
    logger, out = written
    monkeypatch.setattr(logging, "raiseExceptions", False)
    write(logger)
    assert TOKEN not in out.getvalue()
    assert TOKEN not in capsys.readouterr().err


def test_an_exception_is_logged_with_its_traceback_and_without_the_token(written) -> None:
    logger, out = written
    try:
        int(f"cannot reach bot{TOKEN}/getMe")
    except ValueError:
        logger.exception("while polling")
    assert "Traceback" in out.getvalue()
    assert "cannot reach botTOKEN/getMe" in out.getvalue()


def test_other_records_are_left_alone(written) -> None:
    logger, out = written
    logger.error("%d of %s", 3, "four")
    assert out.getvalue().strip() == "3 of four"


def test_a_described_exception_is_one_clean_line() -> None:
    assert described(OSError(f"bot{TOKEN}:\n refused")) == "OSError: botTOKEN: refused"
    assert described(TimeoutError()) == "TimeoutError"


def test_guarded_logs_are_quiet_about_addresses_and_can_be_undone() -> None:
    root, noisy, out = logging.getLogger(), logging.getLogger("httpx"), io.StringIO()
    handler, level = logging.StreamHandler(out), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    undo = guard_logs()
    try:
        noisy.info("POST /bot%s", TOKEN)
        noisy.warning("retry /bot%s", TOKEN)
        logging.getLogger("elsewhere").info("url=%s", TOKEN)
        assert out.getvalue() == "retry /botTOKEN\nurl=TOKEN\n"
        undo()
        assert not handler.filters
        assert not noisy.filters
        assert noisy.level == logging.NOTSET
    finally:
        undo()
        root.removeHandler(handler)
        root.setLevel(level)


def test_the_token_comes_from_the_environment_or_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    assert load({TOKEN_ENV: SHORT}, file).reveal() == SHORT
    assert load({}, file).reveal() == TOKEN


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        load({}, file)


@pytest.mark.parametrize("file", [None, Path("missing")])
def test_without_a_token_the_error_says_where_to_put_it(file: Path | None) -> None:
    with pytest.raises(UsageError) as refused:
        load({}, file)
    assert TOKEN not in "".join(traceback.format_exception(refused.value))
