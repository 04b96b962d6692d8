"""Signals: the log, told at the level of what happened (SPEC C-4).

`sources` are the streams that are told: `projection` maps a record of a session to its signals,
`memories` one of what is remembered, and `patterns` looks at the newest signals of each person; all
are pure. `tail` finds out how far SIGNALS got, `projector` moves it on.
"""

from .projector import Projector

__all__ = ["Projector"]
