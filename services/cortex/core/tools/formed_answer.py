"""An answer that is to have a form, such as a plan, a report, or decisions. Pure.

One that doesn't have it is refused whole, and the model is asked once more, with what was wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from vigil.contracts import Row
from vigil.errors import InvalidInput

from ...model import ModelAnswer
from ..context.offers import TRUNCATING, cut
from ..draft import Draft

T = TypeVar("T")

ASKED_MAX: Final = 2
"""How often the model is asked: a second time with what was wrong with the first answer."""
SHOWN_BYTES_MAX: Final = 8 * 1024
"""The most bytes of an answer that can't be used and is shown to the model again."""


class Unusable(NamedTuple):
    """An answer without the form."""

    text: str
    reason: str
    is_last: bool
    """Whether the model isn't asked again."""


def take(
    draft: Draft,
    answer: ModelAnswer,
    field: str,
    read: Callable[[str], T],
    asked_max: int = ASKED_MAX,
) -> T | Unusable:
    """Count an answer and read it, or have the model asked once more.

    Args:
        field: what the answer is to be, as a refusal names it.
        read: raises InvalidInput if it isn't that; the reason is for the model to read.
    """
    draft.update_loop(calls=draft.loop.calls + 1, retries=0)
    draft.usage.append(answer.usage)
    draft.was_swayed = draft.was_swayed or draft.sway.is_outside
    text = answer.text
    try:
        return read(_whole(answer, text, field))
    except InvalidInput as error:
        refused = Unusable(text, error.reason, draft.loop.calls >= asked_max)
    if not refused.is_last:
        draft.row_text("assistant", "agent", cut(text.strip(), SHOWN_BYTES_MAX) or "(nothing)")
        draft.row_text("user", "system", refused.reason)
        draft.outcome = "continued"
    return refused


def _whole(answer: ModelAnswer, text: str, field: str) -> str:
    """Return the text of an answer that is one. Raises: InvalidInput."""
    if answer.stop_reason == "refusal":
        raise InvalidInput(field, "the model declined to answer")
    if answer.stop_reason in TRUNCATING:
        raise InvalidInput(field, "the answer was cut off; it must be shorter")
    return text


def refused_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the refused answer with its reason, if there is one: the newest rows are those.

    Nothing else that a session of the cortex's own holds comes from the system.
    """
    is_refused = bool(rows) and rows[-1].source == "system" and rows[-1].role == "user"
    return tuple(rows[-2:]) if is_refused else ()
