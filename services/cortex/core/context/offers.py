"""What is offered to memory without a tool loop, and what a model answers to that (SPEC I-4, M-8).

A model that sums up, or looks back at a pause, calls `memory_save`; nobody waits for the results,
so its calls become effects at once. Where a memory came from is stamped here, never by a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from vigil.contracts import SaveMemoryPayload, TextBlock, ToolUseBlock
from vigil.memory.operations.save import Save, memory_save
from vigil.memory.questions import CONTENT_BYTES_MAX

from ...model import ModelAnswer
from .. import sway as sways
from ..draft import Draft
from ..draft.chunk import Chunk, Offer
from ..queue import stored_size
from ..sway import Sway

TRUNCATING: Final = ("max_tokens", "model_context_window_exceeded")
SAVES_MAX: Final = 20
"""Memories that one answer may save."""
SAVES_BYTES_MAX: Final = 64 * 1024
"""Their text together, as it is stored: they travel in one turn."""
OBSERVED_DAYS: Final = 30
"""What was dropped unread is remembered that long: time enough for a pass to merge it."""
OBSERVED_BYTES_MAX: Final = 16 * 1024
"""The most bytes of the person's words in what is dropped: the newest are kept."""
OBSERVATION_BYTES_MAX: Final = 2 * 1024
"""The most bytes of one message of these."""


def was_offered(draft: Draft, chunk: Chunk) -> bool:
    """Whether a pause offered it to memory before, or nothing of it was the person's."""
    if not draft.policy.pause_s:
        return False
    if draft.state.unsaved_from:
        return chunk.seq < draft.state.unsaved_from
    return draft.state.is_offered


def save_all(draft: Draft, answer: ModelAnswer, offer: Offer) -> int:
    """Let memory save what the model called `memory_save` with; return how many that are."""
    calls = [block for block in answer.blocks if isinstance(block, ToolUseBlock)]
    if answer.stop_reason in (*TRUNCATING, "unknown") and calls:
        # Half an answer may end in half a call.
        draft.note("truncated", f"the model stopped early: {answer.stop_reason}")
        calls.pop()
    sway = sways.of(offer, *offer.chunks)
    count, left = 0, SAVES_BYTES_MAX
    for call in calls[:SAVES_MAX]:
        saved = _saved(draft, call)
        if saved is None:
            continue
        left -= stored_size(saved.content)
        if left < 0:
            draft.note("save_refused", f"more than {SAVES_BYTES_MAX} bytes in one answer")
            break
        draft.save_memory(
            SaveMemoryPayload(
                content=saved.content,
                type=saved.type,
                importance=saved.importance,
                thread=_thread(draft),
                occurred_at=offer.ends_at,
                provenance=offer.provenance,
            ),
            sway,
        )
        count += 1
    if len(calls) > SAVES_MAX:
        draft.note("save_refused", f"{len(calls)} memories in one answer; {SAVES_MAX} are kept")
    return count


def _saved(draft: Draft, call: ToolUseBlock) -> Save | None:
    if call.name != memory_save.name:
        draft.note("save_refused", f"there is no tool named {call.name[:80]!r} here")
        return None
    if call.malformed:
        draft.note("save_refused", f"the arguments can't be read: {call.malformed}")
        return None
    try:
        given = msgspec.convert(call.input, memory_save.arguments)
    except msgspec.ValidationError as error:
        draft.note("save_refused", f"the arguments don't fit the schema: {error}")
        return None
    saved = Save(by="", **memory_save.view.fields(given))  # stamped where it is stored
    if not saved.content.strip() or "\0" in saved.content:
        draft.note("save_refused", "there is nothing readable in it")
        return None
    # The schema counts characters, memory counts bytes.
    return msgspec.structs.replace(saved, content=cut(saved.content, CONTENT_BYTES_MAX))


def observe(draft: Draft, chunks: Sequence[Chunk]) -> int:
    """Let memory keep the person's own words for a while, unread; return how many messages."""
    texts = [
        (text, row.at, chunk.event_id)
        for chunk in chunks
        for row in chunk.rows
        if row.source == "person"
        for text in [cut("".join(_texts(row.blocks)).strip(), OBSERVATION_BYTES_MAX)]
        if text
    ]
    kept, left = 0, OBSERVED_BYTES_MAX
    for text, _, _ in reversed(texts):
        left -= len(text.encode())
        if left < 0:
            break
        kept += 1
    for text, at, event_id in texts[len(texts) - kept :]:
        draft.save_memory(
            SaveMemoryPayload(
                content=text,
                type="observation",
                stability="volatile",
                expires_at=draft.moment.now + timedelta(days=OBSERVED_DAYS),
                thread=_thread(draft),
                occurred_at=at,
                provenance=() if event_id is None else (event_id,),
            ),
            Sway.NONE,
        )
    return kept


def _texts(blocks: Iterable[object]) -> Iterable[str]:
    # What a person wrote is text alone; NUL is the one character that memory can't hold.
    return (block.text.replace("\0", "") for block in blocks if isinstance(block, TextBlock))


def _thread(draft: Draft) -> str:
    return draft.key.rpartition(":")[2]


def cut(text: str, bytes_max: int) -> str:
    """Cut a text to so many bytes, at a character, and show that it was cut.

    >>> cut("héllo", 5), cut("hello", 5)
    ('h…', 'hello')
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return text
    return data[: max(bytes_max - 3, 0)].decode("utf-8", "ignore") + "…"


def things(count: int) -> str:
    """Name a number of memories.

    >>> things(1), things(2)
    ('1 memory', '2 memories')
    """
    return f"{count} memory" if count == 1 else f"{count} memories"
