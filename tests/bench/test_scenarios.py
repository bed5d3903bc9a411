from __future__ import annotations

import pytest

from aios_nb.bench.generator import Generator
from aios_nb.bench.report import table
from aios_nb.bench.results import INFORMATION, Bench
from aios_nb.bench.scenarios import (
    SCENARIOS,
    beside,
    crowd,
    dht,
    gossip,
    interop,
    joiner,
    levels,
    links,
    notebook,
    phone,
    rpc,
    search,
    startup,
    streams,
    village,
)
from aios_nb.bench.spec import Missing

TINY = {
    rpc: {"WARM_UP_S": 0.02, "WINDOW_S": 0.05, "CONCURRENCIES": (3,)},
    interop: {"CONCURRENCY": 3},
    beside: {"BUSY_S": 0.1, "ALONE_S": 0.02, "STORE_S": 0.05},
    levels: {"LOADS": ((6, 3),), "ROUNDS_MIN": 1, "SPAWN_LOAD": (4, 2), "QUICK_STACK": (2, 2)},
    dht: {"QUICK_SIZES": (8,), "QUICK_GETS": 6, "STOCK_AFTER_KILL": 1},
    gossip: {"QUICK_ON_SOCKETS": (6,), "QUICK_IMAGINED": (10, 20), "QUICK_SECONDS": 1},
    joiner: {"QUICK_COUNT": 40},
    crowd: {"WINDOW_S": 0.1, "SETTLE_S": 0.1},
    startup: {"LOAD_S": 0.05},
    links: {"IDLE_LINKS": 5, "SETTLE_S": 0.0, "WINDOW_S": 0.05, "STREAMS": ((1, 400), (3, 20))},
    search: {"QUICK_COUNTS": (300,), "QUICK_QUESTIONS": 30},
    notebook: {"ASKED": 3},
    phone: {
        "CHATS": 4,
        "QUICK_S": 0.3,
        "QUICK_BACKLOG": 8,
        "BACKLOG_CHATS": 2,
        "QUICK_PACED_S": 2,
        "PACED_CHATS": 20,
        "QUICK_FLOOD_S": 0.4,
        "INBOX_ROWS": 10,
    },
    village: {"QUICK_NODES": 3, "STOPPED_S": 0.5},
    streams: {"SHAPES": ((1, 20), (3, 5))},
}
"""A look at every line instead of a measurement."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_gets_right_answers_from_a_real_node(scenario, monkeypatch) -> None:
    for module, values in TINY.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)
    with Generator() as generator:
        try:
            result = scenario.run(Bench(generator=generator, rounds=1, quick=True))
        except Missing as missing:
            pytest.skip(str(missing))
    assert result.raw
    assert any(row.target for row in result.rows) == (scenario.target != INFORMATION)
    assert "nan" not in table(result)
