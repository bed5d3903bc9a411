"""An address is not taken from further away than it reaches."""

from __future__ import annotations

import time

import pytest

from aios_nb.config import Limits
from aios_nb.hub.catalogue import Catalogue, Offered
from aios_nb.identity import Identity
from aios_nb.records import Scope, node_record, sign_record

NOW_MS = int(time.time() * 1000)
PLACES = {
    Scope.LOOPBACK: "127.0.0.1",
    Scope.PRIVATE: "10.0.0.7",
    Scope.GLOBAL: "93.184.216.34",
}
WIDTH = list(Scope)


@pytest.mark.parametrize("told", Scope)
@pytest.mark.parametrize("over", Scope)
def test_a_node_record_is_taken_from_as_far_as_it_reaches(told: Scope, over: Scope):
    catalogue = Catalogue(
        "main",
        "a" * 32,
        Limits(),
        now_ms=lambda: NOW_MS,
        allowed=lambda _: False,
        scope_of_node=lambda _: Scope.GLOBAL,
    )
    identity = Identity.generate()
    record = node_record(
        net="main",
        node=identity.node_id,
        name="n",
        scope=told,
        endpoints=[("http", PLACES[told], 80)],
        seq=NOW_MS,
        epoch=NOW_MS,
        now_ms=NOW_MS,
    )

    offered = catalogue.offer(sign_record(identity, record).to_bytes(), over)

    fits = WIDTH.index(told) >= WIDTH.index(over)
    assert offered is (Offered.NEW if fits else Offered.REFUSED)
    assert (catalogue.node_record(identity.node_id) is not None) == fits
