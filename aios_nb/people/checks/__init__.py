"""What ``doctor`` looks at, each check on its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec


class Health(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(msgspec.Struct, frozen=True):
    """One line of the doctor: what was looked at, how it is, what to do."""

    about: str
    health: Health
    says: str
    fix: str = ""
    part: str = "here"
    """Of the board: what is on this machine, or what programs of others find."""

    def fields(self) -> dict[str, str]:
        return {
            "about": self.about,
            "health": self.health,
            "says": self.says,
            "fix": self.fix,
            "part": self.part,
        }


_PARTS = {"here": "This machine and its nodes", "interop": "What programs of others find"}


def board(checks: Sequence[Check]) -> Iterator[tuple[str, list[Check]]]:
    """The checks part by part, each under a title that says how many are well."""
    for part, title in _PARTS.items():
        some = [check for check in checks if check.part == part]
        good = sum(check.health is Health.OK for check in some)
        if some:
            yield f"{title}: {good} of {len(some)}", some


def ok(about: str, says: str) -> Check:
    return Check(about, Health.OK, says)


def warn(about: str, says: str, fix: str = "") -> Check:
    return Check(about, Health.WARN, says, fix)


def fail(about: str, says: str, fix: str) -> Check:
    return Check(about, Health.FAIL, says, fix)
