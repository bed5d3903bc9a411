"""Finding agents: ``/search``, ``/agents``, ``/agent``, and words typed behind the bot's name."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from aios_bots.core.buttons import Action
from aios_bots.core.desk import rights
from aios_bots.core.desk.page import Page, bold, code
from aios_bots.core.desk.visit import Choice, Visit, cut
from aios_bots.core.model import Hit, Op, Outgoing
from aios_nb.richtext import one_line

PER_PAGE = 5
INLINE_MAX = 20
ABOUT_CHARS = 120
CARD_CHARS = 600
WORDS_MAX_CHARS = 200


async def search(visit: Visit, words: str) -> None:
    if not words.strip():
        visit.say("Tell me what you look for, such as: /search weather")
        return
    page, rows = await _found(visit, words, 0)
    visit.say(page, rows)


async def more(visit: Visit, action: Action) -> None:
    """The next page, in place of the one before."""
    page, rows = await _found(visit, action.words, action.number)
    visit.rewrite(page, rows)
    visit.toast()


async def _found(visit: Visit, words: str, offset: int) -> tuple[Page, list[list[Choice]]]:
    words = one_line(words, WORDS_MAX_CHARS)
    found, rest = await _reached(visit, words, offset)
    if not found:
        return Page(f"Nobody for “{words}”. Try other words; /agents lists those of this node."), []
    page = Page(f"For “{words}”:")
    rows: list[list[Choice]] = []
    for number, row in enumerate(found, offset + 1):
        page.line().line(f"{number}. ", *_lines(visit, row))
        rows.append(_buttons(visit, row))
    if rest:
        rows.append([("More", Action("more", words=words, number=offset + PER_PAGE))])
    return page, rows


async def _reached(visit: Visit, words: str, offset: int) -> tuple[list[rights.Row], bool]:
    """So many from there on, of those that the person may talk to; and whether there are more."""
    limited = visit.person is not None and visit.person.agents and not visit.is_owner
    if not limited:
        answer = await visit.client.call(
            "agents.search", query=words, limit=PER_PAGE, offset=offset
        )
        return answer["agents"], answer["total"] > offset + PER_PAGE
    answer = await visit.client.call("agents.search", query=words, limit=rights.LISTED_MAX)
    mine = [row for row in answer["agents"] if rights.reaches(visit, row["id"])]
    return mine[offset : offset + PER_PAGE], len(mine) > offset + PER_PAGE


async def agents(visit: Visit, _: str = "") -> None:
    rows = await rights.agents(visit)
    if not rows:
        visit.say("No agent of this node is for you yet. /search WORDS looks further.")
        return
    page = Page("Your agents on this node:")
    for row in rows[: 4 * PER_PAGE]:
        page.line("• ", *_lines(visit, row))
    if len(rows) > 4 * PER_PAGE:
        page.line(f"… and {len(rows) - 4 * PER_PAGE} more: /search WORDS")
    page.line()
    page.line(f"Talk to one: /chat {rows[0]['name']}" if visit.may_write else "/search finds more")
    visit.say(page, chat_buttons(visit, rows))


def chat_buttons(visit: Visit, rows: list[rights.Row]) -> list[list[Choice]]:
    """A button for each of the first few, to talk to it."""
    if not visit.may_write:
        return []
    made = [(row["name"], Action("chat", agent=row["id"])) for row in rows[: PER_PAGE + 1]]
    return [made[:3], made[3:]]


async def agent(visit: Visit, name: str) -> None:
    """Who an agent is, and who says so."""
    if not name.strip():
        visit.say("Which one? Such as: /agent calc")
        return
    await _card(visit, rights.meant(visit, name.split(None, 1)[0]))


async def info(visit: Visit, action: Action) -> None:
    """The same by button."""
    await _card(visit, rights.meant(visit, action.agent))
    visit.toast()


async def _card(visit: Visit, ref: str) -> None:
    answer = await visit.client.call("agents.card", agent=ref)
    card = answer["card"]
    agent_id = str(card.get("id") or ref)
    page = Page(bold(cut(str(card.get("title") or card.get("name") or ref), ABOUT_CHARS)))
    if card.get("about"):
        page.line(cut(str(card["about"]), CARD_CHARS))
    page.line()
    for label in ("tags", "examples"):
        said = [cut(str(one), ABOUT_CHARS) for one in card.get(label) or ()]
        if said:
            joined = " · ".join(said) if label == "examples" else ", ".join(said)
            page.line(f"{label}: {cut(joined, CARD_CHARS)}")
    page.line("id: ", code(cut(agent_id, 96)))
    page.line(_signed(visit, agent_id, answer))
    rows = [[("Chat", Action("chat", agent=agent_id))]] if visit.may_write else []
    visit.say(page, rows)


def _signed(visit: Visit, agent_id: str, answer: dict[str, Any]) -> str:
    """Who vouches for a card, in words."""
    node = agent_id.partition("@")[2]
    if node == visit.office.voices.node_id:
        if not answer["verified"]:
            return "from: a program of others that this node passes on, not verified"
        return "from: this node" + (", signed and published" if answer["record"] else "")
    where = f"node {cut(node, 12)}"
    if answer["verified"]:
        return f"from: {where}, signed by it"
    return f"from: {where}, not verified"


def _lines(visit: Visit, row: rights.Row) -> list[Any]:
    """An agent on one line: name, where, what it does."""
    marks = []
    if row["node_id"] != visit.office.voices.node_id:
        marks.append(f"on {cut(row.get('node_name') or row['node_id'], 24)}")
    if row.get("source"):
        marks.append(f"{one_line(row['source'], 10)}, not verified")
    elif not row["verified"]:
        marks.append("not verified")
    if not row["live"]:
        marks.append("may be away")
    where = f" ({', '.join(marks)})" if marks else ""
    about = cut(str(row.get("about") or ""), ABOUT_CHARS)
    return [bold(cut(row["name"], 48)), where, f": {about}" if about else ""]


def _buttons(visit: Visit, row: rights.Row) -> list[Choice]:
    name = cut(row["name"], 24)
    look: Choice = (f"Info {name}", Action("info", agent=row["id"]))
    if not visit.may_write:
        return [look]
    return [(f"Chat {name}", Action("chat", agent=row["id"])), look]


async def inline(visit: Visit) -> None:
    """Public agents for words that somebody types behind the bot's name, in any chat."""
    words = one_line(visit.incoming.text, WORDS_MAX_CHARS)
    found: list[rights.Row] = []
    if words:
        answer = await visit.client.call("agents.search", query=words, limit=INLINE_MAX)
        found = [
            row
            for row in answer["agents"]
            if row["access"] == "public" and rights.reaches(visit, row["id"])
        ]
    hits = [
        Hit(
            id=hashlib.sha256(row["id"].encode()).hexdigest()[:32],
            title=cut(row["name"], 60),
            about=cut(row.get("about") or "", ABOUT_CHARS),
            text=f"{cut(row['name'], 48)}: {cut(row.get('about') or '', ABOUT_CHARS)}\n"
            f"{cut(row['id'], 96)}",
        )
        for row in found
    ]
    visit.answer(
        Outgoing(
            key=f"{visit.key}:answer",
            place=visit.place,
            op=Op.ANSWER,
            target=visit.incoming.answer_to,
            data=msgspec.json.encode(hits).decode(),
        )
    )
