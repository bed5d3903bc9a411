"""What ``doctor`` looks at, each check on its own."""

from __future__ import annotations

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

    def fields(self) -> dict[str, str]:
        return {"about": self.about, "health": self.health, "says": self.says, "fix": self.fix}


def ok(about: str, says: str) -> Check:
    return Check(about, Health.OK, says)


def warn(about: str, says: str, fix: str = "") -> Check:
    return Check(about, Health.WARN, says, fix)


def fail(about: str, says: str, fix: str) -> Check:
    return Check(about, Health.FAIL, says, fix)
