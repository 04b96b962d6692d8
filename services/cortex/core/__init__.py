"""The pure core: what a session decides. No clock, no I/O, no randomness, no logging.

`fold` takes one event, `take` what is queued, `conclude` a model's answer, `fail` its failure;
each returns a `Draft`, which the engine commits as one turn. The policy lives here and nowhere
else, so it is tested by properties and a recorded session folded again gives the same turns.
"""

from .draft import Draft
from .fold import begin_takeover, cause_of, fold, give_up, owes, poison, take
from .loop import conclude, fail
from .policy import Moment, Policy
from .waiting import head

__all__ = [
    "Draft",
    "Moment",
    "Policy",
    "begin_takeover",
    "cause_of",
    "conclude",
    "fail",
    "fold",
    "give_up",
    "head",
    "owes",
    "poison",
    "take",
]
