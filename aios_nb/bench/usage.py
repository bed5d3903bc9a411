"""What a process has used so far, read from Linux's ``/proc``; None on other systems."""

from __future__ import annotations

import os
from pathlib import Path


def thread_ns(pid: int) -> dict[int, int] | None:
    """Nanoseconds on a core so far, by thread."""
    times: dict[int, int] = {}
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            try:
                times[int(task.name)] = int((task / "schedstat").read_bytes().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                continue  # a thread that ended while we looked
    except FileNotFoundError:
        return None
    return times or None


def used_ns(before: dict[int, int] | None, after: dict[int, int] | None) -> int | None:
    """Core time between two readings. A thread that ended in between is not in it."""
    if before is None or after is None:
        return None
    return sum(spent - before.get(thread, 0) for thread, spent in after.items())


def family_s(pid: int) -> float | None:
    """User and system seconds of a process and of the children it has waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return None
    fields = stat.rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float | None:
    """Resident memory, in MB."""
    try:
        statm = Path(f"/proc/{pid}/statm").read_text()
    except FileNotFoundError:
        return None
    return int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
