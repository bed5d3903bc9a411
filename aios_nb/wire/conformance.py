"""The example methods of the JSON-RPC 2.0 specification, for the public suites.

Mounted only by ``--conformance``, on a node that listens on loopback. Open to anyone.
"""

from __future__ import annotations

from typing import Any

from aios_nb.access import Caller, Principal
from aios_nb.params import Nothing, Params
from aios_nb.wire.methods import Method

Number = int | float
_ANYONE = frozenset(Caller)


class Subtraction(Params, frozen=True):
    minuend: Number
    subtrahend: Number


def _subtract(_: Principal, params: Subtraction) -> Number:
    return params.minuend - params.subtrahend


def _sum(_: Principal, numbers: list[Number]) -> Number:
    return sum(numbers)


def _get_data(_: Principal, __: Nothing) -> list[Any]:
    return ["hello", 5]


def _nothing(_: Principal, __: list[Any]) -> None:
    return None


CONFORMANCE: tuple[Method, ...] = (
    Method("subtract", Subtraction, _ANYONE, handler=_subtract),
    Method("sum", list[Number], _ANYONE, handler=_sum),
    Method("get_data", Nothing, _ANYONE, handler=_get_data),
    Method("update", list[Any], _ANYONE, handler=_nothing),
    Method("notify_hello", list[Any], _ANYONE, handler=_nothing),
    Method("notify_sum", list[Number], _ANYONE, handler=_nothing),
)
