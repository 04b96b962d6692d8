"""What a person's verdict on a request teaches (SPEC G-3, G-5), and when it proposes a grant. Pure.

An edit teaches the values that the person put in the place of others. One "no" is one "no": a
rejection teaches that such a call isn't wanted only if the person says so ("never"), or if it's the
third in a row of the same call. Nothing is learned from a request that content from outside had a
part in: what was asked then isn't the agent's way of asking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from ..contracts.board import Approval, BoardPreference
from ..contracts.board.preference import Lesson, LessonKind
from ..contracts.effects import canonical
from ..subjects import Scope, token_of
from .check import KEY_LENGTH_MAX, KEY_PATTERN, VALUE_BYTES_MAX, id_of

REJECTED: Final = "rejected"
"""What is noted of a call that the person let not run three times, without a word."""
REJECTIONS: Final = 3
"""So many rejections of equal calls in a row teach that such a call isn't wanted."""
FIELDS_MAX: Final = 3
"""Changed arguments of one request that teach; an edit of more is another call."""
EQUAL: Final = 3
"""So many equal calls that the person let run propose a grant."""
WITHIN: Final = timedelta(days=30)
_KEY: Final = re.compile(KEY_PATTERN[:-1] + r"\Z", re.ASCII)
_NEVER: Final = re.compile(
    r"\bnever\b(?!\W*mind)|\b(?:not|don't|do not) ever\b"
    r"|\b(?:don't|do not|stop) ask(?:ing)? (?:me )?(?:(?:for )?(?:this|that|it) )?"
    r"(?:again|any ?more)\b"
    r"|\bniemals\b|\bnie (?:wieder|mehr)\b|\bfrag (?:mich )?(?:das |danach )?nie\b",
    re.IGNORECASE,
)
"""How people say that a "no" is for good. A bare "nie" isn't among it: in Polish it's just "no"."""


def lessons_of(
    approval: Approval, whose: Scope, others: Iterable[Approval] = ()
) -> tuple[BoardPreference, ...]:
    """Return what a request that was decided teaches about its owner.

    Args:
        others: the newest of the owner's requests for the very same call, this one or not.
    """
    if approval.is_tainted or approval.is_question or approval.decided_at is None:
        return ()
    if approval.state == "rejected":
        return _unwanted(approval, whose, others)
    tool = f"asked.{approval.tool}"
    if approval.state != "edited" or approval.edited is None:
        return ()
    given = approval.edited
    changed = [n for n in given if canonical(given[n]) != canonical(approval.input.get(n))]
    if len(changed) > FIELDS_MAX:
        return ()
    found = (_lesson(approval, whose, f"{tool}.{n}", given[n], "observed") for n in changed)
    return tuple(one for lessons in found for one in lessons)


def _unwanted(
    approval: Approval, whose: Scope, others: Iterable[Approval]
) -> tuple[BoardPreference, ...]:
    """Return that a call isn't wanted, if that can be told: of this call, and not of its tool."""
    said = " ".join(approval.text.split())
    is_for_good = is_never(said)
    if not is_for_good and not _is_third(approval, others):
        return ()
    called = canonical(approval.input)
    key = f"asked.{approval.tool}.{token_of('asked', approval.tool, called.decode())[:8]}"
    value = f"{said if is_for_good else REJECTED}: {called.decode()}"
    return _lesson(approval, whose, key, _cut(value), "said" if is_for_good else "observed")


def is_never(said: str) -> bool:
    """Whether a person's "no" is for good, and not only for now.

    >>> [is_never(said) for said in ("never on Fridays", "Don't ask me again", "nie wieder!")]
    [True, True, True]
    >>> [is_never(said) for said in ("not now", "never mind", "why did you never ask?", "")]
    [False, False, False, False]
    """
    return _NEVER.search(said.replace("\u2019", "'")) is not None and not said.endswith("?")


def _is_third(approval: Approval, others: Iterable[Approval]) -> bool:
    """Whether it is the third time in a row, within `WITHIN`, that the same call was rejected."""
    at = approval.decided_at
    before = {
        one.id: one
        for one in others
        if is_alike(approval, one) and one.decided_at and at and at - WITHIN < one.decided_at <= at
    }
    before[approval.id] = approval
    row = sorted(before.values(), key=lambda one: (one.decided_at or one.asked_at, one.id))
    newest = row[-REJECTIONS:]
    return len(newest) == REJECTIONS and all(one.state == "rejected" for one in newest)


def is_alike(one: Approval, other: Approval) -> bool:
    """Whether a person decided about the same call in both, however, from whatever session."""
    if one.tool != other.tool or other.is_tainted or other.decided_at is None:
        return False
    is_decided = other.state in ("accepted", "edited", "rejected")
    return is_decided and canonical(one.input) == canonical(other.input)


def _lesson(
    approval: Approval, whose: Scope, key: str, value: Any, how: LessonKind
) -> tuple[BoardPreference, ...]:
    """Return it, if it can be kept."""
    key, at = key.lower(), approval.decided_at
    is_short = len(key) <= KEY_LENGTH_MAX and len(msgspec.json.encode(value)) <= VALUE_BYTES_MAX
    if at is None or not is_short or not _KEY.match(key) or value is None or value == "":
        return ()
    text = f"request {approval.name} was {approval.state}"
    lesson = Lesson(how=how, at=at, text=text, cause=approval.id, session_key=approval.session_key)
    return (
        BoardPreference(
            id=id_of(whose, key),
            owner=whose.owner,
            agent=whose.agent,
            category="workflow",
            key=key,
            value=value,
            confidence=0.0,
            learned_from=(lesson,),
            last_confirmed_at=at,
            created_at=at,
        ),
    )


def _cut(text: str) -> str:
    """Return a text that is short enough, whatever its letters take.

    >>> _cut("never"), len(_cut("é" * 2000))
    ('never', 160)
    """
    return text[: VALUE_BYTES_MAX // 6 - 6] if len(text) * 6 > VALUE_BYTES_MAX - 2 else text


# ---------------------------------------------------------------- grants


def run_input(approval: Approval) -> dict[str, Any] | None:
    """Return the arguments of a call that the person let run; None: they didn't, or content from
    outside had a part in it."""
    if approval.is_tainted or approval.is_question:
        return None
    if approval.state == "edited":
        return approval.edited
    return approval.input if approval.state == "accepted" else None


def is_equal(one: Approval, other: Approval) -> bool:
    """Whether a person let the same call run by both, from whatever session."""
    mine, its = run_input(one), run_input(other)
    if mine is None or its is None or one.tool != other.tool:
        return False
    return canonical(mine) == canonical(its)


def proposes(approval: Approval, others: Iterable[Approval], now: datetime) -> bool:
    """Whether a grant is to be proposed after a request: not for what can't be undone.

    Args:
        others: all of the owner's, this one, too.
    """
    if approval.risk == "destructive":
        return False
    equal = {
        one.id
        for one in others
        if is_equal(approval, one) and one.decided_at is not None and now - one.decided_at < WITHIN
    }
    return len(equal) >= EQUAL


def proposal_id(approval: Approval, whose: Scope) -> str:
    """Return what a proposal is called: it is made once for equal calls."""
    called = canonical([approval.tool, run_input(approval)]).decode()
    return token_of("grant-proposal", whose.agent, whose.owner, called)
