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
        "nothing is stored",
        "the client repeats",
    ),
    "gateway.message.after_publish": (
        "the event is stored, not acknowledged",
        "it is answered; with an idempotency key a repeat is harmless",
    ),
    "gateway.key.reserved": (
        "an idempotency key is reserved, nothing is stored",
        "a repeat looks for the event, finds none, and stores it",
    ),
    "gateway.key.looked": (
        "a repeat found no event",
        "the next looks again; it is stored only if nothing came between",
    ),
    "gateway.key.noted": (
        "the event and its place are stored",
        "a repeat is answered with that place",
    ),
    "gateway.cursor.after_send": (
        "a message was given to the socket",
        "it is sent again with the same id, unless acknowledged",
    ),
    "gateway.event.received": (
        "an event of a program was delivered",
        "it comes again after 5 s",
    ),
    "gateway.event.stored": (
        "it is stored, not acknowledged on EVENTS",
        "it comes again and is recognized by its id",
    ),
    "gateway.event.buried": (
        "its dead letter is stored, not acknowledged",
        "it comes again; the dead letter has the same id",
    ),
    "gateway.requeue.before_end": (
        "a dead letter was tried again, and is open",
        "the next requeue finds the work done, and ends it",
    ),
    "gateway.job.stored": (
        "a job's start is stored, not on the board",
        "it runs; its first turn puts it there; a repeat with the same key finds it",
    ),
    "cortex.wake.received": (
        "a wake was delivered",
        "it comes again after 8 s",
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
        "an event was read, nothing committed",
        "it is read again",
    ),
    "cortex.model.before_call": (
        "a loop's draft",
        "the same",
    ),
    "cortex.model.after_call": (
        "an answer, not committed",
        "the model is asked, and paid, again",
    ),
    "cortex.reflect.before_call": (
        "it will summarize, or look back at a pause",
        "that is decided again",
    ),
    "cortex.reflect.after_call": (
        "a summary, or what to remember, not committed",
        "the same; the model is paid again",
    ),
    "cortex.commit.before": (
        "a turn, not published",
        "its event is read again",
    ),
    "cortex.commit.after": (
        "the turn is stored",
        "the wake comes again and finds what is owed",
    ),
    "cortex.wake.before_ack": (
        "nothing is owed",
        "the wake comes again and is acknowledged",
    ),
    "cortex.dead.after_publish": (
        "a dead letter is stored, its turn not",
        "the same letter, dropped by its id within two minutes; then the turn",
    ),
    "cortex.release.before": (
        "an idle session, lease held",
        "the lease expires",
    ),
    "cortex.signal.received": (
        "records were read, their signals not stored",
        "the next projector reads them again",
    ),
    "cortex.signal.before_publish": (
        "signals, not published",
        "the same",
    ),
    "cortex.signal.after_publish": (
        "the signals are stored",
        "the next goes on after the last of SIGNALS",
    ),
    "delivery.turn.received": (
        "a turn was delivered",
        "it comes again after 5 s",
    ),
    "delivery.claim.before": (
        "a claim, not published",
        "the same",
    ),
    "delivery.claim.after": (
        "the message is said, the turn not acknowledged",
        "found in the transcript, not said again",
    ),
    "delivery.turn.before_ack": (
        "all sends of the turn are settled",
        "found settled, acknowledged",
    ),
    "delivery.void.after_receipt": (
        "the receipt is stored",
        "found settled",
    ),
    "delivery.dispatch.before": (
        "the message is said, not ordered on its channel",
        "the turn comes again: found said, ordered",
    ),
    "delivery.dispatch.after": (
        "the order is stored, the turn not acknowledged",
        "found said and ordered",
    ),
    "delivery.attempt.received": (
        "an order was delivered",
        "it comes again after 8 s",
    ),
    "delivery.attempt.begun": (
        "`begun` is stored, nothing sent",
        "nobody can know that: `unknown`, `timeout_s` and 5 s later",
    ),
    "delivery.attempt.sent": (
        "the receiver answered, nothing is stored",
        "the same: sent again with its id if idempotent, else `ambiguous`",
    ),
    "delivery.attempt.ended": (
        "the end of an attempt is stored",
        "tried again at `next_at`, or closed",
    ),
    "delivery.attempt.closed": (
        "the receipt is stored, perhaps no dead letter",
        "the dead letter is stored, the order acknowledged",
    ),
    "delivery.attempt.buried": (
        "the dead letter is stored, the order not acknowledged",
        "the same letter under the same id",
    ),
    "delivery.attempt.before_ack": (
        "the order is closed",
        "found closed, acknowledged",
    ),
    "delivery.requeue.after_dispatch": (
        "a new order is stored, the gateway wasn't told",
        "it is sent; whoever asks again learns that it is done",
    ),
    "scheduler.turn.received": (
        "a turn was delivered",
        "it comes again after 5 s",
    ),
    "scheduler.schedule.before": (
        "nothing is stored",
        "the same",
    ),
    "scheduler.schedule.after": (
        "the schedule is stored, the turn not acknowledged",
        "stored again in its place",
    ),
    "scheduler.turn.before_ack": (
        "all timers of the turn are stored",
        "stored again in their places",
    ),
    "scheduler.promote.before": (
        "a due timer, its schedule stored",
        "the next active scheduler, or the broker 2 s after it was due",
    ),
    "scheduler.promote.after": (
        "`in.timer` and the schedule are stored",
        "`in.timer` again under the same id; the session ignores a second",
    ),
    "scheduler.remove.after": (
        "the schedule is removed",
        "nothing is left to do",
    ),
    "scheduler.due.before_ack": (
        "what the broker fired is stored as `in.timer`",
        "the same again, or found removed",
    ),
    "scheduler.rearm.before_done": (
        "after a restore all schedules are stored, the mark is set",
        "they are stored again in their places",
    ),
    "memory.save.before": (
        "nothing is stored",
        "whoever asked asks again; a turn comes again",
    ),
    "memory.save.after": (
        "what a turn saves is stored",
        "the turn comes again; the memory has the effect's id",
    ),
    "memory.turn.received": (
        "a turn was delivered",
        "it comes again after 8 s",
    ),
    "memory.call.before_claim": (
        "a tool call, not claimed",
        "the same",
    ),
    "memory.call.claimed": (
        "the claim is stored, nothing was run",
        "run: every memory tool may run twice",
    ),
    "memory.call.ran": (
        "the tool was run, its result isn't stored",
        "run again; a save has the call's id",
    ),
    "memory.call.answered": (
        "the result is stored, the turn not acknowledged",
        "nothing is run, or answered again under the same id",
    ),
    "memory.turn.before_ack": (
        "all of the turn is done",
        "found done, acknowledged",
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
        "they are in the index, perhaps not on disk",
        "put in again, in their places",
    ),
    "memory.vectors.flushed": (
        "they are on disk, the position isn't",
        "the same",
    ),
    "memory.rebuild.before_swap": (
        "a second database is complete",
        "the first is used, the second deleted",
    ),
    "memory.rebuild.swapping": (
        "the first is deleted, the second not in its place",
        "rebuilt from the log",
    ),
    "executor.turn.received": (
        "a turn was delivered",
        "it comes again after 8 s",
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
        "a withdrawal, or the child's `cancel`, is stored",
        "found, or stored again under the same id",
    ),
    "executor.board.after": (
        "the board entry is stored",
        "found stored",
    ),
    "executor.call.before_claim": (
        "a tool call, not claimed",
        "claimed and run by whoever gets the turn",
    ),
    "executor.call.claimed": (
        "the claim is stored, nothing was run",
        "nobody can know that: run again if the tool may, else `ambiguous`",
    ),
    "executor.call.ran": (
        "the tool was run, its result isn't stored",
        "the same",
    ),
    "executor.call.answered": (
        "the result is stored, the turn not acknowledged",
        "the result is found: nothing is run",
    ),
    "executor.turn.before_ack": (
        "all of the turn is done",
        "found done, acknowledged",
    ),
    "erase.marked": (
        "`vigil erase`: every service refuses the person",
        "run it again, as for all that follow",
    ),
    "erase.tokens": (
        "their tokens are revoked",
        "their records",
    ),
    "erase.message.after": (
        "one record is deleted and overwritten",
        "the others",
    ),
    "erase.swept": (
        "none of their records is left",
        "the memory services are asked",
    ),
    "erase.asked": (
        "running memory services hold nothing of theirs",
        "the streams are rewritten",
    ),
    "erase.scrubbed": (
        "one stream is rewritten",
        "all of them again, without the first one's filling",
    ),
    "erase.before_done": (
        "all streams are clean, the mark is not yet a tombstone",
        "a short sweep, the rewriting, the tombstone",
    ),
    "erase.projections": (
        "folders of stopped memory services are overwritten, too",
        "the same",
    ),
    "erase.workspaces": (
        "their workspaces are overwritten and removed",
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
