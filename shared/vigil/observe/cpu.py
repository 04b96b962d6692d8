"""What a process took of the CPU: what tells from outside whether it gets anywhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CPU_MIN_S: Final = 0.1
"""So much CPU, in seconds, is more than waiting takes."""
_USER, _SYSTEM = 11, 12
"""Which of the fields behind the name, in ``/proc/PID/stat`` (man 5 proc)."""


def cpu_of(pid: int) -> float:
    """Return what a process took so far, in seconds; 0: the system doesn't tell.

    >>> cpu_of(os.getpid()) >= 0, cpu_of(0)
    (True, 0.0)
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        fields = stat.rpartition(")")[2].split()
        return (int(fields[_USER]) + int(fields[_SYSTEM])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
