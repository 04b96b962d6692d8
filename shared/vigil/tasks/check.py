"""What a task may hold: each refusal names the field and the reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..contracts import BoardTask
from ..errors import InvalidInput
from ..fields.schema import NO_NUL, SAID_LINE, length
from ..subjects import check_part
from ..texts.glyphs import is_printable

TITLE_LENGTH_MAX: Final = 200
DESCRIPTION_LENGTH_MAX: Final = 8_000
FORM: Final = {
    "title": length(TITLE_LENGTH_MAX, SAID_LINE),
    "description": length(DESCRIPTION_LENGTH_MAX, NO_NUL),
}
"""What requests are told of these, as schemas have it."""
OUTSIDE_MAX: Final = 100
"""Of an owner's 200 open tasks, those that content from outside had a part in."""


def check(task: BoardTask) -> BoardTask:
    """Return a task that may be kept. Raises: InvalidInput."""
    check_part("owner", task.owner)
    check_part("agent", task.agent)
    title = check_text("title", task.title, TITLE_LENGTH_MAX)
    if not title.strip() or not is_printable(title):
        raise InvalidInput("title", "must be one line that says something")
    check_text("description", task.description, DESCRIPTION_LENGTH_MAX)
    return task


def admitted(task: BoardTask, others: Iterable[BoardTask]) -> BoardTask:
    """Return a new task that may be made beside the owner's open ones: content from outside takes
    half of their room at most. Raises: InvalidInput."""
    marked = sum(one.is_tainted for one in others)
    if task.is_tainted and marked >= OUTSIDE_MAX:
        reason = f"there are {marked} that content from outside had a part in; end some first"
        raise InvalidInput("task", reason)
    return task


def check_text(field: str, text: str, length_max: int) -> str:
    """Return a text that is no longer than it may be, and can be stored. Raises: InvalidInput."""
    if len(text) > length_max:
        raise InvalidInput(field, f"must have at most {length_max} characters, has {len(text)}")
    if "\0" in text:
        raise InvalidInput(field, "must not contain NUL")
    return text
