"""The core: what a session decides. Pure: no clock, no I/O, no randomness, no logging.

`fold` takes one event, `take` what is queued, `conclude` a model's answer, `fail` its failure;
each returns a `Draft`, which the engine commits as one turn. What becomes of a conversation that
grows too long, or pauses, is decided in `compaction` and `pausing`. The policy lives here and
nowhere else, so it is tested by properties, and a recorded session folded again gives the same
turns.
"""

from .compaction import Plan, summarise
from .compaction import drop as drop_oldest
from .compaction import fail as fail_to_summarise
from .conclusion import conclude, fail
from .draft import Draft
from .fold import begin_takeover, cause_of, fold, give_up, owes, poison, take
from .policy import Moment, Policy
from .queue import head
from .window import Window

__all__ = [
    "Draft",
    "Moment",
    "Plan",
    "Policy",
    "Window",
    "begin_takeover",
    "cause_of",
    "conclude",
    "drop_oldest",
    "fail",
    "fail_to_summarise",
    "fold",
    "give_up",
    "head",
    "owes",
    "poison",
    "summarise",
    "take",
]
