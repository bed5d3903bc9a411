"""Programs of others for tests: they change, fall silent, and remember what they were asked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from aios_nb.envelope import CatalogEntry, Outcome, Seen, Task
from aios_nb.errors import AgentFailed, Unreachable, UsageError
from aios_nb.ports import ContextMemory, Outsider, Run
from tests.sites import TestSite

ELSEWHERE = "https://sums.example/mcp"


def bring_in(site: TestSite, name: str) -> None:
    """Let there be a program, and under that name an import of it; of no name, none."""
    there = Elsewhere()
    there.programs[ELSEWHERE] = Program("Sums", add="Adds a and b")

    async def only_this() -> None:
        imports = site.rooms.imports
        imports._outside = there
        for row in imports.rows():
            await imports.remove(row.name)

    site.node.run(only_this)
    if name:
        site.call("hub.add", address=ELSEWHERE, name=name)


class Program:
    """A program somewhere: what it is now, whoever looks."""

    def __init__(self, title: str, *, kind: str = "mcp", about: str = "", **tools: str) -> None:
        self.title = title
        self.kind = kind
        self.about = about
        self.tools = tools
        self.up = True
        self.guarded = True
        """Whoever carries tasks to it looks at it once more."""
        self.asked: list[str] = []
        self.looks = 0
        self.came_with: dict[str, Any] = {}

    def seen(self) -> Seen:
        self.looks += 1
        if not self.up:
            raise Unreachable("nobody answers there", reason="no answer")
        tools = [
            {"name": name, "description": said, "input_schema": {"type": "object"}}
            for name, said in self.tools.items()
        ]
        pin = hashlib.sha256(msgspec.json.encode(tools)).hexdigest()
        return Seen(self.title, self.about, ("math",), ("1 + 1",), "7", {"tools": tools}, pin)


class Guest:
    """One end of a connection to a program. Is a ``ports.Outsider``."""

    def __init__(self, address: str | Sequence[str], program: Program) -> None:
        self.address = address
        self.program = program
        self.closed = False

    @property
    def kind(self) -> str:
        return self.program.kind

    async def look(self) -> Seen:
        return self.program.seen()

    def carrier(self, seen: Seen, memory: ContextMemory) -> Trip:
        return Trip(self.program, seen, memory)

    async def close(self) -> None:
        self.closed = True


class Trip:
    def __init__(self, program: Program, seen: Seen, memory: ContextMemory) -> None:
        self._program = program
        self._approved = seen
        self._memory = memory

    async def carry(self, task: Task, run: Run) -> Outcome:
        if self._program.guarded and self._program.seen().pin != self._approved.pin:
            raise AgentFailed("its tools are others now", changed=True)
        run.begin()
        self._program.asked.append(task.text)
        context = self._memory.get(task.conversation)
        if context is None:
            context = f"theirs-{len(self._program.asked)}"
            await self._memory.put(task.conversation, context)
        return Outcome(f"{self._program.title} says {task.text} in {context}")


class Elsewhere:
    """All programs there are, by address. Is a ``ports.Outside``."""

    def __init__(self, *_: object) -> None:
        self.programs: dict[Any, Program] = {}
        self.guests: list[Guest] = []
        self.closed = False

    async def meet(
        self,
        address: str | Sequence[str],
        *,
        kind: str | None = None,
        local: bool = False,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Outsider:
        if _key(address) not in self.programs:
            raise UsageError(f"nothing answers at {address}", hint="tried everything")
        return self.known(address, kind=kind or "", local=local, headers=headers, env=env)

    def known(
        self,
        address: str | Sequence[str],
        *,
        kind: str,
        local: bool = False,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Outsider:
        program = self.programs[_key(address)]
        program.came_with = {"local": local, "headers": headers, "env": env}
        self.guests.append(Guest(address, program))
        return self.guests[-1]

    async def entries(self, url: str, *, local: bool = False) -> Sequence[CatalogEntry]:
        return [
            CatalogEntry(program.title, program.kind, str(address))
            for address, program in self.programs.items()
        ]

    async def close(self) -> None:
        self.closed = True


def _key(address: str | Sequence[str]) -> str | tuple[str, ...]:
    return address if isinstance(address, str) else tuple(address)
