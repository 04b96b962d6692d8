"""The core: what a session decides. Pure: no clock, no I/O, no randomness, no logging.

`fold` takes one event, `take` what is queued, `conclude` a model's answer, `fail` its failure;
each returns a `Draft`, which the engine commits as one turn. What becomes of a conversation that
grows too long, or pauses, is decided in `context`, of calls in `tools`, and of jobs, other sessions
and requests to the person in `work`; what a loop waits for of these is in `pending`. The policy
lives here and nowhere else, so it is tested by properties, and a recorded session folded again
gives the same turns.
"""

from .conclusion import answered, conclude, fail
from .context.compaction import CompactionPlan, summarise
from .context.compaction import drop as drop_oldest
from .context.compaction import fail as fail_to_summarise
from .context.compaction import seen as seen_cut
from .context.window import Window
from .draft import Draft
from .draft.inputs import moment_at
from .draft.policy import Moment, Policy
from .fold import (
    begin_takeover,
    cause_of,
    end_lost,
    fold,
    give_up,
    is_early,
    owes,
    poison,
    take,
)
from .home import announce
from .queue import head

__all__ = [
    "CompactionPlan",
    "Draft",
    "Moment",
    "Policy",
    "Window",
    "announce",
    "answered",
    "begin_takeover",
    "cause_of",
    "conclude",
    "drop_oldest",
    "end_lost",
    "fail",
    "fail_to_summarise",
    "fold",
    "give_up",
    "head",
    "is_early",
    "moment_at",
    "owes",
    "poison",
    "seen_cut",
    "summarise",
    "take",
]
