"""The limits of memory: what is held at once, how long is waited, how often is tried.

They bound memory, the rate of retries and how stale an answer may be. What is remembered, and how
it is found, is in the section ``[memory]``.
"""

from __future__ import annotations

import msgspec

from vigil.backoff import Backoff
from vigil.worker.effects import WorkLimits


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Every limit of one replica."""

    slots_max: int = 64
    """Replicas that may share one home."""
    ready_wait_s: float = 30.0
    """Count as ready after so long, also if not all of the log is in SQLite and in the vectors yet.
    Until SQLite is, whoever reads is told to ask again; until the vectors are, it's degraded."""
    agents_per_owner_max: int = 100
    """Agents of one owner that may have a memory: each costs everybody tables."""
    questions_at_once_max: int = 64
    """Beyond, they wait."""
    fresh_wait_s: float = 1.0
    """How long a question waits for what this replica knows to be stored already."""
    write_timeout_s: float = 4.0
    """How long the broker may take to say that something is stored; who asks waits 5 s."""
    write_try_s: float = 1.5
    pass_timeout_s: float = 55.0
    """Of a maintenance or association pass; who asks waits 60 s."""
    batch_records: int = 256
    """Records of the log that go into SQLite in one transaction..."""
    batch_bytes: int = 2 * 1024 * 1024
    """...or so many bytes."""
    gather_s: float = 0.02
    """How soon after one transaction the next one begins, unless somebody waits for it: what is
    saved meanwhile goes in together."""
    idle_s: float = 1.0
    """Without a record for so long before the end is reached, it's asked where the end is."""
    vectors_batch: int = 256
    """Memories that are embedded and handed to the index at once."""
    vectors_gather_s: float = 0.1
    """How soon after one round of those the next one begins."""
    vectors_flush_every: int = 16
    """Batches after which the index makes them last, while there are more to come."""
    again: Backoff = Backoff(0.1, 10.0)
    """Pauses while the index, the embedder or the broker can't be reached."""
    accesses_every_s: float = 60.0
    """How often it's written down what recalls have shown."""
    accesses_held_max: int = 20_000
    """Memories shown and not written down yet; beyond, they don't count."""
    turns: WorkLimits = WorkLimits(
        in_hand_max=512, refusals_max=8, stop_grace_s=5.0, stop_delay_s=1.0
    )
    call_timeout_s: float = 6.0
    """Of one memory tool. The turn comes to another replica after 8 s."""
    stop_grace_s: float = 5.0
    """How long what recalls have shown may take to be written down when the service ends."""
