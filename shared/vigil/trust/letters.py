"""The texts of letters: what its person vouches for, and what later loops see closed. Pure.

A letter has no record of its own. Whoever names it says which turn holds it, and the digest of its
text; so each who reads the turn can find that text, and none can pass for another's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from ..contracts import (
    Attachment,
    AttachmentBlock,
    Block,
    ExternalBlock,
    Row,
    TaskBlock,
    TextBlock,
    TimerBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from ..contracts.history import LetterHead
from ..subjects import token_of


class LetterContent(NamedTuple):
    """What somebody else had a part in, in a block of a row."""

    what: str
    """In the words of an envelope."""
    text: str
    source: str = ""
    """Who let it in, of an event."""


def digest_of(text: str) -> str:
    """Return what tells the text of a letter from every other."""
    return token_of("letter", text)


def digest_of_file(file: Attachment) -> str:
    """Return what tells a file from every other, and from each text."""
    return token_of("file", file.hash)


def letter_in(block: Block) -> LetterContent | None:
    """Return what a block tells that content from outside had a part in; None: it tells nothing of
    others, or it's a result, an answer or a file."""
    match block:
        case ExternalBlock(event=event) if not event.is_trusted:
            letter = LetterContent(f"an event from {event.source}", event.content, event.source)
        case TaskBlock() if block.is_tainted:
            text = f"{block.tool}: {block.title}\n{block.content}"
            letter = LetterContent("what you were told by another session of yours", text)
        case TimerBlock(follow_up=follow_up) if follow_up.is_tainted:
            letter = LetterContent(
                "a follow-up of yours", f"{follow_up.reason}\n{follow_up.message or ''}"
            )
        case _:
            return None
    return letter._replace(text=letter.text.strip())


def answered_in(row: Row) -> str:
    """Return what an answer says, with the calls in it: their arguments were chosen by who had
    read. Empty: it says nothing."""
    return "\n".join(text for block in row.blocks if (text := _answered(block)))


def _answered(block: Block) -> str:
    match block:
        case TextBlock(text=text):
            return text.strip()
        case ToolUseBlock(name=name, input=given):
            return f"{name} {msgspec.json.encode(given).decode()}"
        case _:
            return ""


def text_of(rows: Iterable[Row], head: LetterHead) -> str | None:
    """Return the text of a letter, whole, from the rows of its turn; of a file what it is. None:
    they hold no such text."""
    texts = (text for row in rows for digest, text in _texts(row) if digest == head.digest)
    return next(texts, None)


def _texts(row: Row) -> Iterator[tuple[str, str]]:
    if row.role == "assistant":
        text = answered_in(row)
        yield digest_of(text), text
        return
    for block in row.blocks:
        if isinstance(block, AttachmentBlock):
            yield digest_of_file(block.file), block.file.in_words
        elif isinstance(block, ToolResultBlock):
            yield digest_of(block.content), block.content
        elif (letter := letter_in(block)) is not None:
            yield digest_of(letter.text), letter.text
