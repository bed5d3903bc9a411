"""What a process has used so far, as Linux tells it; None on other systems."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

_SCHEDULER_CLOCK = 2


def process_ns(pid: int) -> int | None:
    """Nanoseconds that all threads of a process, ended ones included, have had a core.

    Linux keeps a clock per process. Its number is made of the process id (the same that the C
    library's ``clock_getcpuclockid`` gives); adding up ``/proc/PID/task/*/schedstat`` would lose
    the time of threads that have ended.
    """
    if sys.platform != "linux":
        return None
    try:
        return time.clock_gettime_ns((~pid << 3) | _SCHEDULER_CLOCK)
    except OSError:
        return None


def used_ns(before: int | None, after: int | None) -> int | None:
    """What was used between two readings."""
    return None if before is None or after is None else after - before


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
