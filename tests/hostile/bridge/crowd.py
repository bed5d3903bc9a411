"""People with phones who write and count what comes back."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

from aios_bots.core.pairing import Role
from aios_nb.bridges.bot import Bot
from tests.hostile.nodes import NodeProcess
from tests.telegram.botapi import BotApi, Person

BETWEEN_S = 3.1
"""People take their time: who writes more often is told to slow down."""
WORD = re.compile(r"m\d{5}")
"""Every message is one word that no other message is."""


class Phone:
    """Somebody, what they said to one agent, and what they see of its answers."""

    def __init__(self, api: BotApi, number: int, agent: str) -> None:
        self.agent = agent
        self.person: Person = api.person(f"Person {number}")
        self.said: list[str] = []
        self.sender = f"tg:{api.bot.id}:{self.person.id}"
        self._api = api

    def says(self, word: str) -> None:
        self.said.append(word)
        self.person.says(word)

    def shows(self) -> list[tuple[str, str]]:
        """The messages with answers, top down: of which word, and what they say now."""
        messages = list(self.person.chat().messages.values())
        return [
            (found[0], message.words)
            for message in messages
            if message.sender is self._api.bot and (found := WORD.findall(message.words))
        ]

    @property
    def unanswered(self) -> set[str]:
        whole = {word for word, text in self.shows() if text.endswith(f"{word}, all of it")}
        return set(self.said) - whole


class Crowd:
    """All of them. ``write`` goes round."""

    def __init__(self, api: BotApi, chats: int, slow: int = 4) -> None:
        """Every ``slow``-th talks to an agent that writes slowly; 0: none does."""
        self.api = api
        self.phones = [
            Phone(api, number, "writer" if slow and number % slow == 0 else "parrot")
            for number in range(chats)
        ]
        self._written = 0

    def come_in(self, bot: Bot) -> None:
        """Be let in by codes, and choose whom to talk to; a bridge has to be at work."""
        for phone in self.phones:
            phone.person.starts(bot.pair(Role.MEMBER).code)
            phone.person.says(f"/chat {phone.agent}")
        for phone in self.phones:
            self.api.wait(lambda phone=phone: f"You talk to {phone.agent}" in self._read(phone))
        self.api.clock.skip(60)

    def _read(self, phone: Phone) -> str:
        return self.api.record.transcript(phone.person.id)

    def write(self, count: int) -> None:
        for _ in range(count):
            place = self._written % len(self.phones)
            if not place:
                self.api.clock.skip(BETWEEN_S)
            self.phones[place].says(f"m{self._written:05}")
            self._written += 1

    @property
    def unanswered(self) -> int:
        return sum(len(phone.unanswered) for phone in self.phones)

    def repeats(self, moments: list[float]) -> dict[tuple[int, int], int]:
        """Messages that were there already, by how many of the moments were over, and chat."""
        seen: Counter[str] = Counter()
        found: defaultdict[tuple[int, int], int] = defaultdict(int)
        for call in self.api.record.of("sendMessage"):
            words = WORD.findall(str(call.params.get("text", "")))
            if not call.effect or not words:
                continue
            seen[words[0]] += 1
            if seen[words[0]] > 1:
                found[sum(moment <= call.at for moment in moments), call.chat_id or 0] += 1
        return dict(found)


def conversations(node: NodeProcess) -> dict[str, list[dict[str, Any]]]:
    """The messages in every person's conversation, by sender id."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in node.call("chat.list", limit=1000)["conversations"]:
        talk, after, rows = row["conversation"], 0, []
        while True:
            page = node.call("chat.history", conversation=talk, after=after, limit=5000)
            rows += page["messages"]
            if not page["more"]:
                break
            after = page["messages"][-1]["seq"]
        said = [row for row in rows if row["kind"] == "message"]
        people = {row["sender"]["id"] for row in said if row["sender"]["type"] == "human"}
        for who in people:
            assert who not in found, "somebody is in two conversations"
            found[who] = said
    return found
