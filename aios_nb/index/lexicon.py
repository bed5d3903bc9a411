"""The words of the documents in tantivy, in memory.

Words come one by one from ``text.py``, so nothing in a text is read as query syntax.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tantivy

from aios_nb.index.spelling import slips_in
from aios_nb.index.terms import BOOSTS, JOINED, JOINED_BOOST, TEXT, Entry, Term, WordsOf

NEAR_DOCUMENTS = 8
"""How many documents are looked through for a word that was meant."""
COMPLETIONS = 8
NAMED_MAX = 1000
WRITER_BYTES = 15_000_000
"""The least that tantivy takes."""


class Lexicon:
    """Is a ``terms.Words``."""

    def __init__(self, words_of: WordsOf, boosts: Mapping[str, float] = BOOSTS) -> None:
        self._boosts = boosts
        self._words_of = words_of
        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("row", indexed=True, fast=True)
        for field in BOOSTS:
            builder.add_text_field(field, tokenizer_name="stems", index_option="freq")
        builder.add_text_field(JOINED, tokenizer_name="plain", index_option="freq")
        self._schema = builder.build()
        self._index = tantivy.Index(self._schema)
        spaces = tantivy.Tokenizer.whitespace()
        stemmer = tantivy.Filter.stemmer("english")
        self._stems = tantivy.TextAnalyzerBuilder(spaces).filter(stemmer).build()
        self._index.register_tokenizer("stems", self._stems)
        self._index.register_tokenizer("plain", tantivy.TextAnalyzerBuilder(spaces).build())
        # One thread: with more, equal documents would stand in another order at each build.
        self._writer = self._index.writer(WRITER_BYTES, 1)
        self._searcher = self._index.searcher()

    def __len__(self) -> int:
        return self._searcher.num_docs

    def put(self, row: int, entry: Entry) -> None:
        self._writer.add_document(
            tantivy.Document(
                row=row,
                name=" ".join(entry.names),
                tags=" ".join(entry.tags),
                text=" ".join([*entry.names, *entry.tags, *entry.rest]),
                joined=entry.joined,
            )
        )

    def drop(self, row: int) -> None:
        self._writer.delete_documents_by_term("row", row)

    def commit(self) -> None:
        self._writer.commit()
        self._index.reload()
        self._searcher = self._index.searcher()

    def stems(self, found: Sequence[str]) -> list[str]:
        return list(self._stems.analyze(" ".join(found)))

    def having(self, stem: str) -> int:
        return self._searcher.doc_freq(TEXT, stem)

    def alike(self, typed: str, stem: str) -> Iterable[str]:
        begun = self._searcher.terms_with_prefix(TEXT, typed, limit=COMPLETIONS)
        query = tantivy.Query.term_set_query(self._schema, TEXT, [word for word, _ in begun])
        if not begun:
            if not (most := slips_in(typed)):
                return
            query = tantivy.Query.fuzzy_term_query(self._schema, TEXT, stem, most)
        for row in self._rows(query, NEAR_DOCUMENTS):
            yield from self._words_of(row)

    def named(self, name: str) -> list[int]:
        query = tantivy.Query.term_query(self._schema, JOINED, name, "freq")
        return list(self._rows(query, NAMED_MAX)) if name else []

    def search(self, terms: Sequence[Term], names: Sequence[str], limit: int) -> dict[int, float]:
        parts = [
            self._part(field, term.stem, boost * term.sureness)
            for term in terms
            for field, boost in self._boosts.items()
        ]
        parts += [
            self._part(JOINED, name, JOINED_BOOST)
            for name in names
            if self._searcher.doc_freq(JOINED, name)
        ]
        return self._rows(tantivy.Query.boolean_query(parts), limit) if parts else {}

    def _part(self, field: str, word: str, boost: float) -> tuple[tantivy.Occur, Any]:
        query = tantivy.Query.term_query(self._schema, field, word, "freq")
        if boost != 1.0:
            query = tantivy.Query.boost_query(query, boost)
        return tantivy.Occur.Should, query

    def _rows(self, query: Any, limit: int) -> dict[int, float]:
        found = self._searcher.search(query, limit, count=False).hits
        rows: Any = self._searcher.fast_field_values("row", [address for _, address in found])
        return {row: score for row, (score, _) in zip(rows, found, strict=True)}
