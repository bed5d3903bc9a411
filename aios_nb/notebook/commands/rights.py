"""``withdraw``, ``block``, ``allow``, ``callers``: who may do what."""

from __future__ import annotations

from aios_nb.errors import AiosError, NoSuchAgent, UsageError
from aios_nb.notebook.commands import Call
from aios_nb.notebook.show.results import Note
from aios_nb.people.naming import whole_node_id
from aios_nb.richtext import one_line
from aios_nb.site import Callers


def withdraw(call: Call) -> Note:
    name, node = call["name"], call.node()
    try:
        node.withdraw(name)
    except NoSuchAgent as error:
        others = [row for row in call.session.roster.rows() if row["name"] == name]
        if others:
            whose = " and ".join(sorted({row["node_name"] or row["node_id"] for row in others}))
            raise UsageError(f"{name} is not yours: {one_line(whose)} offers it") from error
        raise
    return Note(f"{name} is no longer offered")


def block(call: Call) -> Note:
    call.node().block(_node_id(call))
    return Note(f"{call['node']} is shut out; %aios allow lets it in again")


def allow(call: Call) -> Note:
    call.node().allow(_node_id(call))
    return Note(f"{call['node']} may call agents with access known")


def callers(call: Call) -> Callers:
    return call.node().callers()


def _node_id(call: Call) -> str:
    """All of it; of a node that is known by name, the error has it to copy."""
    try:
        return whole_node_id(call["node"])
    except AiosError as error:
        known = [row for row in call.session.roster.nodes() if row["name"] == call["node"]]
        if known:
            ids = " or ".join(str(row["node_id"]) for row in known)
            error.hint = f"a name can be anyone's; by its id it is {ids}"
        raise
