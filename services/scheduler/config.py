"""The scheduler's limits, in one frozen struct. None of them changes what a timer means."""

from __future__ import annotations

import msgspec

from vigil.worker.effects import WorkLimits


class SchedulerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long, how many, how often. Seconds and counts."""

    standby_poll_s: float = 1.0
    """How often a standby tries to take the lease."""
    acquire_again_s: float = 0.2
    """How soon after the broker could not tell: it may be just starting."""
    sleep_max_s: float = 1.0
    """Look at the wall clock at least this often: it may be set forward, and it goes on while the
    machine sleeps, when durations stand still."""
    catch_up_again_s: float = 0.05
    """How often it's asked whether the turns of before the start are carried out."""
    catch_up_max_s: float = 10.0
    """A backlog that takes longer to read doesn't hold due timers back any more. What a killed one
    had in hand comes again within the ack wait of 5 s."""
    turns: WorkLimits = WorkLimits(in_hand_max=1024, slots=64, refusals_max=8, stop_grace_s=0.0)
    writes_in_flight: int = 64
    promotions_in_flight: int = 64
    removals_in_flight: int = 8
    removals_defer_s: float = 0.5
    """Removals give way to promotions for so long; the broker fires BACKSTOP_DELAY_S late."""
    held_again_s: float = 30.0
    """How soon a due message that can't be promoted yet (a pause) is delivered again."""
    upkeep_first_s: float = 5.0
    """When memory is first asked to look after itself, after becoming active (SPEC M-6)."""
