from __future__ import annotations

import asyncio
import threading

import pytest

from aios_nb.bench import storeload
from aios_nb.bench.cell import Cell
from aios_nb.bench.spec import Broken


def test_every_way_stores_what_it_acknowledged(tmp_path) -> None:
    taken = asyncio.run(storeload.compare(tmp_path, rounds=1, seconds=0.01))
    assert set(taken) == {"one", "thread", "store", "batch"}
    assert all(window.replies > 0 for windows in taken.values() for window in windows)


def test_a_row_that_was_acknowledged_and_not_stored_is_noticed(tmp_path, monkeypatch) -> None:
    class Forgetful(storeload.OneByOne):
        async def write(self, row: storeload.Row) -> None:
            del row
            await asyncio.sleep(0)

    monkeypatch.setitem(storeload.WAYS, "one", (Forgetful, 2, 1))
    with pytest.raises(Broken, match="rows acknowledged, 0 stored"):
        asyncio.run(storeload.compare(tmp_path, rounds=1, seconds=0.01))


@pytest.mark.parametrize("kind", Cell().kinds)
def test_a_cell_takes_up_what_it_is_asked_and_ends(kind: str) -> None:
    cell = Cell()
    thread = threading.Thread(target=cell.run)
    cell.ask(kind)
    thread.start()
    try:
        while kind != "idle" and cell.count < 2:
            assert thread.is_alive()
    finally:
        cell.end()
        thread.join(30)
    assert not thread.is_alive()
