"""Doing: what an agent is, where its code runs, what it may answer with."""

from __future__ import annotations

from aios_nb.agents import inline, threads  # noqa: F401 - they register their engines
from aios_nb.agents.builtin import builtin_agents
from aios_nb.agents.card import Card
from aios_nb.agents.context import AsyncContext, Context, ThreadContext
from aios_nb.agents.decorator import (
    agent,
    collecting,
    declare,
    declared,
    define,
    forget,
    set_sink,
)
from aios_nb.agents.definition import Definition, Shape, describe
from aios_nb.agents.engines import Engine, EngineKind, Job, register, unregister
from aios_nb.agents.host import AgentHost, Hosted
from aios_nb.agents.load import load_agents
from aios_nb.agents.outputs import Answer
from aios_nb.agents.pool import Stopped

__all__ = [
    "AgentHost",
    "Answer",
    "AsyncContext",
    "Card",
    "Context",
    "Definition",
    "Engine",
    "EngineKind",
    "Hosted",
    "Job",
    "Shape",
    "Stopped",
    "ThreadContext",
    "agent",
    "builtin_agents",
    "collecting",
    "declare",
    "declared",
    "define",
    "describe",
    "forget",
    "load_agents",
    "register",
    "set_sink",
    "unregister",
]
