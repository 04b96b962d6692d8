"""Named crash points: ``VIGIL_CRASH_AT=name:n`` ends the process at the n-th passage.

Every step of every protocol has one, so that a test can kill a service exactly between two
writes. `POINTS` lists them all; ``tests/chaos`` kills at each. Without the variable a
passage costs one comparison.
"""

from __future__ import annotations

import os
from typing import Final

from .errors import ConfigError

POINTS: Final = (
    "gateway.message.before_publish",
    "gateway.message.after_publish",
    "gateway.key.reserved",
    "gateway.key.looked",
    "gateway.key.noted",
    "gateway.cursor.after_send",
    "gateway.event.received",
    "gateway.event.stored",
    "gateway.event.buried",
    "gateway.requeue.before_end",
    "gateway.job.stored",
    "cortex.wake.received",
    "cortex.lease.acquired",
    "cortex.state.loaded",
    "cortex.takeover.after_commit",
    "cortex.event.read",
    "cortex.model.before_call",
    "cortex.model.after_call",
    "cortex.reflect.before_call",
    "cortex.reflect.after_call",
    "cortex.commit.before",
    "cortex.commit.after",
    "cortex.wake.before_ack",
    "cortex.dead.after_publish",
    "cortex.release.before",
    "cortex.signal.received",
    "cortex.signal.before_publish",
    "cortex.signal.after_publish",
    "delivery.turn.received",
    "delivery.claim.before",
    "delivery.claim.after",
    "delivery.turn.before_ack",
    "delivery.void.after_receipt",
    "delivery.dispatch.before",
    "delivery.dispatch.after",
    "delivery.attempt.received",
    "delivery.attempt.begun",
    "delivery.attempt.sent",
    "delivery.attempt.ended",
    "delivery.attempt.closed",
    "delivery.attempt.buried",
    "delivery.attempt.before_ack",
    "delivery.requeue.after_dispatch",
    "scheduler.turn.received",
    "scheduler.schedule.before",
    "scheduler.schedule.after",
    "scheduler.turn.before_ack",
    "scheduler.promote.before",
    "scheduler.promote.after",
    "scheduler.remove.after",
    "scheduler.due.before_ack",
    "scheduler.rearm.before_done",
    "memory.save.before",
    "memory.save.after",
    "memory.turn.received",
    "memory.call.before_claim",
    "memory.call.claimed",
    "memory.call.ran",
    "memory.call.answered",
    "memory.turn.before_ack",
    "memory.batch.before",
    "memory.batch.applied",
    "memory.vectors.embedded",
    "memory.vectors.upserted",
    "memory.vectors.flushed",
    "memory.rebuild.before_swap",
    "memory.rebuild.swapping",
    "executor.turn.received",
    "executor.spawn.after",
    "executor.tell.after",
    "executor.cancel.after",
    "executor.board.after",
    "executor.call.before_claim",
    "executor.call.claimed",
    "executor.call.ran",
    "executor.call.answered",
    "executor.turn.before_ack",
    "erase.marked",
    "erase.tokens",
    "erase.message.after",
    "erase.swept",
    "erase.asked",
    "erase.scrubbed",
    "erase.before_done",
    "erase.projections",
    "erase.workspaces",
)

EXIT_CODE: Final = 137
"""What a shell reports for a process that SIGKILL ended."""


def _parse(setting: str) -> tuple[str | None, int]:
    if not setting:
        return None, 0
    name, _, count = setting.partition(":")
    if name not in POINTS or not (count or "1").isdigit() or int(count or "1") < 1:
        raise ConfigError(f"VIGIL_CRASH_AT={setting!r}: expected NAME:N, NAME one of {POINTS}")
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
