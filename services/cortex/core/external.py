"""What an event from outside does (SPEC S-7, X-3).

It opens a loop like a due follow-up does, never like a message: gated, voided by the person's next
message, and tainted unless its sender is trusted. Whatever becomes of it, what it told is a row of
the history, so that the next exchange knows of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vigil.contracts import Cause, External, ExternalBlock, ExternalPayload

from . import loops, speech
from . import sway as sways
from .draft import OUTSIDE, Draft
from .queue import enqueue, fitting, stored_size

CONTENT_MAX: Final = 16_000
"""Characters of the content that a row holds: some 4,000 tokens."""
ATTRIBUTE_MAX: Final = 256
HELD_REASON: Final = "Events from outside came in meanwhile; they stand above."


def receive(draft: Draft, cause: Cause, event: External) -> None:
    """Fold an event from outside."""
    state = draft.state
    if event.id in state.told:
        draft.note("repeat", "an event with this id was folded before", event.id)
        return
    if speech.gate(draft, is_ordered=False) is None and speech.held_until(draft) is None:
        draft.make_way("an event came in")
        state = draft.state
    # What no model is asked about is written down beside a loop that looks back: a flood of it
    # would keep that from ever coming to its end.
    is_busy = (state.loop is not None and not draft.is_aside) or bool(state.queue)
    if is_busy and len(state.queue) >= draft.policy.queue_max:
        draft.note("queue_full", "too many events are waiting in this session", event.id)
        draft.ended.append(cause.id)
        return
    loops.fold_once(draft, event.id)
    if is_busy:
        enqueue(draft, cause)
    else:
        consider(draft, cause, event)


def consider(draft: Draft, cause: Cause, event: External) -> None:
    """Write down what it told; ask the model about it, or say why not."""
    _write_down(draft, block_of(event))
    loops.ask_unasked(draft, cause, event.id, sways.of_event(event.payload), OUTSIDE, HELD_REASON)


def remember(draft: Draft, events: Sequence[External]) -> int:
    """Write down as many void events as fit into one turn; return how many."""
    blocks = [block_of(event) for event in events]
    count = fitting(map(stored_size, blocks))
    for block in blocks[:count]:
        _write_down(draft, block)
        draft.note("void", "the person spoke first", block.event_id)
        draft.ended.append(block.event_id)
    return count


def _write_down(draft: Draft, block: ExternalBlock) -> None:
    draft.row("user", "external", block)
    if block.left_out:
        draft.note("content_cut", f"{block.left_out} characters are left out", block.event_id)


def block_of(event: External) -> ExternalBlock:
    """Return what a row holds of an event."""
    payload = event.payload
    return ExternalBlock(
        event_id=event.id,
        event=ExternalPayload(
            source=payload.source[:ATTRIBUTE_MAX],
            content=payload.content[:CONTENT_MAX],
            kind=payload.kind[:ATTRIBUTE_MAX],
            origin=payload.origin[:ATTRIBUTE_MAX],
            origin_id=payload.origin_id[:ATTRIBUTE_MAX],
            occurred_at=payload.occurred_at,
            is_trusted=payload.is_trusted,
        ),
        left_out=max(len(payload.content) - CONTENT_MAX, 0),
    )
