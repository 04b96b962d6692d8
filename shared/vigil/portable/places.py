"""What becomes of each place where a person's records are, when they take their data along. Pure.

The places are those that an erasing knows (`vigil.erasure.theirs`): a stream that gets its line
there has one here, or a test fails.
"""

from __future__ import annotations

from typing import Final

from ..subjects import token_of

TAKEN: Final = {
    "SESSIONS": "what was said in conversations, and what was decided there",
    "SYSTEM": "what agents did for them by themselves",
    "BOARD": "tasks, goals, preferences, rows of the timetable, requests, jobs, grants, actions",
    "SLOTS": "what became of each time of the timetable",
    "MAILS": "what was noted of mails",
    "MEMORIES": "memories, also those that they gave to teams",
    "DEAD": "what could not be done",
    "KV_BUDGETS": "what was spent",
    "FILES": "what was attached to messages",
    "KV_CONFIG": "settings, contacts, sources they trust, titles, paired addresses",
}
"""What is written, by stream."""
LEFT_OUT: Final = {
    "TIMERS": "alarms of the broker's, made of what the conversations hold",
    "SIGNALS": "made of the other records",
    "EVENTS": "not taken in yet: it comes into a conversation in a moment",
    "UPLOADS": "for a day; a file that a message names is in FILES",
    "KV_CURSORS": "how far a device has read",
    "KV_LEASES": "which service is at work for them right now",
}
"""What isn't, by stream, and why."""
SECRETS: Final = "push.browser."
"""How keys of CONFIG begin that hold secrets: of browsers that are notified."""


def is_setting_of(user: str, key: str) -> bool:
    """Whether an entry of CONFIG is a person's, by its key, and no secret.

    >>> is_setting_of("ann", "person." + token_of("person", "ann"))
    True
    >>> is_setting_of("bob", "person." + token_of("person", "ann"))
    False
    """
    theirs = {token_of("person", user), token_of(user)}
    return not theirs.isdisjoint(key.split(".")) and not key.startswith(SECRETS)
