from __future__ import annotations

import pytest

from aios_nb.index.documents import Document
from aios_nb.index.plain import PlainWords
from aios_nb.index.terms import entry_of, read


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("The tempreature of Rome", "The temperature of Rome"),
        ("Maß der tempreature", "mass der temperature"),
        ("the temperature", "the temperature"),
    ],
)
def test_a_slip_is_put_right_where_it_stands(asked, meant) -> None:
    known = PlainWords(lambda _: ())
    known.put(0, entry_of(Document("thermometer", about="measures the temperature of Rome")))
    assert read(asked, known).text == meant
