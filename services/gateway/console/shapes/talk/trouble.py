"""What a person can do about a model that gives no answer, in words. Pure.

The reasons are the cortex's own sentences; each is looked for by what it says, and a sentence that
isn't known gets what always holds.
"""

from __future__ import annotations

from typing import Final, NamedTuple

UNANSWERED: Final = ("I could not answer: ", "I can't answer yet: ")
"""How a message begins in which an agent says that it has no answer."""


class Remedy(NamedTuple):
    """A sentence, and the page that helps."""

    text: str
    page: str = ""
    """Below the console's path; empty: none does."""
    named: str = ""
    """What the page is called."""


_KEPT: Final = "Your message is kept."
_REMEDIES: Final[dict[str, Remedy]] = {
    "is not asked for": Remedy(
        "It failed again and again, and is left alone for a while.", "/health", "Health"
    ),
    "can't be reached": Remedy(
        "Is its server running, and the network there?", "/health", "Health"
    ),
    "API key": Remedy("The key isn't taken: look at which is read.", "/models", "Models"),
    "does not know the model": Remedy("Name one that its server has.", "/models", "Models"),
    "may not spend": Remedy("The provider's account is empty: only its owner can fill it."),
    "limits the rate": Remedy(f"That passes by itself. {_KEPT}"),
    "overloaded": Remedy(f"That passes by itself. {_KEPT}"),
    "daily limit": Remedy(f"There is a button for as much again. {_KEPT}", "/cost", "Cost"),
    "did not answer within": Remedy(
        "It may still be loading, or be too large for its machine: a smaller one answers sooner.",
        "/models",
        "Models",
    ),
    "fell silent": Remedy(f"Its server may be overloaded. {_KEPT}", "/health", "Health"),
    "timed out": Remedy(f"Its server may be overloaded. {_KEPT}", "/health", "Health"),
    "too long for the model": Remedy(
        "Go on in a new conversation, or with a model that reads more.",
        "/conversations",
        "Conversations",
    ),
}


def remedy_of(reason: str) -> Remedy:
    """Return what to do about a reason.

    >>> remedy_of("the model's server can't be reached").page
    '/health'
    >>> remedy_of("something new").text
    'Your message is kept.'
    """
    found = (remedy for words, remedy in _REMEDIES.items() if words in reason)
    return next(found, Remedy(_KEPT))


def remedy_for(text: str) -> Remedy | None:
    """Return what to do about a message in which an agent says that it has no answer; None: it
    says something else.

    >>> remedy_for("I could not answer: the daily limit of $1.00 is reached").named
    'Cost'
    >>> remedy_for("I could answer: yes")
    """
    for start in UNANSWERED:
        if text.startswith(start):
            return remedy_of(text.removeprefix(start))
    return None
