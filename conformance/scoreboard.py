"""What was asked for and what passed, in one table."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Row:
    """One line: so many of so many, and which did not."""

    title: str
    required: int = 0
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def add(self, name: str, problem: str | None) -> None:
        """A required check and what is wrong; None: it passed."""
        self.required += 1
        if problem is None:
            self.passed += 1
        else:
            self.failed.append(f"{name}: {problem}")
        print("." if problem is None else "F", end="", flush=True)

    @property
    def is_good(self) -> bool:
        """All of it passed, and there was something to pass."""
        return 0 < self.required == self.passed


class Scoreboard:
    """All lines, in the order in which they were begun."""

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def row(self, title: str) -> Row:
        print(f"\n{title} ", end="", flush=True)
        self._rows.append(row := Row(title))
        return row

    @property
    def is_good(self) -> bool:
        return bool(self._rows) and all(row.is_good for row in self._rows)

    def show(self) -> None:
        width = max((len(row.title) for row in self._rows), default=0)
        print("\n")
        for row in self._rows:
            mark = "ok  " if row.is_good else "FAIL"
            remarks = f"   {'; '.join(row.remarks)}" if row.remarks else ""
            score = f"{row.passed:3} of {row.required:3}"
            print(f"{mark}  {row.title:{width}}  {score}{remarks}".rstrip())
            for problem in row.failed:
                print(f"        {problem}")
