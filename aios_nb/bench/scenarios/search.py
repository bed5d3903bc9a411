"""Finding agents: how well, how fast, and how much memory that takes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from aios_nb.bench import contestants, labelled
from aios_nb.bench.labelled import Labelled, Search
from aios_nb.bench.many import FullText, Measured
from aios_nb.bench.ratios import spread
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.bench.spec import Broken, percentile
from aios_nb.index.documents import Document
from aios_nb.index.text import clean

COUNTS = (1_000, 10_000, 100_000)
QUICK_COUNTS = (1_000, 10_000)
QUESTIONS = 2_000
QUICK_QUESTIONS = 200
ROUNDS_MAX = 5
GAIN_MIN = 1.08
SLOWER_MAX = 1.0
JUDGED_COUNT = 100_000
_BM25 = ("FTS5", "BM25")


def _search(bench: Bench) -> Result:
    rows, raw = _quality(QUICK_QUESTIONS if bench.quick else QUESTIONS)
    notes = ["nDCG@10 on the half of the questions on which no weight was chosen."]
    if labelled.METATOOL.is_dir():
        notes.append("Two needs: the share of such questions with an agent for each among ten.")
    else:
        notes.append("**MetaTool is not beside this checkout: that set was left out.**")
    for count in QUICK_COUNTS if bench.quick else COUNTS:
        measured = _many(count, min(bench.rounds, ROUNDS_MAX))
        rows.append(_speed(measured))
        raw[f"{count} records"] = measured
    notes.append(
        "Latency: real questions over made-up records, the index and SQLite FTS5 (any of the words,"
        " in memory) one right after the other for each question."
    )
    return Result(rows=rows, raw=raw, notes=notes)


def _many(count: int, rounds: int) -> Measured:
    printed = contestants.printed(["-m", "aios_nb.bench.many", str(count), str(rounds)])
    return msgspec.json.decode(printed, type=Measured)


# Quality -------------------------------------------------------------------------------


def ways(documents: Mapping[str, Document]) -> dict[str, Search]:
    """The same documents behind each way to search them."""
    from aios_nb.index.lexicon import Lexicon
    from aios_nb.index.meaning import Meaning
    from aios_nb.index.model import Model
    from aios_nb.index.opening import open_index
    from aios_nb.index.terms import TEXT, entry_of, read

    keys = list(documents)
    lexicon = Lexicon(lambda _: (), boosts={TEXT: 1.0})
    meaning = Meaning(Model.load())
    index = open_index()
    for row, (key, document) in enumerate(documents.items()):
        lexicon.put(row, entry_of(document))
        meaning.put(row, document)
        index.put(key, document)
    lexicon.commit()
    index.refresh()
    full_text = FullText(list(documents.values()))

    def bm25(question: str, limit: int) -> list[str]:
        found = lexicon.search(read(clean(question), lexicon).terms, (), limit)
        return [keys[row] for row in found]

    def vectors(question: str, limit: int) -> list[str]:
        near = meaning.near(clean(question), len(keys))
        cosines = near.cosines(near.rows)
        best = sorted(zip(cosines, near.rows, strict=True), reverse=True)
        return [keys[row] for _, row in best[:limit]]

    return {
        "FTS5": lambda question, limit: [keys[at - 1] for at in full_text.search(question, limit)],
        "BM25": bm25,
        "vectors": vectors,
        "fusion": lambda question, limit: [hit.key for hit in index.search(question, limit)],
    }


def quality(labels: Labelled, count: int) -> dict[str, float]:
    """nDCG@10 of each way on held-out questions, and what came of those with two needs."""
    found = ways(labels.documents)
    held = labelled.few([each for each in labels.questions if each.is_held_out], count)
    scores = {way: labelled.ndcg(held, search) for way, search in found.items()}
    two = [each for each in labels.both if each.is_held_out]
    scores["two needs"] = labelled.both_found(two, found["fusion"])
    return scores


def _quality(count: int) -> tuple[list[Row], dict[str, Any]]:
    sets = {name: labelled.own(name) for name in labelled.OWN}
    if (metatool := labelled.metatool()) is not None:
        sets["metatool"] = metatool
    scores = {name: quality(labels, count) for name, labels in sets.items()}
    rows = [_set_row(name, each) for name, each in scores.items()]
    means = {
        way: statistics.mean(each[way] for each in scores.values())
        for way in next(iter(scores.values()))
    }
    mean = _set_row("all sets", means)
    mean.target = f"≥ {GAIN_MIN:g} x BM25 on average"
    mean.met = means["fusion"] >= GAIN_MIN * _best_words(means)
    return [*rows, mean], {"quality": scores}


def _best_words(scores: Mapping[str, float]) -> float:
    """The better of the two ways to count words."""
    return max(scores[way] for way in _BM25)


def _set_row(name: str, scores: Mapping[str, float]) -> Row:
    if not all(0 <= score <= 1 for score in scores.values()):
        raise Broken(f"a score that is none: {dict(scores)}")
    words = _best_words(scores)
    return Row(
        line=f"nDCG@10, {name}",
        figures={
            **{way: figure(score, 3) for way, score in scores.items()},
            "fusion x BM25": figure(scores["fusion"] / words, 2),
        },
        target="not below BM25",
        met=scores["fusion"] >= words,
    )


# Speed ---------------------------------------------------------------------------------


def _speed(measured: Measured) -> Row:
    ratios = [
        _middle(ours) / _middle(theirs)
        for ours, theirs in zip(measured.hybrid, measured.fts5, strict=True)
    ]
    ratio = spread(ratios)
    ours = sorted(time for each in measured.hybrid for time in each)
    theirs = sorted(time for each in measured.fts5 for time in each)
    row = Row(
        line=f"{measured.count:,} records",
        figures={
            "p50 ms": figure(percentile(ours, 0.5), 2),
            "p99 ms": figure(percentile(ours, 0.99), 2),
            "FTS5 p50 ms": figure(percentile(theirs, 0.5), 2),
            "FTS5 p99 ms": figure(percentile(theirs, 0.99), 2),
            "p50 x FTS5": str(ratio),
            "index MB": figure(measured.index_mb),
            "texts MB": figure(measured.texts_mb),
            "fixed MB": figure(measured.fixed_mb),
            "ms per record": figure(measured.build_s * 1e3 / measured.count, 2),
        },
    )
    if measured.count >= JUDGED_COUNT:
        row.target = f"p50 ≤ {SLOWER_MAX:g} x FTS5"
        row.met = ratio.median <= SLOWER_MAX
    return row


def _middle(times: Sequence[float]) -> float:
    return percentile(sorted(times), 0.5)


SEARCH = Scenario(
    name="search",
    title="Finding agents",
    target=(
        f"fusion ≥ {GAIN_MIN:g} x BM25 on average and below it on no set;"
        f" p50 at {JUDGED_COUNT:,} records ≤ {SLOWER_MAX:g} x FTS5"
    ),
    why="People describe what they need in their own words, and wait for the answer.",
    run=_search,
)
