"""Signals: the log, told at the level of what happened (SPEC C-4).

`projection` maps a record to its signals and `patterns` looks at the newest of each person; both
are pure. `tail` finds out how far SIGNALS got, `projector` moves it on.
"""

from .projector import Projector

__all__ = ["Projector"]
