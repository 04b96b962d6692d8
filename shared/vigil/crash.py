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
    "attachment.uploaded": ("a file's parts are stored", "it's none; uploaded again, or gone"),
    "attachment.noted": ("it's noted who will name a file", "nobody does; gone in a day"),
    "attachment.named": ("a file is named, not kept", "the next start keeps it"),
    "attachment.copied": ("its parts are copied", "the next start copies them again"),
    "gateway.message.before_publish": ("nothing is stored", "the client repeats"),
    "gateway.message.after_publish": (
        "the event is stored",
        "answered; with an idempotency key a repeat is harmless",
    ),
    "gateway.key.reserved": (
        "a key is reserved, nothing stored",
        "a repeat finds no event, and stores it",
    ),
    "gateway.key.looked": ("a repeat found no event", "the next one looks again"),
    "gateway.key.noted": ("the event and its place are stored", "a repeat gets that place"),
    "gateway.cursor.after_send": (
        "a message was sent",
        "sent again with its id, unless acknowledged",
    ),
    "import.message.before": (
        "some messages of a conversation are imported",
        "the import, made again, goes on there",
    ),
    "import.past.before": (
        "all of them are, and the agent doesn't know it",
        "the import, made again, has it begin with them",
    ),
    "mailbox.begun": ("where a mailbox is read from is stored", "it is read from there"),
    "mailbox.mail": ("a mail of a mailbox is stored", "reading goes on behind it"),
    "chat.heard": (
        "a message of a chat network is stored, its place isn't",
        "read again, and known by its id",
    ),
    "chat.place": ("how far a network was read is stored", "reading goes on behind it"),
    "mail.heard": ("a mail is stored, its place isn't", "read again, and known by its id"),
    "mail.place": ("the place in a mailbox is stored", "reading goes on behind it"),
    "calendar.seen": ("what a calendar holds is stored", "the next look finds the same"),
    "calendar.write.before": (
        "a change of a calendar isn't sent",
        "the call runs again, and sends it",
    ),
    "calendar.write.after": ("it is stored there, not told", "the call runs again, and finds it"),
    "gateway.event.received": ("an event of a program was delivered", "comes again after 5 s"),
    "gateway.event.stored": ("it is stored", "recognized by its id"),
    "gateway.event.buried": ("its dead letter is stored", "the same letter again"),
    "gateway.hook.stored": (
        "a hook's event is stored, its facts aren't",
        "taken when it comes again",
    ),
    "gateway.requeue.before_end": (
        "a dead letter was retried, and is open",
        "the next requeue only ends it",
    ),
    "gateway.job.stored": (
        "a job's start is stored, not on the board",
        "its first turn puts it there",
    ),
    "cortex.wake.received": ("a wake was delivered", "comes again after 8 s"),
    "cortex.lease.acquired": ("the lease is held", "it expires after 5 s"),
    "cortex.state.loaded": ("the session was read", "the same"),
    "cortex.takeover.after_commit": ("the attempt is counted", "the next counts one more"),
    "cortex.event.read": ("an event was read", "read again"),
    "cortex.model.before_call": ("a loop's draft", "the same"),
    "cortex.budget.reserved": (
        "a call's worst case is set aside, nothing is asked",
        "asked again; the first stays counted until the day ends",
    ),
    "cortex.budget.answered": ("the model answered, its count isn't settled", "the same"),
    "cortex.model.after_call": ("an answer, not committed", "asked, and paid, again"),
    "cortex.reflect.before_call": ("it will summarize, or look back", "decided again"),
    "cortex.reflect.after_call": ("that is answered, not committed", "decided, and paid, again"),
    "cortex.commit.before": ("a turn, not published", "its event is read again"),
    "cortex.commit.after": ("the turn is stored", "the wake comes again, finds what is owed"),
    "cortex.wake.before_ack": ("nothing is owed", "the wake comes again, acknowledged"),
    "cortex.dead.after_publish": (
        "a dead letter is stored, its turn not",
        "the same letter, then the turn",
    ),
    "cortex.release.before": ("an idle session, lease held", "the lease expires"),
    "cortex.signal.received": ("records were read", "the next projector reads them again"),
    "cortex.signal.before_publish": ("signals, not published", "the same"),
    "cortex.signal.after_publish": ("the signals are stored", "the next goes on after them"),
    "delivery.turn.received": ("a turn was delivered", "comes again after 5 s"),
    "delivery.claim.before": ("a claim, not published", "the same"),
    "delivery.claim.after": ("the message is said, the turn is open", "found said"),
    "delivery.turn.before_ack": ("all sends of the turn are settled", "found settled"),
    "delivery.void.after_receipt": ("the receipt is stored", "found settled"),
    "delivery.dispatch.before": (
        "the message is said, not ordered on its channel",
        "found said, ordered",
    ),
    "delivery.dispatch.after": ("the order is stored, the turn is open", "found said and ordered"),
    "delivery.dispatch.next": (
        "an order for the next channel is stored, the one before is open",
        "that is found replaced",
    ),
    "delivery.attempt.received": ("an order was delivered", "comes again after 8 s"),
    "delivery.attempt.begun": (
        "`begun` is stored, nothing sent",
        "`unknown`, `timeout_s` and 5 s later",
    ),
    "delivery.attempt.sent": (
        "the receiver answered, nothing is stored",
        "the same; sent again if idempotent, else `ambiguous`",
    ),
    "delivery.attempt.ended": ("the end of an attempt is stored", "next attempt, or closed"),
    "delivery.attempt.closed": ("the receipt is stored", "a dead letter, if it failed"),
    "delivery.attempt.buried": ("the dead letter is stored", "the same letter again"),
    "delivery.attempt.told": ("the mind is told, the order is open", "found told and closed"),
    "delivery.attempt.before_ack": ("the order is closed", "found closed"),
    "delivery.requeue.after_dispatch": (
        "a new order is stored",
        "it is sent; the gateway learns it at a repeat",
    ),
    "scheduler.turn.received": ("a turn was delivered", "comes again after 5 s"),
    "scheduler.schedule.before": ("nothing is stored", "the same"),
    "scheduler.schedule.after": ("the schedule is stored, the turn is open", "stored again"),
    "scheduler.turn.before_ack": ("all timers of the turn are stored", "stored again"),
    "scheduler.promote.before": ("a timer is due", "the next scheduler, or the broker 2 s later"),
    "scheduler.promote.after": (
        "`in.timer` and the schedule are stored",
        "`in.timer` again under its id",
    ),
    "scheduler.remove.after": ("the schedule is removed", "nothing to do"),
    "scheduler.due.before_ack": ("`in.timer` of what the broker fired", "the same again"),
    "scheduler.task.moved": (
        "a task is in progress, its worker isn't begun",
        "begun by who is active next",
    ),
    "scheduler.task.begun": ("a worker's first event is stored", "found stored"),
    "scheduler.task.ended": (
        "a worker's cancel is stored",
        "stored again under its id, or without effect",
    ),
    "scheduler.slot.decided": (
        "an entry of the timetable's ledger is stored; a run isn't begun",
        "begun by who is active next",
    ),
    "scheduler.slot.missed": (
        "what was missed is told at home; the entry that says so isn't stored",
        "told again by who is active next, as the same",
    ),
    "scheduler.slot.looked": (
        "what is watched was looked at; what was seen there isn't stored",
        "looked at again by who is active next",
    ),
    "scheduler.slot.begun": ("a run's first event is stored", "found stored"),
    "scheduler.slot.ended": (
        "the cancel of a run that has had its time is stored",
        "stored again under its id, or without effect",
    ),
    "scheduler.rearm.before_done": ("after a restore all schedules are stored", "stored again"),
    "memory.save.before": ("nothing is stored", "asked again"),
    "memory.save.after": ("what a turn saves is stored", "recognized by its id"),
    "memory.turn.received": ("a turn was delivered", "comes again after 8 s"),
    "memory.call.before_claim": ("a tool call, not claimed", "the same"),
    "memory.call.claimed": ("the claim is stored, nothing was run", "run"),
    "memory.call.ran": (
        "the tool was run, its result isn't stored",
        "run again; a save is recognized",
    ),
    "memory.call.answered": (
        "the result is stored, the turn is open",
        "found, or answered again under its id",
    ),
    "memory.turn.before_ack": ("all of the turn is done", "found done"),
    "memory.batch.before": ("records of MEMORIES were read", "read again"),
    "memory.batch.applied": ("they are in SQLite", "read on from there"),
    "memory.vectors.embedded": ("vectors are in SQLite, not in the index", "indexed from there"),
    "memory.vectors.upserted": ("they are in the index", "indexed again"),
    "memory.vectors.flushed": ("they are on disk, the position isn't", "indexed again"),
    "memory.rebuild.before_swap": ("a second database is complete", "it is deleted"),
    "memory.rebuild.swapping": ("the first is deleted", "rebuilt from the log"),
    "executor.turn.received": ("a turn was delivered", "comes again after 8 s"),
    "executor.spawn.after": ("the child's first event is stored", "found stored"),
    "executor.tell.after": (
        "the parent's event is stored, or a verdict with who asked",
        "stored again under its id",
    ),
    "executor.tell_person.after": ("what the person is told is stored", "found stored"),
    "executor.raise_budget.after": ("the person's limit is raised", "found raised"),
    "executor.cancel.after": (
        "a withdrawal or `cancel` is stored",
        "found, or stored again under its id",
    ),
    "executor.board.after": ("the board entry is stored", "found stored"),
    "executor.asked.changed": (
        "a task or a goal is made or changed, or a lesson learned; its loop isn't told",
        "found in the history",
    ),
    "executor.task.ended": (
        "a worker's end is on the board, the person isn't told",
        "found in the task's history",
    ),
    "executor.facts.taken": (
        "a run's facts are on the board, nobody is told",
        "found in their history",
    ),
    "executor.slot.told": (
        "a run's result is told, the ledger doesn't have its end",
        "found told",
    ),
    "executor.slot.ended": ("a run's end is in the ledger", "found there"),
    "executor.call.before_claim": ("a tool call, not claimed", "claimed again"),
    "executor.call.claimed": (
        "the claim is stored, nothing was run",
        "run again if the tool may, else `ambiguous`",
    ),
    "mcp.task.begun": (
        "a server does the call as a task, whose id is in the claim",
        "the task is looked after, whoever finds the claim",
    ),
    "executor.grant.counted": (
        "the use of a standing grant is counted, its call not run",
        "as a call that was claimed; a repeat isn't counted again",
    ),
    "executor.call.ran": ("the tool was run, its result isn't stored", "the same"),
    "executor.call.answered": ("the result is stored, the turn is open", "found"),
    "executor.turn.before_ack": ("all of the turn is done", "found done"),
    "thread.looked": ("what goes with a conversation is known", "the next scheduler, anew"),
    "thread.swept": ("none of its records is left", "the same"),
    "thread.before_done": ("nor a file that only it named", "the same"),
    "erase.marked": ("`vigil erase`: every service refuses the person", "the same command again"),
    "erase.tokens": ("their tokens are revoked", "the same"),
    "erase.message.after": ("one record is overwritten", "the same"),
    "erase.swept": ("none of their records is left", "the same"),
    "erase.asked": ("memory services hold nothing of theirs", "the same"),
    "erase.filled": ("the blocks of one stream are filled up", "the same"),
    "erase.again": ("one live record is stored once more, and there twice", "the same"),
    "erase.scrubbed": ("one stream is rewritten", "the same"),
    "erase.before_done": ("all streams are clean", "the same"),
    "erase.projections": ("stopped memory services, too", "the same"),
    "erase.workspaces": ("their workspaces are removed", "the same"),
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
