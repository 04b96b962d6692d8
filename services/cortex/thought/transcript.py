"""A part of a conversation in words, for a model that sums it up or looks back on it. Pure.

It is one text, not messages: the model is no party to it. What anybody wrote stands behind bars, so
that nothing in it can pose as a heading, an instruction, or somebody else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, assert_never

from vigil.contracts import (
    AttachmentBlock,
    Block,
    ExternalBlock,
    OpaqueBlock,
    Row,
    TaskBlock,
    TextBlock,
    TimerBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from vigil.texts import excerpt
from vigil.texts.bars import barred

from ..core.draft import Draft
from ..core.draft.profile import TemplateRow
from ..core.tools import formed_answer
from ..prompt_marks import EARLIER, MEMBER, OFFERED, PERSON
from .prompts import line

PIECE_LENGTH_MAX: Final = 16_000
"""Characters of one piece; more of it than is shown has been read by nobody anyway."""
RESULT_LENGTH_MAX: Final = 2_000
"""Characters of a tool's arguments or result: the answer that was made of it matters more."""
"""Before the name, in a session of a team."""
AGENT: Final = "you:"
SHOWN: Final = "you were shown:"
ROWS_MAX: Final = 60
"""Rows of a session that is over, the newest; one of the usual length has fewer."""


def transcript(rows: Iterable[Row], summary: str = "", offered: Sequence[Row] = ()) -> str:
    """Write the rows down, oldest first; `summary` stands for what was before them.

    `offered` are rows before them, of which memory was offered everything when they were new.

    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
    >>> row = Row(role="user", source="person", at=at, blocks=(TextBlock(text="hi"),))
    >>> print(transcript([row], "They met."))
    [Summary of what was before]
    | They met.
    <BLANKLINE>
    [2026-01-05 09:30 UTC] person:
    | hi
    """
    pieces = [f"{EARLIER}\n{barred(summary)}"] if summary else []
    pieces += [piece for row in offered for piece in _written(row)]
    if offered:
        pieces.append(OFFERED)
    pieces += [piece for row in rows for piece in _written(row)]
    return "\n\n".join(pieces)


def _written(row: Row) -> Iterator[str]:
    at = f"{row.at:%Y-%m-%d %H:%M} UTC"
    return (f"[{at}] {heading}\n{barred(text)}" for heading, text in _pieces(row))


def _pieces(row: Row) -> Iterator[tuple[str, str]]:
    for block in row.blocks:
        piece = _piece(row, block)
        if piece is not None and piece[1].strip():
            yield piece


def _piece(row: Row, block: Block) -> tuple[str, str] | None:
    match block:
        case TextBlock(text=text):
            return _speaker(row), _bounded(text, PIECE_LENGTH_MAX)
        case ToolUseBlock():
            arguments = json.dumps(block.input, ensure_ascii=False)
            return f"you called {line(block.name, 80)} with:", _bounded(
                arguments, RESULT_LENGTH_MAX
            )
        case ToolResultBlock():
            what = "an error" if block.is_error else "the result"
            return f"{what} of the call was:", excerpt.in_characters(
                block.content, RESULT_LENGTH_MAX
            )
        case TimerBlock() | ExternalBlock() | TaskBlock():
            return _happened(block)
        case AttachmentBlock(file=file):
            return "with it came a file:", line(file.in_words)
        case OpaqueBlock():
            return None
        case _:
            assert_never(block)


def _speaker(row: Row) -> str:
    if row.role == "user" and row.source == "tool":
        return SHOWN
    return _person(row.by) if row.source == "person" else AGENT


def _person(by: str) -> str:
    """Return who said it: a name alone could pose as another heading."""
    return f"{MEMBER}{by}:" if by else PERSON


def _happened(block: TimerBlock | ExternalBlock | TaskBlock) -> tuple[str, str]:
    """Return the heading and the text of what neither of the two said."""
    match block:
        case TimerBlock(follow_up=follow_up):
            whose = "a reminder that the person asked for" if follow_up.keep else "your follow-up"
            return f"{whose} came due:", _bounded(follow_up.reason, RESULT_LENGTH_MAX)
        case ExternalBlock(event=event):
            trust = "trusted" if event.is_trusted else "not from the person, and not trusted"
            heading = f"outside event from {line(event.source, 80)} ({trust}):"
            return heading, _bounded(event.content, PIECE_LENGTH_MAX)
        case TaskBlock(is_tainted=is_tainted):
            trust = ", not trusted" if is_tainted else ""
            heading = f"what became of {line(block.tool, 80)} ({line(block.title, 80)}{trust}):"
            return heading, _bounded(block.content, RESULT_LENGTH_MAX)
        case _:
            assert_never(block)


def _bounded(text: str, length_max: int) -> str:
    left_out = len(text) - length_max
    return text if left_out <= 0 else f"{text[:length_max]}… ({left_out} more characters)"


class SoFar(NamedTuple):
    """What the question is made of."""

    told: tuple[Row, ...]
    """What happened."""
    rows: tuple[Row | TemplateRow, ...]
    """That in words, and the answer before with why it can't be used, if there is one."""


def so_far(draft: Draft, newest: Sequence[Row]) -> SoFar:
    """Return what happened in the open loop, with its last words.

    Args:
        newest: rows of the session, oldest first.
    """
    rows = [row for row in newest if row.at >= draft.loop.begun_at]
    tries = formed_answer.refused_rows(rows)
    told = tuple(rows[: len(rows) - len(tries)][-ROWS_MAX:])
    first = TemplateRow(
        template="cycle_so_far.md.j2",
        values={"transcript": transcript(told), "last_words": draft.loop.unsaid},
        at=draft.moment.now,
    )
    return SoFar(told, (first, *tries))
