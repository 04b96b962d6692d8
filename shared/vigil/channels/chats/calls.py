"""A call of a network's interface that has no result: what that means for a try. Pure."""

from __future__ import annotations

from typing import Any, Final

from ..answers import Answer, NotTaken, Unclear

CALL_S: Final = 20.0
"""For one call, from its beginning to the end of its answer."""
REASON_LENGTH_MAX: Final = 200
WAIT_S_MAX: Final = 10**9
"""Any number may come, also one that no clock goes to."""


class CallFailed(Exception):
    """A call has no result: what that means for a try, and whose fault it is."""

    def __init__(self, answer: Answer, *, is_token_refused: bool = False) -> None:
        super().__init__(answer.reason)
        self.answer = answer
        self.is_token_refused = is_token_refused

    @property
    def is_final(self) -> bool:
        """Return whether another try would end alike."""
        return isinstance(self.answer, NotTaken) and self.answer.is_final

    @property
    def wait_s(self) -> float:
        return self.answer.wait_s if isinstance(self.answer, NotTaken) else 0.0


def rate_limited(asked_s: Any) -> CallFailed:
    """Return what it means that a server asks for a pause, of whatever length.

    >>> rate_limited(7).wait_s, rate_limited("-1").wait_s, rate_limited("nan").wait_s
    (7.0, 0.0, 0.0)
    """
    try:
        asked = float(asked_s)
    except (TypeError, ValueError):
        asked = 0.0
    except OverflowError:
        asked = WAIT_S_MAX if asked_s > 0 else 0.0
    # What is no number is less than none.
    wait_s = min(asked, float(WAIT_S_MAX)) if asked > 0 else 0.0
    return CallFailed(NotTaken(reason=f"429: wait {wait_s:g} s", status=429, wait_s=wait_s))


def token_refused(words: str) -> CallFailed:
    """Return what it means that a server doesn't know a bot's token."""
    reason = f"the server refuses the bot's token: {words}"
    return CallFailed(NotTaken(reason=reason, is_final=True), is_token_refused=True)


def refused(status: int, words: str) -> CallFailed:
    """Return what an answer of a server means that isn't the wanted one.

    One that is in trouble (5xx) may have done all the same what it was asked.
    """
    reason = in_short(f"{status} {words}")
    if status >= 500 or status == 408:
        return CallFailed(Unclear(reason=reason, status=status))
    return CallFailed(NotTaken(reason=reason, status=status, is_final=True))


def in_short(words: object) -> str:
    return " ".join(str(words).split())[:REASON_LENGTH_MAX]
