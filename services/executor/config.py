"""The limits of the executor: what is held at once, how long is waited, how often is tried.

What a tool may take is told by the tool itself and the section ``[executor]``.
"""

from __future__ import annotations

import msgspec

from vigil.backoff import Backoff
from vigil.worker.effects import WorkLimits


class ExecutorLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Every limit of one replica."""

    turns: WorkLimits = WorkLimits(
        in_hand_max=512, hold_every_s=2.0, refusals_max=5, stop_grace_s=5.0, stop_delay_s=1.0
    )
    """In hand until their calls have ended; `in_hand_max` is about what is quick."""
    calls_in_hand_max: int = 512
    """Calls that run or wait for it; the turns of further ones go back to the broker."""
    calls_in_hand_per_user_max: int = 128
    """Of one person."""
    waiting_poll_s: float = 5.0
    """How often is looked whether anybody still waits for the calls that run."""
    ready_wait_s: float = 15.0
    """How long the start waits for the sources of tools; those that come later are offered then."""
    run_margin_s: float = 5.0
    """How much longer than its timeout a tool may take to end; then its call is cancelled."""
    attempts_max: int = 3
    """Of a call that surely did not run."""
    attempts_pause_s: float = 1.0
    again: Backoff = Backoff(0.1, 5.0)
    """Pauses while something can't be stored."""
    board_tries_max: int = 16
    """Attempts at an entity of the board that others write, too, at that moment."""
    answer_late_s: float = 60.0
    """For how long after its deadline the result of a call is still tried to be stored."""
    carried_max: int = 10_000
    """Turns that are remembered as carried out, but for their calls."""
    unrun_max: int = 10_000
    """Claims that are remembered as surely not run."""
    stop_grace_s: float = 5.0
    """How long the calls that run may take to finish when the service ends."""
