"""What a model sees of an imported conversation. Pure.

What somebody vouches for is shown as it was said. Else it is an event from outside, which later
exchanges see closed (ADR 45), whoever it says that said it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ..contracts import AttachmentBlock, ExternalBlock, ExternalPayload, Row, TextBlock
from ..contracts.past.words import PastWords

CONTENT_MAX: Final = 16_000
"""Characters of a message that nobody vouches for that a row holds, as of an event from outside."""


class PastRow(NamedTuple):
    """One message as a row of the history."""

    words: PastWords
    row: Row

    @property
    def is_letter(self) -> bool:
        """Whether it is closed to whoever doesn't open it."""
        return self.words.is_tainted


def rows_of(messages: Iterable[PastWords]) -> list[PastRow]:
    """Return the messages as rows, from the first that the agent didn't say: no model takes a
    history that begins with an answer."""
    found = [PastRow(one, _row(one)) for one in messages]
    first = next((i for i, one in enumerate(found) if one.row.role == "user"), len(found))
    return found[first:]


def _row(words: PastWords) -> Row:
    if words.role == "agent":
        blocks = (TextBlock(text=words.text),)
        return Row(role="assistant", source="agent", blocks=blocks, at=words.at)
    if words.is_tainted:
        told = ExternalPayload(
            source=f"import:{words.origin}", content=words.text[:CONTENT_MAX], kind="message"
        )
        left_out = max(len(words.text) - CONTENT_MAX, 0)
        block = ExternalBlock(event_id=words.id, event=told, left_out=left_out)
        return Row(role="user", source="external", blocks=(block,), at=words.at)
    files = tuple(AttachmentBlock(file=file) for file in words.attachments)
    text = TextBlock(text=words.text)
    return Row(role="user", source="person", blocks=(text, *files), at=words.at, by=words.by)


def shown_from(sequences: Sequence[int], sizes: Sequence[int], *, count: int, size: int) -> int:
    """Return the sequence of the first message of a conversation that its history begins with.

    Args:
        sequences: of all messages, in their order; one at least.
        sizes: of their texts, in characters.
        count: at most so many are shown, and
        size: at most so many characters; the newest is in any case.

    >>> shown_from([3, 4, 5], [10, 10, 10], count=9, size=20)
    4
    """
    first, left = len(sequences) - 1, size - sizes[-1]
    while first > 0 and len(sequences) - first < count and left >= sizes[first - 1]:
        first -= 1
        left -= sizes[first]
    return sequences[first]
