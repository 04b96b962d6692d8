"""The plan on the launcher's command line: words ``key=value`` up to a ``--``.

No JSON, because reading it would take a third of the time of a start.
"""

from __future__ import annotations


class LaunchPlan:
    """What is to be given up, and what is to be started."""

    def __init__(self) -> None:
        self.variables: list[str] = []
        self.limits: dict[str, int] = {}
        self.uid: int | None = None
        self.workspace = "/"
        self.filter = ""
        """The kind of the filter of system calls; empty: none."""
        self.rules: dict[str, list[str]] = {}
        """Landlock's: what may be read, written, and used as a device; empty: none."""
        self.parent: int | None = None
        """Who starts it, if there are no namespaces: then it has to end everything by itself."""
        self.command: list[str] = []

    def take(self, key: str, value: str) -> None:
        """Take one word. Raises: ValueError."""
        if key == "variable":
            self.variables.append(value)
        elif key in ("read", "write", "device"):
            self.rules.setdefault(key, []).append(value)
        elif key in ("workspace", "filter"):
            setattr(self, key, value)
        elif key in ("uid", "parent"):
            setattr(self, key, int(value))
        else:
            self.limits[key] = int(value)


def plan_of(words: list[str]) -> LaunchPlan:
    """Read a plan.

    >>> plan = plan_of(["uid=7", "read=/usr", "files_open=9", "--", "ls", "-l"])
    >>> plan.uid, plan.rules, plan.limits, plan.command
    (7, {'read': ['/usr']}, {'files_open': 9}, ['ls', '-l'])
    """
    plan = LaunchPlan()
    end = words.index("--")
    for word in words[:end]:
        key, _, value = word.partition("=")
        plan.take(key, value)
    plan.command = words[end + 1 :]
    return plan
