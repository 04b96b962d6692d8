"""Signals: the log, told at the level of what happened (SPEC C-4).

`sources` are the streams that are told. `projection` maps a record of a conversation to its
signals, `children` a turn of a branch or a worker, `board` an approval or a job, `memories` a
record of what is remembered; `patterns` looks at the newest signals of each person. All are pure.
`tail` finds out how far SIGNALS got, `projector` moves it on.
"""

from .projector import Projector

__all__ = ["Projector"]
