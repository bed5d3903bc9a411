"""Questions of which we know the right agents, and how well they were found."""

from __future__ import annotations

import csv
import hashlib
import importlib.resources
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from aios_nb.index.documents import Document

METATOOL = Path(__file__).resolve().parents[3] / "shared/data/metatool"
"""Beside a checkout; an installed package does without."""
OWN = ("names", "paraphrases")
"""Names that repeat the question's words, and texts that say it in other words."""
TOP = 10


class Question(msgspec.Struct, frozen=True):
    text: str
    agents: Sequence[str]
    """All that fit."""

    @property
    def is_held_out(self) -> bool:
        """Whether it belongs to the half on which nothing was chosen."""
        return bool(hashlib.sha256(self.text.encode()).digest()[0] & 1)


class Labelled(msgspec.Struct, frozen=True):
    documents: Mapping[str, Document]
    questions: Sequence[Question]
    """With one need each."""
    both: Sequence[Question]
    """With two needs, and an agent for each."""


class _Agent(msgspec.Struct):
    name: str
    title: str
    about: str
    tags: list[str]
    asked: list[str]


class _Both(msgspec.Struct):
    query: str
    agents: list[str]


class _File(msgspec.Struct):
    agents: list[_Agent]
    both: list[_Both]


class _Two(msgspec.Struct):
    query: str
    tool: list[str]


def own(name: str) -> Labelled:
    """One of the sets that come with the package."""
    data = importlib.resources.files("aios_nb.bench").joinpath("data", f"{name}.json").read_bytes()
    file = msgspec.json.decode(data, type=_File)
    return Labelled(
        {
            agent.name: Document(agent.name, agent.title, agent.about, agent.tags)
            for agent in file.agents
        },
        [Question(text, [agent.name]) for agent in file.agents for text in agent.asked],
        [Question(both.query, both.agents) for both in file.both],
    )


def metatool(folder: Path = METATOOL) -> Labelled | None:
    """MetaTool: 199 tools, questions that need one of them and some that need two."""
    if not folder.is_dir():
        return None
    texts = msgspec.json.decode((folder / "metatool_des.json").read_bytes(), type=dict[str, str])
    with (folder / "metatool_queries.csv").open(newline="", encoding="utf-8") as file:
        lines = [(line["Query"], line["Tool"]) for line in csv.DictReader(file)]
    two = msgspec.json.decode((folder / "metatool_multi.json").read_bytes(), type=list[_Two])
    return Labelled(
        {name: Document(name, about=about) for name, about in texts.items()},
        [Question(text, [tool]) for text, tool in lines if tool in texts],
        [Question(each.query, each.tool) for each in two if texts.keys() >= set(each.tool)],
    )


def few(questions: Sequence[Question], count: int) -> list[Question]:
    """So many of them, always the same, from everywhere."""
    ordered = sorted(questions, key=lambda each: hashlib.sha256(each.text.encode()).digest()[1:])
    return ordered[:count]


Search = Callable[[str, int], Sequence[str]]
"""The keys of the best hits for a question."""


def ndcg(questions: Sequence[Question], search: Search) -> float:
    """How near the right agents are to the top of ten: 1 for always first."""
    return sum(_gain(search(each.text, TOP), each.agents) for each in questions) / len(questions)


def _gain(found: Sequence[str], right: Sequence[str]) -> float:
    gained = sum(1 / math.log2(2 + at) for at, key in enumerate(found[:TOP]) if key in right)
    return gained / sum(1 / math.log2(2 + at) for at in range(min(TOP, len(right))))


def both_found(questions: Sequence[Question], search: Search) -> float:
    """The share of questions with two needs that got an agent for each among ten."""
    met = [set(each.agents) <= set(search(each.text, TOP)) for each in questions]
    return sum(met) / len(met)
