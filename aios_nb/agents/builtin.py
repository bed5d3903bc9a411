"""The agents every node comes with. They answer their owner and are not published."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

from aios_nb.agents.calc import calculate
from aios_nb.agents.context import AsyncContext, ThreadContext
from aios_nb.agents.definition import Definition, describe
from aios_nb.envelope import AgentRow
from aios_nb.errors import AgentFailed

if TYPE_CHECKING:
    from aios_nb.agents.library.librarian import Librarian

BUILTIN_NAMES = frozenset({"echo", "clock", "calc", "concierge", "librarian"})
RECOMMENDED = 5
LISTED = 20
_ABOUT_SHOWN = 160

_OFFSET = re.compile(r"(?:utc|gmt)?\s*([+-])(\d{1,2})(?::?(\d{2}))?", re.IGNORECASE)
_FILLER = re.compile(
    r"a|and|at|clock|current|currently|date|day|exact|get|give|hour|in|is|it|me|moment|my|now|of"
    r"|please|right|s|show|tell|the|there|this|time|today|what|whats|when",
    re.IGNORECASE,
)
_ABOUT_SITE = re.compile(
    r"^\W*(|help|hi|hello|hey|hallo|(and )?who are you|what (is|can) (this|you|it)\b.*"
    r"|(describe|about|tell me about) (this|the|your) (site|node|place)|list|agents"
    r"|(what|which) agents (are|do you|does)\b.*)\W*$",
    re.IGNORECASE,
)


def builtin_agents(
    site_name: str,
    own_rows: Callable[[], Sequence[AgentRow]],
    librarian: Callable[[], Librarian] | None = None,
) -> list[Definition]:
    """Their definitions, for a node of that name; ``own_rows`` lists what its owner offers.

    ``librarian`` makes that one when it is first asked.
    """
    concierge = _make_concierge(site_name, own_rows)
    return [
        describe(
            echo,
            about="Answers with your own words",
            tags=["test"],
            examples=["hello"],
            access="private",
            idempotent=True,
        ),
        describe(
            clock,
            about="Tells the time, here or in another time zone",
            tags=["time", "date"],
            examples=["now", "Europe/Berlin", "UTC+5:30"],
            access="private",
            idempotent=True,
        ),
        describe(
            calc,
            about="Calculates: + - * / ^ %, brackets, roots, logarithms, sines, factorials",
            tags=["math", "arithmetic"],
            examples=["what is 2 * (3 + 4)?", "sqrt(2)", "15% of 240"],
            access="private",
            idempotent=True,
        ),
        describe(
            concierge,
            about="Describes this site and recommends agents for a task",
            tags=["help", "search"],
            examples=["what is this?", "who can help me?"],
            access="private",
            idempotent=True,
        ),
        describe(
            _make_librarian(librarian or _some_librarian),
            about="Finds passages in the notebooks and text files of a folder you name",
            tags=["search", "files", "notebooks"],
            examples=["look in ~/notes", "where did I fit the decay curve?"],
            access="private",
            idempotent=True,
            concurrency=1,
        ),
    ]


async def echo(text: str) -> str:
    return text


async def calc(text: str) -> tuple[str, int | float]:
    return calculate(text)


# clock ---------------------------------------------------------------------------------


def clock(text: str) -> tuple[str, dict[str, Any]]:
    """In a thread: the first look at the system's list of zones reads hundreds of files."""
    zone, label = _zone(text)
    now = datetime.now(UTC).astimezone(zone)
    offset = now.isoformat(timespec="seconds")[19:]
    said = f"{now:%A}, {now.day} {now:%B %Y}, {now:%H:%M:%S} {label or now.tzname()} (UTC{offset})"
    data = {"iso": now.isoformat(timespec="milliseconds"), "unix": round(now.timestamp(), 3)}
    return said, {**data, "zone": label or str(now.tzname())}


def _zone(text: str) -> tuple[tzinfo | None, str]:
    """The zone a text names; (None, "") is the node's own."""
    asked = " ".join(text.split()).strip(" ?!.,")
    offset = _OFFSET.fullmatch(asked) or re.search(_OFFSET.pattern + r"$", asked, re.IGNORECASE)
    if offset is not None:
        return _fixed(offset)
    words = re.findall(r"[A-Za-z][A-Za-z0-9_+/-]*", asked)
    names = _zone_names()
    for length in (3, 2, 1):
        for at in range(len(words) - length + 1):
            key = "_".join(words[at : at + length]).lower()
            if key in names and (len(words) == 1 or not _FILLER.fullmatch(key)):
                return ZoneInfo(names[key]), names[key]
            if key in ("utc", "gmt", "z"):
                return UTC, "UTC"
    wrong = [word for word in words if not _FILLER.fullmatch(word)]
    if not wrong:
        return None, ""
    place = " ".join(wrong)[:60]
    close = difflib.get_close_matches("_".join(wrong).lower(), names, n=3, cutoff=0.6)
    hint = " or ".join(dict.fromkeys(names[key] for key in close))
    raise AgentFailed(
        f"there is no time zone {place!r}",
        hint=f"did you mean {hint}?" if hint else "for example Europe/Berlin, Tokyo or UTC+2",
    )


def _fixed(offset: re.Match[str]) -> tuple[tzinfo, str]:
    sign, hours, minutes = offset[1], int(offset[2]), int(offset[3] or 0)
    if hours > 14 or minutes > 59:  # noqa: PLR2004 - the widest offset in use, and an hour
        raise AgentFailed("an offset goes from UTC-14:00 to UTC+14:00")
    east = timedelta(hours=hours, minutes=minutes)
    return timezone(east if sign == "+" else -east), f"UTC{sign}{hours:02d}:{minutes:02d}"


@cache
def _zone_names() -> dict[str, str]:
    """Zones by full name and by city, lower case."""
    zones = sorted(available_timezones())
    cities = {zone.rpartition("/")[2].lower(): zone for zone in reversed(zones) if "/" in zone}
    return {**cities, **{zone.lower(): zone for zone in zones}}


# concierge -----------------------------------------------------------------------------


def _make_concierge(
    site_name: str, own_rows: Callable[[], Sequence[AgentRow]]
) -> Callable[..., Any]:
    def describe_site() -> str:
        rows = own_rows()
        lines = [f"This is the AgentSite **{site_name}**."]
        if rows:
            lines.append(f"It offers {len(rows)} agent{'s' if len(rows) != 1 else ''}:")
            lines.append("\n".join(_line(row) for row in rows[:LISTED]))
            if len(rows) > LISTED:
                lines.append(f"… and {len(rows) - LISTED} more.")
        else:
            lines.append("It offers no agents of its own yet: put `@aios.agent` above a function.")
        lines.append("Describe a task, and I name the agents that fit.")
        return "\n\n".join(lines)

    async def concierge(text: str, ctx: AsyncContext) -> tuple[str, dict[str, Any]]:
        if _ABOUT_SITE.match(text):
            rows = list(own_rows())
            return describe_site(), {"agents": [_brief(row) for row in rows]}
        found = await ctx.search(text, RECOMMENDED + 1)
        fit = [row for row in found if row.name != "concierge"][:RECOMMENDED]
        if not fit:
            return (
                f"I know no agent for that. Try other words.\n\n{describe_site()}",
                {"agents": []},
            )
        best = fit[0]
        said = "For that I would ask:" if len(fit) > 1 else "For that I know one agent:"
        how = f"In a chat write `@{best.name} …`; in a notebook `%aios ask {best.name} …`."
        lines = "\n".join(_line(row) for row in fit)
        return f"{said}\n\n{lines}\n\n{how}", {"agents": [_brief(row) for row in fit]}

    return concierge


def _line(row: AgentRow) -> str:
    why = f" ({_short(row.why)})" if row.why else ""
    return f"- `{row.id}`: {_short(row.about) or row.title or row.name}{why}"


def _short(text: str) -> str:
    """Others' words on one line: they are data, not layout."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _ABOUT_SHOWN else line[: _ABOUT_SHOWN - 1] + "…"


def _brief(row: AgentRow) -> dict[str, str]:
    return {"id": row.id, "about": _short(row.about), "why": _short(row.why)}


# librarian -----------------------------------------------------------------------------


def _make_librarian(hire: Callable[[], Librarian]) -> Callable[..., Any]:
    """A stand-in: importing the library takes longer than all the other agents together."""
    hired = cache(hire)

    def librarian(text: str, ctx: ThreadContext) -> tuple[str, dict[str, Any]]:
        return hired().answer(text, ctx)

    return librarian


def _some_librarian() -> Librarian:
    from aios_nb.agents.library.librarian import Librarian

    return Librarian()
