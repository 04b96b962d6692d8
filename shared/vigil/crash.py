"""Named crash points: ``VIGIL_CRASH_AT=name:n`` ends the process at the n-th passage.

Every step of every protocol has one, so that a test can kill a service exactly between two
writes. `POINTS` lists them all; ``tests/chaos`` kills at each. Without the variable a
passage costs one comparison.
"""

from __future__ import annotations

import os
from typing import Final

from .errors import ConfigError

POINTS: Final = {
    "gateway.message.before_publish": (
        "nothing stored, nothing acknowledged",
        "the client repeats",
    ),
    "gateway.message.after_publish": (
        "the event is stored, the client wasn't told",
        "it is answered; with an idempotency key a repeat is harmless",
    ),
    "gateway.key.reserved": (
        "an idempotency key, or the id of an outside event, is reserved; nothing is stored",
        "a repeat looks for the event in its session, finds none, and stores it",
    ),
    "gateway.key.looked": (
        "a repeat looked for the event and found none",
        "the next one looks again; it's stored only if nothing came between",
    ),
    "gateway.key.noted": (
        "the event is stored, and its place under its key",
        "a repeat is answered with that place",
    ),
    "gateway.cursor.after_send": (
        "a message was handed to the socket",
        "the client gets it again, with the same id, unless it acknowledged",
    ),
    "gateway.event.received": (
        "a program's event was delivered",
        "it comes again after `ack_wait` (5 s)",
    ),
    "gateway.event.stored": (
        "it is in its session, EVENTS doesn't know",
        "it comes again; its id is known: nothing is stored twice",
    ),
    "gateway.event.buried": (
        "its dead letter is stored, EVENTS doesn't know",
        "it comes again; the dead letter has the same id",
    ),
    "gateway.requeue.before_end": (
        "a dead letter was tried again, its end isn't stored",
        "it is open still; whoever requeues it again finds the work done, and ends it",
    ),
    "gateway.job.stored": (
        "a job's start is stored, the board doesn't show it",
        "it runs, and its first turn puts it there; a repeat with the same key finds it",
    ),
    "cortex.wake.received": (
        "a wake was delivered",
        "it comes again after `ack_wait` (8 s)",
    ),
    "cortex.lease.acquired": (
        "the lease is held",
        "it expires after 5 s, the wake comes again",
    ),
    "cortex.state.loaded": (
        "the session was read",
        "the same",
    ),
    "cortex.takeover.after_commit": (
        "the attempt is counted",
        "the next takeover counts one more",
    ),
    "cortex.event.read": (
        "an event was read",
        "nothing was committed: it is read again",
    ),
    "cortex.model.before_call": (
        "the draft of a loop",
        "the same",
    ),
    "cortex.model.after_call": (
        "an answer, not committed",
        "the model is asked again; the first answer is lost and paid",
    ),
    "cortex.reflect.before_call": (
        "it was decided to sum up, or to look back at a pause",
        "the same: a compaction is decided anew; the pause's loop is owed, or its timer is "
        "read again",
    ),
    "cortex.reflect.after_call": (
        "a summary, or what to remember, not committed",
        "the same; the first answer is lost and paid, and nothing of it is saved",
    ),
    "cortex.commit.before": (
        "a turn, not published",
        "the same",
    ),
    "cortex.commit.after": (
        "the turn is stored",
        "the wake comes again and finds position and what is owed",
    ),
    "cortex.wake.before_ack": (
        "nothing is owed",
        "the wake comes again and is acked",
    ),
    "cortex.dead.after_publish": (
        "a dead letter is stored, its turn not",
        "the same letter again, dropped by its id within two minutes; then the turn",
    ),
    "cortex.release.before": (
        "an idle session, lease held",
        "the lease expires",
    ),
    "cortex.signal.received": (
        "records were read, their signals not stored",
        "the next projector begins where SIGNALS ends, and reads them again",
    ),
    "cortex.signal.before_publish": (
        "signals, not published",
        "the same",
    ),
    "cortex.signal.after_publish": (
        "the signals are stored",
        "the next one finds them at the end of SIGNALS and goes on after them",
    ),
    "delivery.turn.received": (
        "a turn was delivered",
        "it comes again after `ack_wait` (5 s)",
    ),
    "delivery.claim.before": (
        "a claim, not published",
        "the same",
    ),
    "delivery.claim.after": (
        "the message is said, the turn not acked",
        "found in the transcript, not said again",
    ),
    "delivery.turn.before_ack": (
        "all sends of the turn are settled",
        "found settled, acked",
    ),
    "delivery.void.after_receipt": (
        "the receipt is stored",
        "found settled",
    ),
    "delivery.dispatch.before": (
        "the message is said, its order not stored",
        "the turn comes again: found said, ordered",
    ),
    "delivery.dispatch.after": (
        "the order is stored, the turn not acked",
        "found said and ordered",
    ),
    "delivery.attempt.received": (
        "an order was delivered",
        "it comes again after `ack_wait` (8 s)",
    ),
    "delivery.attempt.begun": (
        "`begun` is stored, nothing was sent",
        "nobody can know: `unknown`, `timeout_s` and 5 s later",
    ),
    "delivery.attempt.sent": (
        "the receiver answered, the log doesn't say so",
        "the same: idempotent, it gets it again with the same id; else `ambiguous`",
    ),
    "delivery.attempt.ended": (
        "the end of an attempt is stored",
        "tried again at `next_at`, or closed",
    ),
    "delivery.attempt.closed": (
        "the receipt is stored, a dead letter perhaps not",
        "found closed: the dead letter is stored, then the order is acked",
    ),
    "delivery.attempt.buried": (
        "the dead letter is stored, the order not acked",
        "the same letter again, under the same id",
    ),
    "delivery.attempt.before_ack": (
        "the order is closed",
        "found closed, acked",
    ),
    "delivery.requeue.after_dispatch": (
        "a new order is stored, the gateway wasn't told",
        "it is carried; whoever asks again is told that it is done",
    ),
    "scheduler.turn.received": (
        "a turn was delivered",
        "it comes again after `ack_wait` (5 s)",
    ),
    "scheduler.schedule.before": (
        "nothing stored",
        "the same",
    ),
    "scheduler.schedule.after": (
        "the schedule is stored, the turn not acked",
        "stored again in its own place",
    ),
    "scheduler.turn.before_ack": (
        "all timer effects are carried out",
        "carried out again, harmlessly",
    ),
    "scheduler.promote.before": (
        "a due timer, its schedule stored",
        "the next active scheduler, or the broker 2 s after it was due",
    ),
    "scheduler.promote.after": (
        "`in.timer` is stored, the schedule too",
        "promoted again under the same id; the fold ignores a second one",
    ),
    "scheduler.remove.after": (
        "the schedule is gone",
        "nothing left to do",
    ),
    "scheduler.due.before_ack": (
        "what the broker fired is promoted",
        "it comes again and is promoted again under the same id, or found removed",
    ),
    "scheduler.rearm.before_done": (
        "after a restore: all missing schedules are stored, the mark is still set",
        "they are stored again in their own place",
    ),
    "memory.save.before": (
        "something to remember, not stored, not acknowledged",
        "whoever asked asks again; a turn comes again",
    ),
    "memory.save.after": (
        "what a turn asked to remember is stored",
        "the turn comes again: the memory has the effect's id, and is there",
    ),
    "memory.turn.received": (
        "a turn was delivered",
        "it comes again after `ack_wait` (8 s)",
    ),
    "memory.call.before_claim": (
        "a tool call, not claimed",
        "the same",
    ),
    "memory.call.claimed": (
        "the claim is stored, nothing was run",
        "found claimed, and run: every memory tool may run twice",
    ),
    "memory.call.ran": (
        "the tool was run, its result isn't stored",
        "run again: a save has the call's id as its key",
    ),
    "memory.call.answered": (
        "the result is stored, the turn not acked",
        "the session is further on: nothing is run; or answered again under the same id",
    ),
    "memory.turn.before_ack": (
        "all of the turn is done",
        "found done, acked",
    ),
    "memory.batch.before": (
        "records of MEMORIES were read",
        "read again from the position in SQLite",
    ),
    "memory.batch.applied": (
        "they are in SQLite, with the position",
        "read on from there",
    ),
    "memory.vectors.embedded": (
        "vectors are in SQLite, not in the index",
        "put into the index from there",
    ),
    "memory.vectors.upserted": (
        "points are in the index, perhaps not to last",
        "put in again, in their place",
    ),
    "memory.vectors.flushed": (
        "they last, the position of the vectors is behind",
        "the same",
    ),
    "memory.rebuild.before_swap": (
        "a second database is whole, beside the first",
        "the first one is used; the second is deleted",
    ),
    "memory.rebuild.swapping": (
        "the first database is deleted, the second not in its place",
        "made of the log once more",
    ),
    "executor.turn.received": (
        "a turn was delivered",
        "it comes again after `ack_wait` (8 s)",
    ),
    "executor.spawn.after": (
        "the child's first event is stored",
        "found stored",
    ),
    "executor.tell.after": (
        "the parent's event is stored",
        "stored again under the same id",
    ),
    "executor.cancel.after": (
        "the claim of nobody, or the child's `cancel`, is stored",
        "found stored, or stored again under the same id",
    ),
    "executor.board.after": (
        "the entity is stored as of this turn",
        "found stored",
    ),
    "executor.call.before_claim": (
        "a tool call, not claimed",
        "claimed and run by whoever gets the turn",
    ),
    "executor.call.claimed": (
        "the claim is stored, nothing was run",
        "nobody can know that: run if the tool may run twice, else answered `ambiguous`",
    ),
    "executor.call.ran": (
        "the tool was run, its result isn't stored",
        "the same",
    ),
    "executor.call.answered": (
        "the result is stored, the turn not acked",
        "the result is found, or the session is further on: nothing is run",
    ),
    "executor.turn.before_ack": (
        "all of the turn is done",
        "found done, acked",
    ),
    "erase.marked": (
        "`vigil erase`: the person is marked, and refused by every service",
        "the same command again, as for all that follow",
    ),
    "erase.tokens": (
        "their tokens are revoked",
        "the sweep",
    ),
    "erase.message.after": (
        "one record is deleted and overwritten",
        "the rest of the sweep",
    ),
    "erase.swept": (
        "nothing of theirs is left in the streams",
        "the memory services are asked",
    ),
    "erase.asked": (
        "the memory services that run hold nothing of theirs",
        "the scrub",
    ),
    "erase.scrubbed": (
        "one stream is rewritten",
        "all of them again, the filling of the first is removed",
    ),
    "erase.before_done": (
        "all is gone from the streams, the mark is not yet a tombstone",
        "a short sweep, the scrub, the tombstone",
    ),
    "erase.projections": (
        "folders of memory services that don't run are overwritten, too",
        "the same",
    ),
    "erase.workspaces": (
        "the folders in which tools worked for them are overwritten and removed",
        "the same",
    ),
}
"""What is done before each, and who goes on after it and how: docs/reference/crash-points.md."""

EXIT_CODE: Final = 137
"""What a shell reports for a process that SIGKILL ended."""


def _parse(setting: str) -> tuple[str | None, int]:
    if not setting:
        return None, 0
    name, _, count = setting.partition(":")
    if name not in POINTS or not (count or "1").isdigit() or int(count or "1") < 1:
        raise ConfigError(
            f"VIGIL_CRASH_AT={setting!r}: expected NAME:N, NAME one of {tuple(POINTS)}"
        )
    return name, int(count or "1")


_name, _left = _parse(os.environ.get("VIGIL_CRASH_AT", ""))


def point(name: str) -> None:
    """End the process here, like SIGKILL would, if the environment asks for it."""
    if name != _name:
        return
    global _left  # noqa: PLW0603
    _left -= 1
    if _left <= 0:
        os._exit(EXIT_CODE)
