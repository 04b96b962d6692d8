"""Closed letters: what outside content had a part in, as later exchanges of a session see it
(FLOW F1).

Within the loop that took it in it is read where it came. From then on a model sees its envelope
alone: a handle, what it is, when it came and how long it is; nothing in that was written by who
wrote the letter. So no later loop is swayed by it, unless it opens it. An envelope depends on its
row and nothing else: the history stays the same, byte for byte, from call to call.

What stays as it is: the person's own words, and what the agent wrote before it had read anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from vigil.contracts import (
    Attachment,
    AttachmentBlock,
    Block,
    Loop,
    Row,
    TaskBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from vigil.contracts.board import KnownFact
from vigil.contracts.events import LetterName
from vigil.contracts.history import LetterHead
from vigil.facts.shown import described
from vigil.texts import rough
from vigil.trust import sources as trust
from vigil.trust.letters import answered_in, digest_of, digest_of_file, letter_in

from ..draft.chunk import Chunk
from .window import tokens_of_rows

HANDLE: Final = r"[a-z]\d{1,9}"
"""A letter's place among those of its turn, and the ordinal of that."""
OPENED_MAX: Final = 4
"""Letters that one loop opens."""
PAGE: Final = "http_get"
"""The tool that reads a page."""
SHOWN_ABOVE: Final = "(a file, which is shown above)"
_PLACES: Final = "abcdefghijklmnopqrstuvwxy"
_LAST: Final = "z"
"""Names all letters of a turn that has more than there are places."""
_POINTS: Final = re.compile(rf"\bopen\s+({HANDLE})\b", re.IGNORECASE)


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """What of a history a loop is shown as it is."""

    turn: int = 0
    """Ordinal of the first turn that is; 0: all is, as to loops of older versions."""
    files: int = 0
    """Ordinal of the first turn whose files are: they are looked at for longer."""
    opened: tuple[str, ...] = ()
    """Handles of the letters that it opened."""
    vouched: tuple[LetterName, ...] = ()
    """Letters that the person vouched for: they stand open, as that person's own."""


ALL: Final = Opening()
NOTHING: Final = Opening(turn=1 << 62, files=1 << 62)


def opening_of(loop: Loop, vouched: tuple[LetterName, ...] = ()) -> Opening:
    return Opening(turn=loop.open_from, files=loop.files_from, opened=loop.opened, vouched=vouched)


class ClosedLetter(msgspec.Struct, frozen=True, kw_only=True):
    """One closed letter."""

    handle: str
    text: str
    what: str = ""
    """What it is, in the words of its envelope."""
    source: str = ""
    """Who let it in, of an event."""
    call_id: str = ""
    """The id of the call whose result it is."""
    file: Attachment | None = None
    """The file, if it's one."""
    at: datetime | None = None
    """None: nothing more is known of it."""

    @property
    def digest(self) -> str:
        """What tells it from every other."""
        return digest_of(self.text) if self.file is None else digest_of_file(self.file)

    @property
    def about(self) -> str:
        """What it is, when it came and about how long it is; empty: a file."""
        if self.at is None or self.file is not None:
            return ""
        at = f"{self.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        return f"{self.what}, {at}, {rough.length(self.text)}"


def ordinal_of(handle: str) -> int:
    """Return the ordinal of a letter's turn.

    >>> ordinal_of("a12")
    12
    """
    return int(handle[1:])


def pointed_at(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the letters that a message of the person's points at.

    >>> pointed_at(["What did it say? Open a12, please.", "open the door"])
    ('a12',)
    """
    found = (match[1].lower() for text in texts for match in _POINTS.finditer(text))
    return tuple(dict.fromkeys(found))[:OPENED_MAX]


def view(chunks: Iterable[Chunk], opening: Opening) -> list[Chunk]:
    """Return the history as a loop is shown it, chunk by chunk; of some nothing is left."""
    gone: set[str] = set()
    return [
        chunk if chunk.ordinal >= opening.turn else _closed(chunk, gone, opening)[0]
        for chunk in chunks
    ]


def _letters(
    chunks: Iterable[Chunk], is_wanted: Callable[[Chunk], bool]
) -> Iterator[tuple[Chunk, list[ClosedLetter]]]:
    """Yield each wanted chunk with its letters. They are named by what was called before, so the
    chunks begin where an exchange does."""
    gone: set[str] = set()
    for chunk in chunks:
        if is_wanted(chunk):
            yield chunk, _closed(chunk, gone, NOTHING)[1]
        else:
            for row in chunk.rows:
                _note_calls(row, gone, is_closed=chunk.is_swayed)


def listed(chunks: Iterable[Chunk]) -> tuple[str, ...]:
    """Return a line for each letter of what is summed up, so that it can still be asked for; what a
    fork began with is on another log, and isn't among them."""
    own = (one for _, found in _letters(chunks, lambda each: each.ordinal > 0) for one in found)
    return tuple(f"{one.handle}: {one.about}" for one in own if one.about)


def closed(chunks: Iterable[Chunk], vouched: tuple[LetterName, ...] = ()) -> tuple[Chunk, ...]:
    """Return chunks of which every letter is closed, but those that the person vouched for."""
    opening = msgspec.structs.replace(NOTHING, vouched=vouched)
    return tuple(chunk for chunk in view(chunks, opening) if chunk.rows)


def find(chunks: Sequence[Chunk], handle: str) -> ClosedLetter | None:
    """Return the letter with that handle, if the history still has it."""
    ordinal = ordinal_of(handle)
    there = _letters(chunks, lambda chunk: chunk.ordinal == ordinal)
    same = [letter.text for _, found in there for letter in found if letter.handle == handle]
    return ClosedLetter(handle=handle, text="\n\n".join(same)) if same else None


def of_turn(chunks: Sequence[Chunk], seq: int) -> tuple[ClosedLetter, ...]:
    """Return the letters of one turn, by its stream sequence."""
    there = _letters(chunks, lambda chunk: chunk.seq == seq)
    return next((tuple(found) for _, found in there), ())


def heads(chunks: Sequence[Chunk]) -> tuple[LetterHead, ...]:
    """Return what people are told of the letters of the newest chunk, by the names that every later
    loop has for them."""
    ((_, newest),) = _letters(chunks, lambda chunk: chunk is chunks[-1])
    calls = {
        block.id: block
        for chunk in chunks
        for row in chunk.rows
        for block in row.blocks
        if isinstance(block, ToolUseBlock)
    }
    return tuple(
        LetterHead(
            handle=one.handle,
            what=one.what,
            source=one.source or _source(calls.get(one.call_id)),
            size=0 if one.file else len(one.text),
            digest=one.digest,
            at=one.at,
        )
        for one in newest
        if one.at is not None
    )


def _source(call: ToolUseBlock | None) -> str:
    """Return what a result is from, as it could be trusted; empty: nothing that has a name."""
    if call is None:
        return ""
    server, separator, _ = call.name.partition("__")
    if separator:
        return trust.of_server(server)
    url = call.input.get("url") if call.name == PAGE else None
    return trust.of_page(url) if isinstance(url, str) else ""


class _Envelopes:
    """Names the letters of one turn, in their order."""

    def __init__(self, ordinal: int, opening: Opening) -> None:
        self._ordinal = ordinal
        self._opening = opening
        self.letters: list[ClosedLetter] = []

    def name(self, text: str, **of: Any) -> str:
        """Return the handle of the next letter."""
        place = len(self.letters)
        handle = f"{_PLACES[place] if place < len(_PLACES) else _LAST}{self._ordinal}"
        self.letters.append(ClosedLetter(handle=handle, text=text, **of))
        return handle

    def file(self, block: AttachmentBlock, row: Row) -> Block:
        """Return a file, or its envelope, if it is no longer looked at."""
        what = f"{block.file.unnamed}, attached"
        handle = self.name(SHOWN_ABOVE, what=what, file=block.file, at=row.at)
        if self._ordinal >= self._opening.files or handle in self._opening.opened:
            return block
        if self._is_vouched(self.letters[-1]):
            return msgspec.structs.replace(block, is_trusted=True)
        text = f"[Letter {handle}: {what}, not shown any more. open_letter {handle} shows it.]"
        return TextBlock(text=text)

    def _is_vouched(self, letter: ClosedLetter) -> bool:
        """Whether the person vouched for a letter, as it is."""
        named = [one for one in self._opening.vouched if one.handle == letter.handle]
        return any(one.digest == letter.digest for one in named)

    def close(
        self,
        what: str,
        text: str,
        row: Row,
        *,
        source: str = "",
        call_id: str = "",
        facts: Iterable[KnownFact] = (),
    ) -> str:
        """Return the envelope of a text; the facts of who wrote it stand on it (FLOW F-1)."""
        handle = self.name(text, what=what, source=source, call_id=call_id, at=row.at)
        if self._is_vouched(self.letters[-1]):
            when = f"{row.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            return f"[Letter {handle}: {what}, {when}; the person vouches for it:]\n{text}"
        about = self.letters[-1].about
        said = "; ".join(filter(None, (described(one, UTC, row.at) for one in facts)))
        facts_said = f" Its facts, by UTC: {said}." if said else ""
        return (
            f"[Letter {handle}: {about}, closed since it may hold words of others.{facts_said} "
            f"open_letter {handle} shows it.]"
        )


def _closed(chunk: Chunk, gone: set[str], opening: Opening) -> tuple[Chunk, list[ClosedLetter]]:
    """Close what of a chunk outside content had a part in.

    Args:
        gone: ids of calls that aren't shown any more; those of this chunk are added.
    """
    if not (chunk.is_tainted or chunk.is_swayed):
        for row in chunk.rows:
            _note_calls(row, gone, is_closed=False)
        return chunk, []
    envelopes = _Envelopes(chunk.ordinal, opening)
    rows = tuple(
        made for row in chunk.rows for made in _row(row, chunk, gone, envelopes) if made.blocks
    )
    shown = msgspec.structs.replace(
        chunk, rows=rows, tokens=tokens_of_rows(rows), is_tainted=False, is_swayed=False
    )
    return shown, envelopes.letters


def _row(row: Row, chunk: Chunk, gone: set[str], envelopes: _Envelopes) -> Iterator[Row]:
    if row.role == "assistant":
        _note_calls(row, gone, is_closed=chunk.is_swayed)
        yield _answer(row, envelopes) if chunk.is_swayed else row
    elif row.source == "tool":
        yield _results(row, gone, envelopes)
    else:
        blocks = tuple(_block(block, row, envelopes) for block in row.blocks)
        yield msgspec.structs.replace(row, blocks=blocks)


def _answer(row: Row, envelopes: _Envelopes) -> Row:
    """Close an answer, with the calls in it: their arguments were chosen by who had read."""
    text = answered_in(row)
    if not text:
        return msgspec.structs.replace(row, blocks=())
    envelope = envelopes.close("what you answered", text, row)
    # Not as the agent's own words, or it would go on to write envelopes.
    return Row(role="user", source="tool", blocks=(TextBlock(text=envelope),), at=row.at)


def _note_calls(row: Row, gone: set[str], *, is_closed: bool) -> None:
    """Take in whether the calls of a row are shown. An id may be that of a call that is gone: who
    gave it was shown that no more."""
    ids = [block.id for block in row.blocks if isinstance(block, ToolUseBlock)]
    if is_closed:
        gone.update(ids)
    else:
        gone.difference_update(ids)


def _results(row: Row, gone: set[str], envelopes: _Envelopes) -> Row:
    kept: list[Block] = []
    for block in row.blocks:
        if isinstance(block, ToolResultBlock) and block.tool_use_id not in gone:
            called = block.tool_use_id
            envelope = envelopes.close("a result", block.content, row, call_id=called)
            kept.append(msgspec.structs.replace(block, content=envelope))
        elif isinstance(block, AttachmentBlock) and kept:
            kept.append(envelopes.file(block, row))
    return msgspec.structs.replace(row, blocks=tuple(kept))


def _block(block: Block, row: Row, envelopes: _Envelopes) -> Block:
    if isinstance(block, AttachmentBlock) and not block.is_trusted:
        return envelopes.file(block, row)
    told_ = letter_in(block)
    if told_ is None:
        return block
    facts = block.facts if isinstance(block, TaskBlock) else ()
    envelope = envelopes.close(told_.what, told_.text, row, source=told_.source, facts=facts)
    return TextBlock(text=envelope)
